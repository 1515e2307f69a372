//! References of `histogram` and `lookup`: exact comparisons of each element with each edge.

use std::cmp::Ordering;

use gristmill_conformance::Answer;
use gristmill_kernel::{KernelError, Position, Value};

use super::{NaiveRequest, Number};

/// Compares an element with a float. Neither is NaN.
fn compare(x: Number, edge: f64) -> Ordering {
    match x {
        Number::Float(x) => x.partial_cmp(&edge).unwrap(),
        // No element is beyond 2^64, and below it casts are exact.
        Number::Int(_) if edge >= 2f64.powi(64) => Ordering::Less,
        Number::Int(_) if edge <= -(2f64.powi(64)) => Ordering::Greater,
        Number::Int(n) => n.cmp(&(edge.floor() as i128)).then(0.0.partial_cmp(&edge.fract().abs()).unwrap()),
    }
}

/// Computes floats that enclose the smallest and the largest value.
fn enclosing(request: &NaiveRequest<'_>) -> Option<(f64, f64)> {
    let least = |a: Number, b: Number| match (a, b) {
        (Number::Int(a), Number::Int(b)) => a > b,
        (a, b) => a.float() > b.float(),
    };
    let mut values = request.numbers.iter().map(|(_, x)| *x);
    let first = values.next()?;
    let (low, high) = values.fold((first, first), |(low, high), x| {
        (if least(low, x) { x } else { low }, if least(x, high) { x } else { high })
    });
    let (mut from, mut to) = (low.float(), high.float());
    if compare(low, from).is_lt() {
        from = from.next_down();
    }
    if compare(high, to).is_gt() {
        to = to.next_up();
    }
    Some((from, to))
}

pub fn histogram(request: &NaiveRequest<'_>) -> Result<Value, KernelError> {
    let bins: usize = request.param("bins").map_or(10, |bins| bins.parse().unwrap());
    let (mut low, mut high) = match request.param("range") {
        _ if request.data.is_empty() => return Err(request.empty()),
        Some(range) => {
            let (low, high) = range.split_once(':').unwrap();
            (low.parse().unwrap(), high.parse().unwrap())
        }
        None if request.answer_is_nan() => return Err(request.domain()),
        None => enclosing(request).ok_or_else(|| request.empty())?,
    };
    if !(high - low).is_finite() {
        return Err(request.domain());
    }
    if low == high {
        (low, high) = (low - 0.5, high + 0.5);
    }
    let step = (high - low) / bins as f64;
    let edges: Vec<f64> = (0..bins).map(|n| n as f64 * step + low).chain([high]).collect();
    if edges.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(request.domain());
    }
    let count = |n: usize| {
        let within = |x: Number| {
            let below = compare(x, edges[n + 1]);
            compare(x, edges[n]).is_ge() && (below.is_lt() || n + 1 == bins && below.is_eq())
        };
        Value::from(request.numbers.iter().filter(|(_, x)| within(*x)).count() as u64)
    };
    let counts = (0..bins).map(count).collect();
    Ok(Value::Map(vec![
        ("edges", Value::List(edges.iter().map(|edge| Value::Float(*edge)).collect())),
        ("counts", Value::List(counts)),
    ]))
}

pub fn lookup(request: &NaiveRequest<'_>) -> Answer {
    let meets: fn(Number) -> bool = match request.param("where").unwrap() {
        "> 3" => |x| compare(x, 3.0).is_gt(),
        "!= 0" => |x| compare(x, 0.0).is_ne(),
        "> -3 and != 0" => |x| compare(x, -3.0).is_gt() && compare(x, 0.0).is_ne(),
        "!= 0 and != 1" => |x| compare(x, 0.0).is_ne() && compare(x, 1.0).is_ne(),
        "-2..=2" => |x| compare(x, -2.0).is_ge() && compare(x, 2.0).is_le(),
        other => panic!("the condition '{other}' has no reference"),
    };
    let mut found: Vec<u64> =
        request.numbers.iter().filter(|(_, x)| meets(*x)).map(|(index, _)| *index).collect();
    // A NaN meets only conditions without a bound.
    if request.param("where").is_some_and(|condition| condition.starts_with("!=")) {
        found.extend(&request.nans);
        found.sort_unstable();
    }
    let size = request.input.element.unwrap().size();
    let each = (request.record_bytes() / size) as u64;
    let row = |index: &u64| {
        let at = Position { record: index / each, part: index % each };
        (at, request.data[*index as usize * size..][..size].to_vec())
    };
    let rows = if request.flag("count_only") { Vec::new() } else { found.iter().map(row).collect() };
    Answer { value: Ok(Value::Map(vec![("count", (found.len() as u64).into())])), rows }
}
