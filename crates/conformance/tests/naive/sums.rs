//! References of `sum`, `mean` and `var`: fractions of large integers.

use gristmill_kernel::{KernelError, Value};
use num_bigint::BigInt;

use super::fractions::{PLACES, nearest, nearest_root, scaled};
use super::{NaiveRequest, Number};

pub fn answer(request: &NaiveRequest<'_>) -> Result<Value, KernelError> {
    let count = request.count();
    let ints = request.input.element.is_some_and(|dtype| !dtype.is_float());
    let not_finite = not_finite(request);
    // A float that is not finite is no integer times 2^-1074.
    let finite = request.numbers.iter().filter(|(_, x)| x.float().is_finite());
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
    Ok(Value::Map(match request.kernel {
        "sum" if ints => vec![("sum", Value::Int(i128::try_from(&sum).unwrap())), counted],
        "sum" => vec![("sum", Value::float(mean(1))), counted],
        "mean" if count == 0 => return Err(request.empty()),
        "mean" => vec![("mean", Value::float(mean(count))), counted],
        _ => {
            let ddof: u64 = request.param("ddof").map_or(0, |ddof| ddof.parse().unwrap());
            if count <= ddof {
                return Err(request.empty());
            }
            let squares: BigInt = values.iter().map(|x| x * x).sum();
            let num = squares * count - &sum * &sum;
            let den = &scale * &scale * count * (count - ddof);
            let ratio = |round: fn(&BigInt, &BigInt) -> f64| {
                Value::float(if not_finite.is_some() { f64::NAN } else { round(&num, &den) })
            };
            vec![
                ("mean", Value::float(mean(count))),
                ("var", ratio(nearest)),
                ("std", ratio(nearest_root)),
                counted,
            ]
        }
    }))
}

/// The sum if NaN or infinities decide it.
fn not_finite(request: &NaiveRequest<'_>) -> Option<f64> {
    let has = |wanted: f64| request.numbers.iter().any(|(_, x)| x.float() == wanted);
    match (has(f64::INFINITY), has(f64::NEG_INFINITY)) {
        _ if request.answer_is_nan() => Some(f64::NAN),
        (true, true) => Some(f64::NAN),
        (true, false) => Some(f64::INFINITY),
        (false, true) => Some(f64::NEG_INFINITY),
        (false, false) => None,
    }
}
