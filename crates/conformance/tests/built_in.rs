//! Every built-in kernel keeps the laws over every kind of its input, and has the answers of a naive program.
#![allow(clippy::unwrap_used)] // in functions that tests share

mod naive;

use gristmill_conformance::{Case, check};
use gristmill_kernel::catalog::{self, Accepts, Declaration};
use gristmill_kernel::{DType, Input};

const TRIALS: u32 = 25;

type Params = Vec<(String, String)>;

fn params(pairs: &[(&str, &str)]) -> Params {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Draws elements with special values: extremes, NaN, infinities, zeros of both signs, ties.
fn elements(dtype: DType, count: usize, seed: u64) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut out = Vec::new();
    for _ in 0..count {
        match dtype {
            DType::F64 => {
                let special = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::MAX, -f64::MAX, 5e-324, 1e36, 3.5];
                let value = match rng.u8(0..4) {
                    0 => special[rng.usize(0..special.len())],
                    1 => f64::from(rng.i8(-3..4)),
                    _ => (rng.f64() - 0.5) * 2f64.powi(rng.i32(-60..60)),
                };
                out.extend(value.to_le_bytes());
            }
            DType::F32 => {
                let special = [0.0, -0.0, f32::NAN, f32::INFINITY, f32::MAX, 1e-45, 1e20, 3.5];
                let value = match rng.u8(0..4) {
                    0 => special[rng.usize(0..special.len())],
                    1 => f32::from(rng.i8(-3..4)),
                    _ => (rng.f32() - 0.5) * 2f32.powi(rng.i32(-30..30)),
                };
                out.extend(value.to_le_bytes());
            }
            _ => {
                let fill = [0, 0xff, 0x7f, 0x80][rng.usize(0..4)];
                let random = rng.bool();
                out.extend((0..dtype.size()).map(|_| if random { rng.u8(..) } else { fill }));
            }
        }
    }
    out
}

fn text(lines: usize, seed: u64) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut out = Vec::new();
    for _ in 0..lines {
        for _ in 0..rng.usize(0..5) {
            out.extend((0..rng.usize(0..4)).map(|_| b"abK \t\xff"[rng.usize(0..6)]));
        }
        out.push(b'\n');
    }
    if rng.bool() {
        out.pop();
    }
    out
}

/// Lists the parameters with which a kernel over elements of a type is tested.
fn choices(kernel: &str, dtype: Option<DType>) -> Vec<Params> {
    let mut sets = match kernel {
        "grep" => vec![
            params(&[("pattern", "a+K?")]),
            params(&[("pattern", "^b|K$")]),
            params(&[("pattern", "AB"), ("ignore_case", "true"), ("count_only", "true")]),
            params(&[("pattern", "a b"), ("fixed", "true")]),
            params(&[("pattern", "")]),
        ],
        "quantile" => vec![
            params(&[("q", "0.5")]),
            params(&[("q", "0,0.25,0.9,1"), ("nan", "skip")]),
            params(&[("q", "0.1"), ("method", "lower"), ("nan", "error")]),
        ],
        "top" => vec![params(&[("k", "3")]), params(&[("which", "smallest"), ("nan", "error")])],
        "unique" => vec![params(&[]), params(&[("max", "5"), ("nan", "skip")])],
        "lookup" => vec![
            params(&[("where", "> 3")]),
            params(&[("where", "!= 0")]),
            params(&[("where", "> -3 and != 0")]),
            params(&[("where", "!= 0 and != 1")]),
            params(&[("where", "-2..=2"), ("count_only", "true")]),
        ],
        "histogram" => vec![
            params(&[("bins", "7"), ("range", "-2:2")]),
            params(&[("bins", "3"), ("nan", "skip")]),
            params(&[("range", "0:100"), ("nan", "error")]),
        ],
        "var" => vec![params(&[]), params(&[("ddof", "1"), ("nan", "skip")]), params(&[("nan", "error")])],
        "first" | "last" | "wc" => vec![params(&[])],
        _ => vec![params(&[]), params(&[("nan", "skip")]), params(&[("nan", "error")])],
    };
    if dtype.is_some_and(|dtype| !dtype.is_float()) && kernel != "lookup" && kernel != "histogram" {
        // Integers are never NaN, so the other parameters change nothing.
        sets.truncate(1);
    }
    sets
}

/// Kernels over elements of any type. `points_and_images.rs` tests the kernels over points and images.
fn over_elements() -> impl Iterator<Item = &'static Declaration> {
    let takes = |decl: &&Declaration| decl.accepts.contains(&Accepts::Elements);
    catalog::BUILT_IN
        .iter()
        .copied()
        .filter(takes)
        .filter(|decl| !["kmeans", "gaussian"].contains(&decl.name))
}

fn check_kernel(kernel: &'static str, params: &Params, input: Input, data: Vec<u8>) {
    let bound = catalog::bind(kernel, params, &input).unwrap_or_else(|e| panic!("{kernel} {params:?}: {e}"));
    let reference_params = params.clone();
    let case = Case::new(bound, input, data)
        .with_reference(move |data| naive::answer(kernel, &reference_params, input, data));
    check(&case, 11, TRIALS).unwrap_or_else(|broken| panic!("{params:?} over {input:?}\n{broken}"));
}

#[test]
fn over_elements_of_every_type() {
    for decl in over_elements() {
        for dtype in DType::ALL {
            for params in choices(decl.name, Some(dtype)) {
                check_kernel(decl.name, &params, Input::elements(dtype), elements(dtype, 60, 5));
            }
        }
    }
}

#[test]
fn over_records_of_several_elements() {
    for decl in over_elements() {
        for dtype in [DType::F32, DType::I16] {
            let input = Input::typed_records(dtype, 3 * dtype.size() as u64).unwrap();
            for params in choices(decl.name, Some(dtype)) {
                check_kernel(decl.name, &params, input, elements(dtype, 48, 6));
            }
        }
    }
}

/// These kernels look at elements in groups of up to 256.
#[test]
fn over_more_elements_than_a_group() {
    for kernel in ["lookup", "quantile"] {
        for (dtype, each) in [(DType::F64, 1), (DType::F32, 3), (DType::I16, 1), (DType::U8, 2)] {
            let input = Input::typed_records(dtype, each * dtype.size() as u64).unwrap();
            for params in choices(kernel, Some(dtype)) {
                check_kernel(kernel, &params, input, elements(dtype, 600, 7));
            }
        }
    }
}

#[test]
fn over_integers_that_are_not_exact_as_floats() {
    for first in [(1 << 53) - 15, i64::MAX - 29, i64::MIN] {
        let data: Vec<u8> = (0..30).flat_map(|n| (first + n).to_le_bytes()).collect();
        for decl in over_elements() {
            for dtype in [DType::I64, DType::U64] {
                for params in choices(decl.name, Some(dtype)) {
                    check_kernel(decl.name, &params, Input::elements(dtype), data.clone());
                }
            }
        }
    }
}

#[test]
fn over_zero_and_one_elements() {
    for decl in over_elements() {
        for count in [0, 1] {
            for params in choices(decl.name, Some(DType::F64)) {
                check_kernel(decl.name, &params, Input::elements(DType::F64), elements(DType::F64, count, 7));
            }
        }
    }
}

#[test]
fn over_lines() {
    for decl in catalog::BUILT_IN.iter().filter(|decl| decl.accepts.contains(&Accepts::Lines)) {
        for lines in [0, 1, 30] {
            for params in choices(decl.name, None) {
                check_kernel(decl.name, &params, Input::lines(), text(lines, 8));
            }
        }
    }
}

#[test]
fn over_records_of_text() {
    for decl in catalog::BUILT_IN.iter().filter(|decl| decl.accepts.contains(&Accepts::Records)) {
        for size in [1u64, 5] {
            let mut data = text(40, 9);
            data.truncate(data.len() / size as usize * size as usize);
            for params in choices(decl.name, None) {
                check_kernel(decl.name, &params, Input::records(size).unwrap(), data.clone());
            }
        }
    }
}
