//! The Gaussian filter: for each pixel, one sum over the whole square of its neighbours.

use gristmill_conformance::Answer;
use gristmill_kernel::{DType, KernelError, Position, Value};

use super::{Params, floats, numbers, param};

/// Computes the weights of one axis at distances 0, 1, ...
fn weights(params: &Params, axis: usize) -> Vec<f64> {
    if param(params, "mask", "gaussian") == "3x3" {
        return vec![0.5, 0.25];
    }
    let sigmas: Vec<f64> = numbers(param(params, "sigma", "2"));
    let sigma = sigmas[axis.min(sigmas.len() - 1)];
    let radius = (param(params, "truncate", "4").parse::<f64>().unwrap() * sigma + 0.5) as i32;
    let density = |at: i32| (-f64::from(at * at) / (2.0 * sigma * sigma)).exp();
    let whole: f64 = (-radius..=radius).map(density).sum();
    (0..=radius).map(|at| density(at) / whole).collect()
}

/// Finds the index below n that stands for an index that may be outside. It goes back step by step.
fn source_index(mode: &str, mut at: i64, n: i64) -> Option<usize> {
    while !(0..n).contains(&at) {
        let before = at < 0;
        at = match mode {
            "reflect" if before => -1 - at,
            "reflect" => 2 * n - 1 - at,
            "mirror" if n == 1 => 0,
            "mirror" if before => -at,
            "mirror" => 2 * n - 2 - at,
            "nearest" if before => 0,
            "nearest" => n - 1,
            "wrap" if before => at + n,
            "wrap" => at - n,
            _ => return None,
        };
    }
    Some(at as usize)
}

pub fn answer(params: &Params, dtype: DType, data: &[u8]) -> Answer {
    let shape: Vec<i64> = numbers(param(params, "shape", ""));
    let (height, width, channels) = (shape[0], shape[1], shape.get(2).copied().unwrap_or(1));
    let image = floats(dtype, data);
    if image.len() as i64 != height * width * channels {
        return Err(KernelError::Domain { kernel: "gaussian", why: "the image has another shape".into() })
            .into();
    }
    let mode = param(params, "mode", "reflect");
    let constant: f64 = param(params, "cval", "0").parse().unwrap();
    let (down, along) = (weights(params, 0), weights(params, 1));
    let around = |weights: &[f64]| (1 - weights.len() as i64)..weights.len() as i64;
    let mut out = Vec::new();
    for y in 0..height {
        for x in 0..width {
            for channel in 0..channels as usize {
                let mut sum = 0.0;
                for dy in around(&down) {
                    for dx in around(&along) {
                        let at = (source_index(mode, y + dy, height), source_index(mode, x + dx, width));
                        let pixel = match at {
                            (Some(y), Some(x)) => {
                                image[(y * width as usize + x) * channels as usize + channel]
                            }
                            _ => constant,
                        };
                        sum += pixel * (down[dy.unsigned_abs() as usize] * along[dx.unsigned_abs() as usize]);
                    }
                }
                out.extend(rounded(dtype, sum));
            }
        }
    }
    let shape = Value::List(shape.iter().map(|n| Value::from(*n as u64)).collect());
    let mut values = vec![("shape", shape), ("type", Value::Text(dtype.name().into()))];
    if param(params, "result", "image") == "summary" {
        values.extend(summary(dtype, &out));
        return Value::Map(values).into();
    }
    let rows = if out.is_empty() { Vec::new() } else { vec![(Position::of_record(0), out)] };
    Answer { value: Ok(Value::Map(values)), rows }
}

fn rounded(dtype: DType, x: f64) -> Vec<u8> {
    match dtype {
        DType::U8 => vec![x.round_ties_even() as u8],
        DType::U16 => (x.round_ties_even() as u16).to_le_bytes().to_vec(),
        DType::F32 => (x as f32).to_le_bytes().to_vec(),
        _ => x.to_le_bytes().to_vec(),
    }
}

/// Computes the sum and the extremes of the filtered image.
fn summary(dtype: DType, image: &[u8]) -> Vec<(&'static str, Value)> {
    let values = floats(dtype, image);
    let value = |x: f64| if dtype.is_float() { Value::Float(x) } else { Value::Int(x as i128) };
    let first = |wanted: f64| Value::from(values.iter().position(|x| *x == wanted).unwrap() as u64);
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    vec![
        ("sum", value(values.iter().sum())),
        ("count", Value::from(values.len() as u64)),
        ("min", value(low)),
        ("min_index", first(low)),
        ("max", value(high)),
        ("max_index", first(high)),
    ]
}
