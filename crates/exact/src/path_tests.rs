//! Tests that every path gives the same bits as additions one by one, on data for every number of levels.

use crate::deposit::BLOCK_VALUES;
use crate::ints::{IntKind, IntMoments, IntSum};
use crate::path::Path;
use crate::{Moments, Sum};

/// Repeatable numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number with an exponent field in `from..from + binades`, at most `2047`.
    fn value(&mut self, from: u64, binades: u64) -> f64 {
        let field = (from + self.bits() % binades).min(2047);
        f64::from_bits(self.bits() & !(0x7ff << 52) | field << 52)
    }
}

/// Data sets with different exponents: subnormal, around the smallest and the largest values whose squares can
/// be deposited, ordinary, huge, NaN.
fn data_sets() -> Vec<Vec<f64>> {
    let mut random = Random(7);
    let mut sets = Vec::new();
    for from in [0, 1, 1023 - 490, 1023 - 486, 1023 - 485, 1000, 1023 + 495, 1980, 2030, 2040] {
        for binades in [1, 3, 10, 30, 70, 110, 180, 300, 600, 2048] {
            let length = 3 * BLOCK_VALUES + (random.bits() % 200) as usize;
            sets.push((0..length).map(|_| random.value(from, binades)).collect());
        }
    }
    sets.push(vec![-0.0; 4000]);
    // Lanes end at their largest number: all values of a block are equal, one bit below a power of two.
    for exponent in [0, 500, 505, 506, 507, 508, 1012, 1013, 1014, 1015, 1016, 1023] {
        let x = 2f64.powi(exponent).next_down();
        sets.push(vec![x; 2 * BLOCK_VALUES]);
        sets.push(vec![-x; 2 * BLOCK_VALUES]);
    }
    // All rests of a level are equal, so that they add up on the next level.
    for _ in 0..100 {
        sets.push(vec![random.value(1010, 20); BLOCK_VALUES]);
    }
    // The same for squares and their errors together. It needs one value that is much larger.
    for exponent in (14..23).cycle().take(200) {
        let mut set = vec![random.value(1023, 1); BLOCK_VALUES];
        set[0] = 2f64.powi(exponent);
        sets.push(set);
    }
    sets.push((0..2 * BLOCK_VALUES).map(|i| if i % 7 == 0 { 1e36 } else { 280.1 + i as f64 }).collect());
    sets
}

fn sum_bytes(sum: &Sum) -> Vec<u8> {
    let mut out = Vec::new();
    sum.encode(&mut out);
    out
}

fn moments_bytes(moments: &Moments) -> Vec<u8> {
    let mut out = Vec::new();
    moments.encode(&mut out);
    out
}

/// Adds the values one by one, and as bytes on every path, and compares the states.
fn assert_paths_agree(name: &str, values: &[f64]) {
    let (mut sum, mut moments) = (Sum::new(), Moments::new());
    for x in values {
        sum.add(*x);
        moments.add(*x);
    }
    // One byte comes first, so that no value is aligned.
    let bytes: Vec<u8> = [0].into_iter().chain(values.iter().flat_map(|x| x.to_le_bytes())).collect();
    for path in Path::available() {
        let (mut path_sum, mut path_moments) = (Sum::new(), Moments::new());
        path_sum.add_f64_on(path, &bytes[1..]);
        path_moments.add_f64_on(path, &bytes[1..]);
        assert_eq!(sum_bytes(&path_sum), sum_bytes(&sum), "sum of {name} on {path:?}");
        assert_eq!(moments_bytes(&path_moments), moments_bytes(&moments), "moments of {name} on {path:?}");
    }
}

#[test]
fn paths_agree_on_f64() {
    for (set, values) in data_sets().iter().enumerate() {
        assert_paths_agree(&format!("set {set}"), values);
    }
}

// Each block is tried with a guess from the blocks before it.
#[test]
fn blocks_unlike_the_last_are_exact() {
    let mut random = Random(10);
    // First exponent fields and widths. They make guesses too small, too large, and too large for levels. Some values
    // are not finite, too small to square, or zero.
    let kinds =
        [(1023, 3), (1300, 3), (1020, 60), (700, 30), (540, 3), (530, 20), (2030, 10), (2040, 8), (0, 1)];
    let mut values: Vec<f64> = Vec::new();
    for block in 0..400 {
        // Runs of every length, pairs in turn, and any order.
        let kind = match block {
            0..100 => block / 17,
            100..200 => block % 2 + block / 40,
            _ => random.bits() as usize,
        };
        let (from, binades) = kinds[kind % kinds.len()];
        values.extend((0..BLOCK_VALUES).map(|_| random.value(from, binades)));
    }
    values.extend([1.0; 77]);
    assert_paths_agree("blocks in a row", &values);
}

#[test]
fn one_odd_value_counts_at_every_place() {
    let odd =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e30, 2f64.powi(-80), -2f64.powi(-500), 5e-324];
    // One block comes first, so that the guess fits the other values. Three whole groups and a rest follow.
    let length = 127;
    for place in 0..length {
        for x in odd {
            let mut values = vec![1.25; BLOCK_VALUES + length];
            values[BLOCK_VALUES + place] = x;
            assert_paths_agree(&format!("{x:e} at {place}"), &values);
        }
    }
}

#[test]
fn paths_agree_on_f32() {
    let mut random = Random(8);
    for binades in [1u32, 10, 20, 40, 60, 100, 150, 256] {
        for from in [0, 1, 100, 200, 250] {
            let value = |_| {
                let field = (from + random.bits() as u32 % binades).min(255);
                f32::from_bits(random.bits() as u32 & !(0xff << 23) | field << 23)
            };
            let values: Vec<f32> = (0..2 * BLOCK_VALUES + 77).map(value).collect();
            let (mut sum, mut moments) = (Sum::new(), Moments::new());
            for x in &values {
                sum.add(f64::from(*x));
                moments.add(f64::from(*x));
            }
            let bytes: Vec<u8> = [0].into_iter().chain(values.iter().flat_map(|x| x.to_le_bytes())).collect();
            for path in Path::available() {
                let (mut path_sum, mut path_moments) = (Sum::new(), Moments::new());
                path_sum.add_f32_on(path, &bytes[1..]);
                path_moments.add_f32_on(path, &bytes[1..]);
                assert_eq!(sum_bytes(&path_sum), sum_bytes(&sum), "{binades} from {from} on {path:?}");
                assert_eq!(
                    moments_bytes(&path_moments),
                    moments_bytes(&moments),
                    "{binades}, {from}, {path:?}"
                );
            }
        }
    }
}

#[test]
fn paths_agree_on_integers() {
    let mut random = Random(9);
    let random_bytes: Vec<u8> = (0..80_000).flat_map(|_| random.bits().to_le_bytes()).collect();
    let smallest = [0x80u8].repeat(640_000);
    let largest = [0xffu8].repeat(640_000);
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
        for bytes in [&random_bytes, &smallest, &largest] {
            let (mut sum, mut moments) = (IntSum::new(), IntMoments::new());
            sum.add_on(Path::PORTABLE, kind, bytes);
            moments.add_on(Path::PORTABLE, kind, bytes);
            for path in Path::available() {
                let (mut path_sum, mut path_moments) = (IntSum::new(), IntMoments::new());
                path_sum.add_on(path, kind, bytes);
                path_moments.add_on(path, kind, bytes);
                assert_eq!((path_sum, path_moments), (sum, moments), "{kind:?} on {path:?}");
            }
        }
    }
}
