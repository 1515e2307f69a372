//! References of kernels that depend on the order of values: they sort a list.

use std::cmp::Ordering;

use gristmill_kernel::{KernelError, Value};
use num_bigint::BigInt;

use super::fractions::{PLACES, nearest, scaled};
use super::{NaiveRequest, Number};

/// Compares two elements of one type. Neither is NaN.
fn compare(a: &Number, b: &Number) -> Ordering {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => a.cmp(b),
        (a, b) => a.float().partial_cmp(&b.float()).unwrap(),
    }
}

pub fn extremes(request: &NaiveRequest<'_>) -> Result<Value, KernelError> {
    let (min, max) = match request.nans.first() {
        Some(index) if request.answer_is_nan() => {
            ((Value::Float(f64::NAN), *index), (Value::Float(f64::NAN), *index))
        }
        _ => {
            // `min_by` returns the first of equal elements, and `max_by` the last.
            let min = request.numbers.iter().min_by(|a, b| compare(&a.1, &b.1));
            let max = request.numbers.iter().rev().max_by(|a, b| compare(&a.1, &b.1));
            let found = |at: &(u64, Number)| (at.1.value(), at.0);
            let none = || request.empty();
            (min.map(found).ok_or_else(none)?, max.map(found).ok_or_else(none)?)
        }
    };
    Ok(Value::Map(match request.kernel {
        "min" => vec![("min", min.0), ("index", min.1.into())],
        "max" => vec![("max", max.0), ("index", max.1.into())],
        _ => vec![
            ("min", min.0),
            ("min_index", min.1.into()),
            ("max", max.0),
            ("max_index", max.1.into()),
            ("count", request.count().into()),
        ],
    }))
}

/// Sorts the values. Zeros have no sign.
fn sorted(request: &NaiveRequest<'_>) -> Vec<Number> {
    let plain = |(_, x): &(u64, Number)| match x {
        Number::Float(0.0) => Number::Float(0.0),
        x => *x,
    };
    let mut sorted: Vec<Number> = request.numbers.iter().map(plain).collect();
    sorted.sort_by(compare);
    sorted
}

pub fn quantiles(request: &NaiveRequest<'_>) -> Result<Value, KernelError> {
    if request.count() == 0 {
        return Err(request.empty());
    }
    let sorted = sorted(request);
    let quantile = |share: f64| {
        if request.answer_is_nan() {
            return Value::Float(f64::NAN);
        }
        let place = (sorted.len() - 1) as f64 * share;
        let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
        match request.param("method") {
            Some("lower") => low.value(),
            Some("higher") => high.value(),
            _ => Value::float(between(low, high, place.fract())),
        }
    };
    let count = ("count", request.count().into());
    Ok(Value::Map(match request.param("q") {
        None => vec![("median", quantile(0.5)), count],
        Some(shares) => {
            let all = shares.split(',').map(|share| quantile(share.parse().unwrap())).collect();
            vec![("quantiles", Value::List(all)), count]
        }
    }))
}

/// Computes the middle of two values, rounded once, or another point between them in the way of NumPy.
fn between(low: Number, high: Number, fraction: f64) -> f64 {
    let (a, b) = (low.float(), high.float());
    match (low, high) {
        _ if compare(&low, &high).is_eq() || fraction == 0.0 => a,
        (Number::Int(a), Number::Int(b)) if fraction == 0.5 => nearest(&(BigInt::from(a) + b), &2.into()),
        _ if fraction == 0.5 && a.is_finite() && b.is_finite() => {
            nearest(&(scaled(a) + scaled(b)), &(BigInt::from(2) << PLACES))
        }
        _ if fraction == 0.5 => a + b,
        _ if fraction < 0.5 => a + (b - a) * fraction,
        _ => b - (b - a) * (1.0 - fraction),
    }
}

pub fn top(request: &NaiveRequest<'_>) -> Result<Value, KernelError> {
    let k = request.param("k").map_or(10, |k| k.parse().unwrap());
    let mut best = request.numbers.clone();
    match request.param("which") {
        Some("smallest") => best.sort_by(|a, b| compare(&a.1, &b.1)),
        _ => best.sort_by(|a, b| compare(&b.1, &a.1)),
    }
    best.truncate(k);
    let plain =
        |x: Number| if x.float() == 0.0 && matches!(x, Number::Float(_)) { Number::Float(0.0) } else { x };
    Ok(Value::Map(vec![
        ("values", Value::List(best.iter().map(|(_, x)| plain(*x).value()).collect())),
        ("indices", Value::List(best.iter().map(|(index, _)| (*index).into()).collect())),
    ]))
}

pub fn unique(request: &NaiveRequest<'_>) -> Result<Value, KernelError> {
    let mut found: Vec<(Value, u64)> = Vec::new();
    for x in sorted(request) {
        match found.last_mut() {
            Some((same, count)) if *same == x.value() => *count += 1,
            _ => found.push((x.value(), 1)),
        }
    }
    if found.len() > request.param("max").map_or(65536, |max| max.parse().unwrap()) {
        return Err(request.domain());
    }
    if request.answer_is_nan() {
        found.push((Value::Float(f64::NAN), request.nans.len() as u64));
    }
    let distinct = found.len() as u64;
    let (values, counts) = found.into_iter().map(|(value, count)| (value, count.into())).unzip();
    Ok(Value::Map(vec![
        ("values", Value::List(values)),
        ("counts", Value::List(counts)),
        ("distinct", distinct.into()),
    ]))
}
