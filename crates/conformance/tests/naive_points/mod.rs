//! References of `kmeans` and `gaussian`: loops over all points and all pixels.

pub mod gaussian;
pub mod kmeans;

use gristmill_kernel::{DType, Value};

pub type Params = Vec<(String, String)>;

/// A parameter, or its default.
fn param<'a>(params: &'a Params, name: &str, default: &'a str) -> &'a str {
    params.iter().find(|(known, _)| known == name).map_or(default, |(_, value)| value)
}

fn numbers<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> Vec<T> {
    text.split(',').map(|n| n.parse().unwrap()).collect()
}

/// Converts elements to f64. This is exact, because no element has more than 53 bits.
fn floats(dtype: DType, data: &[u8]) -> Vec<f64> {
    let float = |bytes: &[u8]| match dtype.value(bytes) {
        Value::Int(n) => n as f64,
        Value::Float(x) => x,
        other => panic!("{other:?} is not a number"),
    };
    data.chunks_exact(dtype.size()).map(float).collect()
}
