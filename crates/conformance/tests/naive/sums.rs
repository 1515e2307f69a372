//! `sum`, `mean` and `var` as fractions of large integers.

use gristmill_kernel::{KernelError, Value};
use num_bigint::BigInt;

use super::exactly::{PLACES, nearest, nearest_root, scaled};
use super::{Asked, Number};

pub fn answer(asked: &Asked<'_>) -> Result<Value, KernelError> {
    let count = asked.count();
    let ints = asked.input.element.is_some_and(|dtype| !dtype.is_float());
    let not_finite = not_finite(asked);
    // Of what is not finite there are no integers.
    let finite = asked.numbers.iter().filter(|(_, x)| x.float().is_finite());
    let values: Vec<BigInt> = finite
        .map(|(_, x)| match x {
            Number::Int(n) => BigInt::from(*n),
            Number::Float(x) => scaled(*x),
        })
        .collect();
    let scale = BigInt::from(1) << if ints { 0 } else { PLACES };
    let sum: BigInt = values.iter().sum();
    let mean = |n: u64| not_finite.unwrap_or_else(|| nearest(&sum, &(&scale * n)));
    let counted = ("count", Value::from(count));
    Ok(Value::Map(match asked.kernel {
        "sum" if ints => vec![("sum", Value::Int(i128::try_from(&sum).unwrap())), counted],
        "sum" => vec![("sum", Value::float(mean(1))), counted],
        "mean" if count == 0 => return Err(asked.empty()),
        "mean" => vec![("mean", Value::float(mean(count))), counted],
        _ => {
            let ddof: u64 = asked.param("ddof").map_or(0, |ddof| ddof.parse().unwrap());
            if count <= ddof {
                return Err(asked.empty());
            }
            let squares: BigInt = values.iter().map(|x| x * x).sum();
            let num = squares * count - &sum * &sum;
            let den = &scale * &scale * count * (count - ddof);
            let of = |round: fn(&BigInt, &BigInt) -> f64| {
                Value::float(if not_finite.is_some() { f64::NAN } else { round(&num, &den) })
            };
            vec![
                ("mean", Value::float(mean(count))),
                ("var", of(nearest)),
                ("std", of(nearest_root)),
                counted,
            ]
        }
    }))
}

/// The sum, where NaN or infinities decide it.
fn not_finite(asked: &Asked<'_>) -> Option<f64> {
    let has = |wanted: f64| asked.numbers.iter().any(|(_, x)| x.float() == wanted);
    match (has(f64::INFINITY), has(f64::NEG_INFINITY)) {
        _ if asked.is_nan() => Some(f64::NAN),
        (true, true) => Some(f64::NAN),
        (true, false) => Some(f64::INFINITY),
        (false, true) => Some(f64::NEG_INFINITY),
        (false, false) => None,
    }
}
