//! Speed of the accumulators over buffers that stay in the first- or second-level cache, in GB/s of one core.
//!
//! `cargo run --release -p gristmill-exact --example speed`

use std::f64::consts::TAU;
use std::hint::black_box;
use std::time::Instant;

use gristmill_exact::{IntKind, IntMoments, IntSum, Moments, Sum};

const BUFFER_BYTES: usize = 256 << 10;
const CALLS: usize = 200;
const REPEATS: usize = 15;

/// A small generator of reproducible numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * 2f64.powi(-53)
    }

    fn sign(&mut self) -> f64 {
        if self.bits() & 1 == 0 { 1.0 } else { -1.0 }
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.uniform()).ln()).sqrt() * (TAU * self.uniform()).cos()
    }
}

fn best(name: &str, buffer: &[u8], mut add: impl FnMut(&[u8])) {
    let mut best = 0f64;
    for _ in 0..REPEATS {
        let calls = CALLS * BUFFER_BYTES / buffer.len();
        let start = Instant::now();
        for _ in 0..calls {
            add(black_box(buffer));
        }
        best = best.max((buffer.len() * calls) as f64 / start.elapsed().as_secs_f64() / 1e9);
    }
    println!("{name:<44} {best:6.1} GB/s");
}

fn main() {
    let mut random = Random(1);
    let mut data: Vec<(&str, Vec<f64>)> = Vec::new();
    let mut generate = |name, mut value: Box<dyn FnMut(&mut Random) -> f64>| {
        data.push((name, (0..BUFFER_BYTES / 8).map(|_| value(&mut random)).collect()));
    };
    generate("uniform", Box::new(|r| r.uniform() * 300.0));
    generate("log-uniform, e^(-10..10)", Box::new(|r| r.sign() * (20.0 * r.uniform() - 10.0).exp()));
    generate("lognormal, sigma 10", Box::new(|r| r.sign() * (10.0 * r.normal()).exp()));
    generate(
        "30% fill values 1e36",
        Box::new(|r| if r.uniform() < 0.3 { 1e36 } else { 280.0 + r.uniform() }),
    );
    generate("30% NaN", Box::new(|r| if r.uniform() < 0.3 { f64::NAN } else { 280.0 + r.uniform() }));
    generate(
        "200 binades",
        Box::new(|r| r.sign() * (1.0 + r.uniform()) * (200.0 * r.uniform()).floor().exp2()),
    );
    generate(
        "400 binades",
        Box::new(|r| r.sign() * (1.0 + r.uniform()) * (400.0 * r.uniform() - 200.0).floor().exp2()),
    );
    generate("exp(-x^2/2), x to 38", Box::new(|r| (-0.5 * (38.0 * r.uniform()).powi(2)).exp()));
    generate(
        "any finite bits",
        Box::new(|r| {
            loop {
                let x = f64::from_bits(r.bits());
                if x.is_finite() {
                    return x;
                }
            }
        }),
    );
    for (name, values) in &data {
        let wide: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        let mut sum = Sum::new();
        best(&format!("f64 Sum, {name}"), &wide, |b| sum.add_f64_le(b));
        black_box(sum.value());
        let mut moments = Moments::new();
        best(&format!("f64 Moments, {name}"), &wide, |b| moments.add_f64_le(b));
        black_box(moments.sum().value());
    }
    let (name, values) = &data[0];
    let short: Vec<u8> = values[..512].iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut sum = Sum::new();
    best(&format!("f64 Sum, {name}, 4 KiB a call"), &short, |b| sum.add_f64_le(b));
    best(&format!("f64 Sum, {name}, 4 KiB each its own"), &short, |b| {
        let mut sum = Sum::new();
        sum.add_f64_le(b);
        black_box(sum);
    });
    let mut moments = Moments::new();
    best(&format!("f64 Moments, {name}, 4 KiB a call"), &short, |b| moments.add_f64_le(b));
    black_box((sum.value(), moments.sum().value()));
    for (name, values) in &data[..6] {
        let narrow: Vec<u8> = values.iter().chain(values).flat_map(|x| (*x as f32).to_le_bytes()).collect();
        let mut sum = Sum::new();
        best(&format!("f32 Sum, {name}"), &narrow, |b| sum.add_f32_le(b));
        black_box(sum.value());
        let mut moments = Moments::new();
        best(&format!("f32 Moments, {name}"), &narrow, |b| moments.add_f32_le(b));
        black_box(moments.sum().value());
    }
    let bytes: Vec<u8> = (0..BUFFER_BYTES / 8).flat_map(|_| random.bits().to_le_bytes()).collect();
    for kind in [
        IntKind::I8,
        IntKind::U8,
        IntKind::I16,
        IntKind::U16,
        IntKind::I32,
        IntKind::U32,
        IntKind::I64,
        IntKind::U64,
    ] {
        let mut sum = IntSum::new();
        best(&format!("{kind:?} IntSum"), &bytes, |b| sum.add_le(kind, b));
        black_box(sum.value());
        let mut moments = IntMoments::new();
        best(&format!("{kind:?} IntMoments"), &bytes, |b| moments.add_le(kind, b));
        black_box(moments.sum());
    }
}
