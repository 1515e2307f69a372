//! Lloyd's algorithm from the first k points.

use gristmill_conformance::Answer;
use gristmill_kernel::{DType, KernelError, Position, Value};

use super::{Params, floats, param};

struct Assigned {
    labels: Vec<usize>,
    inertia: f64,
}

fn assign(points: &[Vec<f64>], centres: &[Vec<f64>]) -> Assigned {
    let squared_distance =
        |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
    let mut assigned = Assigned { labels: Vec::new(), inertia: 0.0 };
    for point in points {
        let mut best = (0, f64::INFINITY);
        for (n, centre) in centres.iter().enumerate() {
            let distance = squared_distance(point, centre);
            if distance < best.1 {
                best = (n, distance);
            }
        }
        assigned.labels.push(best.0);
        assigned.inertia += best.1;
    }
    assigned
}

fn count(labels: &[usize], centre: usize) -> u64 {
    labels.iter().filter(|label| **label == centre).count() as u64
}

/// Computes the mean of the points of each centre. A centre without points stays.
fn means(points: &[Vec<f64>], labels: &[usize], centres: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mean = |(n, old): (usize, &Vec<f64>)| {
        let coordinate = |dim: usize| {
            let own = points.iter().zip(labels).filter(|(_, label)| **label == n);
            match count(labels, n) {
                0 => old[dim],
                count => own.map(|(point, _)| point[dim]).sum::<f64>() / count as f64,
            }
        };
        (0..old.len()).map(coordinate).collect()
    };
    centres.iter().enumerate().map(mean).collect()
}

/// Computes the mean of the variances of the coordinates.
fn variance(points: &[Vec<f64>]) -> f64 {
    let (n, dims) = (points.len() as f64, points[0].len());
    let coordinate = |dim: usize| {
        let mean = points.iter().map(|point| point[dim]).sum::<f64>() / n;
        points.iter().map(|point| (point[dim] - mean).powi(2)).sum::<f64>() / n
    };
    (0..dims).map(coordinate).sum::<f64>() / dims as f64
}

/// Computes the answer for `init=first`.
pub fn answer(params: &Params, dtype: DType, data: &[u8]) -> Answer {
    let number = |name: &str, default: &'static str| param(params, name, default).parse::<f64>().unwrap();
    let (dims, k) = (number("dims", "") as usize, number("k", "") as usize);
    let points: Vec<Vec<f64>> = floats(dtype, data).chunks_exact(dims).map(<[f64]>::to_vec).collect();
    let refused =
        || Answer::from(Err(KernelError::Domain { kernel: "kmeans", why: "there is no answer".into() }));
    if points.len() < k || points.iter().flatten().any(|x| !x.is_finite()) {
        return refused();
    }
    let mut centres = points[..k].to_vec();
    let settled = number("tol", "1e-4") * variance(&points);
    let mut before: Option<Vec<usize>> = None;
    let mut iterations = 0.0;
    loop {
        iterations += 1.0;
        let now = assign(&points, &centres);
        let moved = means(&points, &now.labels, &centres);
        let squares = centres.iter().flatten().zip(moved.iter().flatten()).map(|(a, b)| (a - b) * (a - b));
        let shift: f64 = squares.sum();
        let changed = before.map(|before| before.iter().zip(&now.labels).filter(|(a, b)| a != b).count());
        let few = match (param(params, "delta", ""), changed) {
            ("", _) | (_, None) => false,
            (delta, Some(changed)) => changed as f64 <= delta.parse::<f64>().unwrap() * points.len() as f64,
        };
        (centres, before) = (moved, Some(now.labels));
        if few || shift <= settled || iterations >= number("max_iter", "300") {
            break;
        }
    }
    let last = assign(&points, &centres);
    let list = |values: Vec<Value>| Value::List(values);
    let mut values = vec![
        (
            "centers",
            list(centres.iter().map(|c| list(c.iter().map(|x| Value::float(*x)).collect())).collect()),
        ),
        ("counts", list((0..k).map(|n| count(&last.labels, n).into()).collect())),
        ("inertia", Value::Float(last.inertia)),
        ("iterations", Value::Int(iterations as i128)),
    ];
    let mut rows = Vec::new();
    if param(params, "labels", "false") == "true" {
        values.push(("shape", list(vec![Value::from(points.len() as u64)])));
        values.push(("type", Value::Text("i32".into())));
        let bytes = last.labels.iter().flat_map(|label| (*label as i32).to_le_bytes()).collect();
        rows.push((Position::of_record(0), bytes));
    }
    Answer { value: Ok(Value::Map(values)), rows }
}
