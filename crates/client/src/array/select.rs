//! What is taken of each axis, from names.

use std::str::FromStr;

use gristmill_array::{Selection, Take};
use gristmill_format::{Dataset, Variable};

use super::coordinate::{self, Coordinate};
use crate::ClientError;

/// What is taken of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part {
    /// By index.
    Index(Take),
    /// Elements whose coordinate lies between these two, both included.
    Values(Option<f64>, Option<f64>),
    /// The element whose coordinate is this number; the axis is dropped.
    Value(f64),
}

impl Part {
    /// By values: `LOW:HIGH`, either may be left out, or one number.
    ///
    /// # Errors
    /// What is no number.
    pub fn values(text: &str) -> Result<Part, String> {
        let number = |text: &str| match f64::from_str(text.trim()) {
            Ok(x) if !x.is_nan() => Ok(x),
            _ => Err(format!("'{text}' is no number; write LOW:HIGH, as in lat=-30:30, or one number")),
        };
        let end = |text: &str| if text.trim().is_empty() { Ok(None) } else { number(text).map(Some) };
        match text.split_once(':') {
            Some((low, high)) => Ok(Part::Values(end(low)?, end(high)?)),
            None => Ok(Part::Value(number(text)?)),
        }
    }

    /// By index: `START:STOP:STEP` as Python has it, or one index.
    ///
    /// # Errors
    /// What is no index.
    pub fn index(text: &str) -> Result<Part, String> {
        let Selection(takes) =
            text.parse().map_err(|error: gristmill_array::ArrayError| error.to_string())?;
        match takes[..] {
            [take] => Ok(Part::Index(take)),
            _ => Err(format!("'{text}' is not of one axis; write START:STOP:STEP, or one index")),
        }
    }
}

/// How an axis is named.
pub(super) fn name(variable: &Variable, axis: usize) -> String {
    match variable.dimensions.get(axis) {
        Some(name) if !name.is_empty() => name.clone(),
        _ => format!("dim_{axis}"),
    }
}

/// The axis of this name, or of this number, negative from the end.
pub(super) fn axis(variable: &Variable, said: &str) -> Result<usize, ClientError> {
    let axes = variable.shape.len();
    let named: Vec<usize> = (0..axes).filter(|axis| name(variable, *axis) == said).collect();
    let numbered = said.parse::<i64>().ok().and_then(|number| {
        let at = if number < 0 { number + axes as i64 } else { number };
        usize::try_from(at).ok().filter(|at| *at < axes)
    });
    match (&named[..], numbered) {
        ([axis], _) => Ok(*axis),
        ([], Some(axis)) => Ok(axis),
        ([], None) => {
            let names: Vec<String> = (0..axes).map(|axis| name(variable, axis)).collect();
            Err(ClientError::Usage(format!(
                "{} has no axis {said}; it has {}",
                variable.path,
                if names.is_empty() { "none, it is a single number".into() } else { names.join(", ") }
            )))
        }
        _ => Err(ClientError::Usage(format!(
            "several axes of {} are called {said}; give its number",
            variable.path
        ))),
    }
}

/// The selection that parts of axes make.
pub(super) fn selection(
    dataset: &Dataset,
    variable: &Variable,
    parts: &[(String, Part)],
) -> Result<Selection, ClientError> {
    let mut takes = vec![None; variable.shape.len()];
    for (said, part) in parts {
        let at = axis(variable, said)?;
        let take = match part {
            Part::Index(take) => *take,
            Part::Values(low, high) => {
                let coordinate = coordinate(dataset, variable, at)?;
                let as_here = |end: &Option<f64>| end.map(|end| coordinate.as_here(end));
                between(&coordinate.values, said, as_here(low), as_here(high))?
            }
            Part::Value(value) => {
                let coordinate = coordinate(dataset, variable, at)?;
                let wanted = coordinate.as_here(*value);
                let found = coordinate.values.iter().position(|x| *x == wanted).ok_or_else(|| {
                    ClientError::Usage(format!(
                        "no element of {said} is {value}; give a range, as in {said}=LOW:HIGH"
                    ))
                })?;
                Take::At(found as i64)
            }
        };
        if takes[at].replace(take).is_some() {
            return Err(ClientError::Usage(format!("axis {said} is selected twice")));
        }
    }
    Ok(Selection(takes.into_iter().map(|take| take.unwrap_or(Take::ALL)).collect()))
}

fn coordinate(dataset: &Dataset, variable: &Variable, axis: usize) -> Result<Coordinate, ClientError> {
    let Some(found) = coordinate::of(dataset, variable, axis) else {
        let name = name(variable, axis);
        return Err(ClientError::Usage(format!(
            "there is no coordinate {name} to select by; select by index with --isel {name}=START:STOP"
        )));
    };
    coordinate::values(dataset, found)
}

/// The elements between two values: a coordinate ascends or descends, so they lie side by side.
fn between(values: &[f64], name: &str, low: Option<f64>, high: Option<f64>) -> Result<Take, ClientError> {
    let ordered = values.is_sorted() || values.is_sorted_by(|a, b| a >= b);
    if !ordered || values.iter().any(|x| x.is_nan()) {
        return Err(ClientError::Usage(format!(
            "coordinate {name} neither ascends nor descends; select by index with --isel {name}=START:STOP"
        )));
    }
    if low.zip(high).is_some_and(|(low, high)| low > high) {
        return Err(ClientError::Usage(format!("{name}: the lower end comes first, as in {name}=LOW:HIGH")));
    }
    let inside = |x: &f64| low.is_none_or(|low| *x >= low) && high.is_none_or(|high| *x <= high);
    let start = values.iter().position(inside).unwrap_or(0);
    let count = values.iter().skip(start).take_while(|x| inside(x)).count();
    if count == 0 {
        let ends = values.first().zip(values.last());
        let lies =
            ends.map_or("has no values".into(), |(first, last)| format!("goes from {first} to {last}"));
        return Err(ClientError::Usage(format!("no element of {name} lies there; it {lies}")));
    }
    Ok(Take::Slice { start: Some(start as i64), stop: Some((start + count) as i64), step: 1 })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn slice(start: i64, stop: i64) -> Take {
        Take::Slice { start: Some(start), stop: Some(stop), step: 1 }
    }

    #[test]
    fn elements_between_two_values_both_included() {
        let up = [-60.0, -30.0, 0.0, 30.0, 60.0];
        assert_eq!(between(&up, "lat", Some(-30.0), Some(30.0)).unwrap(), slice(1, 4));
        assert_eq!(between(&up, "lat", None, Some(-1.0)).unwrap(), slice(0, 2));
        let empty = between(&up, "lat", Some(70.0), None).unwrap_err().to_string();
        assert!(empty.contains("from -60 to 60"), "{empty}");
        assert!(between(&up, "lat", Some(30.0), Some(-30.0)).is_err());
        let down = [60.0, 30.0, 0.0];
        assert_eq!(between(&down, "lat", Some(0.0), Some(30.0)).unwrap(), slice(1, 3));
        assert!(between(&[0.0, 2.0, 1.0], "lat", None, None).is_err());
        assert!(between(&[0.0, f64::NAN], "lat", None, None).is_err());
    }

    #[test]
    fn parts_are_read_as_people_write_them() {
        assert_eq!(Part::values("-30:30").unwrap(), Part::Values(Some(-30.0), Some(30.0)));
        assert_eq!(Part::values(":1e3").unwrap(), Part::Values(None, Some(1e3)));
        assert_eq!(Part::values("7.5").unwrap(), Part::Value(7.5));
        assert!(Part::values("a:b").is_err() && Part::values("nan").is_err());
        assert_eq!(Part::index("0:12").unwrap(), Part::Index(slice(0, 12)));
        assert_eq!(Part::index("-1").unwrap(), Part::Index(Take::At(-1)));
        assert!(Part::index("1,2").is_err());
    }
}
