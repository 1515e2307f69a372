//! What the order of the values decides, from a sorted list.

use std::cmp::Ordering;

use gristmill_kernel::{KernelError, Value};
use num_bigint::BigInt;

use super::exactly::{PLACES, nearest, scaled};
use super::{Asked, Number};

/// How two elements of one type compare; none is NaN.
fn compare(a: &Number, b: &Number) -> Ordering {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => a.cmp(b),
        (a, b) => a.float().partial_cmp(&b.float()).unwrap(),
    }
}

pub fn extremes(asked: &Asked<'_>) -> Result<Value, KernelError> {
    let (min, max) = match asked.nans.first() {
        Some(index) if asked.is_nan() => ((Value::Float(f64::NAN), *index), (Value::Float(f64::NAN), *index)),
        _ => {
            // `min_by` gives the first of equal ones, `max_by` the last.
            let min = asked.numbers.iter().min_by(|a, b| compare(&a.1, &b.1));
            let max = asked.numbers.iter().rev().max_by(|a, b| compare(&a.1, &b.1));
            let found = |at: &(u64, Number)| (at.1.value(), at.0);
            let none = || asked.empty();
            (min.map(found).ok_or_else(none)?, max.map(found).ok_or_else(none)?)
        }
    };
    Ok(Value::Map(match asked.kernel {
        "min" => vec![("min", min.0), ("index", min.1.into())],
        "max" => vec![("max", max.0), ("index", max.1.into())],
        _ => vec![
            ("min", min.0),
            ("min_index", min.1.into()),
            ("max", max.0),
            ("max_index", max.1.into()),
            ("count", asked.count().into()),
        ],
    }))
}

/// The values in order, zeros without a sign.
fn sorted(asked: &Asked<'_>) -> Vec<Number> {
    let plain = |(_, x): &(u64, Number)| match x {
        Number::Float(0.0) => Number::Float(0.0),
        x => *x,
    };
    let mut sorted: Vec<Number> = asked.numbers.iter().map(plain).collect();
    sorted.sort_by(compare);
    sorted
}

pub fn quantiles(asked: &Asked<'_>) -> Result<Value, KernelError> {
    if asked.count() == 0 {
        return Err(asked.empty());
    }
    let sorted = sorted(asked);
    let quantile = |share: f64| {
        if asked.is_nan() {
            return Value::Float(f64::NAN);
        }
        let place = (sorted.len() - 1) as f64 * share;
        let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
        match asked.param("method") {
            Some("lower") => low.value(),
            Some("higher") => high.value(),
            _ => Value::float(between(low, high, place.fract())),
        }
    };
    let count = ("count", asked.count().into());
    Ok(Value::Map(match asked.param("q") {
        None => vec![("median", quantile(0.5)), count],
        Some(shares) => {
            let all = shares.split(',').map(|share| quantile(share.parse().unwrap())).collect();
            vec![("quantiles", Value::List(all)), count]
        }
    }))
}

/// The middle of two, rounded once, or a point as NumPy finds it.
fn between(low: Number, high: Number, apart: f64) -> f64 {
    let (a, b) = (low.float(), high.float());
    match (low, high) {
        _ if compare(&low, &high).is_eq() || apart == 0.0 => a,
        (Number::Int(a), Number::Int(b)) if apart == 0.5 => nearest(&(BigInt::from(a) + b), &2.into()),
        _ if apart == 0.5 && a.is_finite() && b.is_finite() => {
            nearest(&(scaled(a) + scaled(b)), &(BigInt::from(2) << PLACES))
        }
        _ if apart == 0.5 => a + b,
        _ if apart < 0.5 => a + (b - a) * apart,
        _ => b - (b - a) * (1.0 - apart),
    }
}

pub fn top(asked: &Asked<'_>) -> Result<Value, KernelError> {
    let k = asked.param("k").map_or(10, |k| k.parse().unwrap());
    let mut best = asked.numbers.clone();
    match asked.param("which") {
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

pub fn unique(asked: &Asked<'_>) -> Result<Value, KernelError> {
    let mut found: Vec<(Value, u64)> = Vec::new();
    for x in sorted(asked) {
        match found.last_mut() {
            Some((same, count)) if *same == x.value() => *count += 1,
            _ => found.push((x.value(), 1)),
        }
    }
    if found.len() > asked.param("max").map_or(65536, |max| max.parse().unwrap()) {
        return Err(asked.domain());
    }
    if asked.is_nan() {
        found.push((Value::Float(f64::NAN), asked.nans.len() as u64));
    }
    let distinct = found.len() as u64;
    let (values, counts) = found.into_iter().map(|(value, count)| (value, count.into())).unzip();
    Ok(Value::Map(vec![
        ("values", Value::List(values)),
        ("counts", Value::List(counts)),
        ("distinct", distinct.into()),
    ]))
}
