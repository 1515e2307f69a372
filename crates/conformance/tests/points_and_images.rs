//! Kernels whose records are points or rows keep the laws, and have the answers of a naive program.
#![allow(clippy::unwrap_used)] // in functions that tests share

mod naive_points;

use gristmill_conformance::{Case, check};
use gristmill_kernel::{DType, Input, catalog};

use naive_points::{gaussian, kmeans};

const TRIALS: u32 = 20;

fn params(text: &str) -> Vec<(String, String)> {
    let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    text.split_whitespace().filter_map(pair).collect()
}

/// Draws finite elements. Some are small integers, so that there are ties.
fn elements(dtype: DType, count: usize, seed: u64) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut out = Vec::new();
    for _ in 0..count {
        let x = if rng.bool() { f64::from(rng.u8(0..6)) } else { rng.f64() * 1000.0 - 200.0 };
        match dtype {
            DType::F64 => out.extend(x.to_le_bytes()),
            DType::F32 => out.extend((x as f32).to_le_bytes()),
            _ => out.extend((0..dtype.size()).map(|_| rng.u8(..))),
        }
    }
    out
}

/// Tolerance of floats. The reference adds in another order.
fn near(dtype: DType) -> f64 {
    if dtype == DType::F32 { 1e-6 } else { 1e-12 }
}

fn check_kernel(kernel: &str, parameters: &str, dtype: DType, data: Vec<u8>) {
    let input = Input::elements(dtype);
    let bound =
        catalog::bind(kernel, &params(parameters), &input).unwrap_or_else(|e| panic!("{parameters}: {e}"));
    let label = parameters;
    let (case, parameters) = (Case::new(bound, input, data), params(parameters));
    let case = match kernel {
        "gaussian" => {
            case.with_reference_within(near(dtype), move |data| gaussian::answer(&parameters, dtype, data))
        }
        // A naive program does not know which points are drawn at random. Later steps are the same for each `init`.
        _ if !parameters.contains(&("init".into(), "first".into())) => case,
        _ => case.with_reference_within(near(dtype), move |data| kmeans::answer(&parameters, dtype, data)),
    };
    check(&case, 3, TRIALS).unwrap_or_else(|broken| panic!("{label} {dtype}\n{broken}"));
}

#[test]
fn kmeans() {
    for init in ["first", "random", "kmeans++"] {
        for more in ["", "labels=true", "delta=0.1", "max_iter=2 tol=0 labels=true"] {
            let parameters = format!("dims=3 k=4 init={init} seed=5 {more}");
            check_kernel("kmeans", &parameters, DType::F64, elements(DType::F64, 3 * 40, 1));
        }
    }
    for dtype in [DType::F32, DType::U8, DType::I16] {
        check_kernel("kmeans", "dims=2 k=3 init=first labels=true", dtype, elements(dtype, 2 * 30, 2));
    }
}

#[test]
fn kmeans_of_equal_points() {
    let point: Vec<u8> = [1.5f64, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    for init in ["first", "random", "kmeans++"] {
        check_kernel("kmeans", &format!("dims=2 k=3 init={init}"), DType::F64, point.repeat(20));
    }
}

#[test]
fn kmeans_of_refused_points() {
    let mut data = elements(DType::F64, 2 * 20, 3);
    data[80..88].copy_from_slice(&f64::NAN.to_le_bytes());
    check_kernel("kmeans", "dims=2 k=3", DType::F64, data);
    check_kernel("kmeans", "dims=2 k=30", DType::F64, elements(DType::F64, 2 * 20, 3));
    check_kernel("kmeans", "dims=2 k=3", DType::F64, Vec::new());
}

#[test]
fn gaussian() {
    for mode in ["reflect", "mirror", "nearest", "wrap", "constant"] {
        for more in
            ["shape=11,7 sigma=1", "shape=5,4,3 sigma=0.6,2", "shape=3,9 sigma=2", "shape=6,3 mask=3x3"]
        {
            for dtype in [DType::U8, DType::U16, DType::F32, DType::F64] {
                let parameters = format!("{more} mode={mode} cval=3");
                let shape = parameters.split_whitespace().next().and_then(|word| word.strip_prefix("shape="));
                let count = shape.unwrap().split(',').map(|n| n.parse::<usize>().unwrap()).product();
                check_kernel("gaussian", &parameters, dtype, elements(dtype, count, 4));
            }
        }
    }
}

#[test]
fn gaussian_with_a_summary() {
    for mode in ["reflect", "wrap"] {
        for dtype in [DType::U8, DType::U16, DType::F32, DType::F64] {
            let parameters = format!("shape=11,4,3 sigma=1 mode={mode} result=summary");
            check_kernel("gaussian", &parameters, dtype, elements(dtype, 11 * 4 * 3, 4));
        }
    }
}

#[test]
fn gaussian_of_an_image_with_another_shape() {
    check_kernel("gaussian", "shape=5,5", DType::U8, elements(DType::U8, 20, 4));
    check_kernel("gaussian", "shape=4,5", DType::U8, elements(DType::U8, 25, 4));
}
