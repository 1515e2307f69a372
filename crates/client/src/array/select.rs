//! What is taken of each axis, from names.

use std::str::FromStr;

use gristmill_array::{Selection, Take};
use gristmill_format::{Dataset, Variable};

use super::calendar::Calendar;
use super::coordinate::{self, Coordinate};
use super::partial_date::{PartialDate, Unit, finest};
use super::time::{Instant, TimeUnits};
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
    /// Elements whose times lie between these two dates, both included as far as they are written.
    Dates(Option<PartialDate>, Option<PartialDate>),
    /// The elements of a date. It is one element, and the axis is dropped, where the times are told no finer than it; as pandas
    /// has it.
    Date(PartialDate),
}

impl Part {
    /// By values: `LOW:HIGH`, either may be left out, or one number; dates instead of numbers.
    ///
    /// # Errors
    /// What is neither.
    pub fn values(text: &str) -> Result<Part, String> {
        if let Some(dates) = Part::dates(text) {
            return Ok(dates);
        }
        let number = |text: &str| match f64::from_str(text.trim()) {
            Ok(x) if !x.is_nan() => Ok(x),
            _ => Err(format!(
                "'{text}' is no number and no date; write LOW:HIGH, as in lat=-30:30 or time=2001-01:2001-06, or one of them"
            )),
        };
        let end = |text: &str| if text.trim().is_empty() { Ok(None) } else { number(text).map(Some) };
        match text.split_once(':') {
            Some((low, high)) => Ok(Part::Values(end(low)?, end(high)?)),
            None => Ok(Part::Value(number(text)?)),
        }
    }

    /// A date, or two of which one may be left out. A time of day has colons of its own, so the one is looked for that parts two
    /// dates.
    fn dates(text: &str) -> Option<Part> {
        let end = |text: &str| match text.trim() {
            "" => Some(None),
            // A year beside a date that is longer.
            year if year.len() == 4 && year.parse::<u32>().is_ok() => {
                Some(year.parse().ok().map(PartialDate::year))
            }
            date => PartialDate::parse(date).map(Some),
        };
        if let Some(one) = PartialDate::parse(text.trim()) {
            return Some(Part::Date(one));
        }
        let parted = text.match_indices(':').find_map(|(at, _)| {
            let (low, high) = (end(&text[..at])?, end(&text[at + 1..])?);
            // Years alone may be numbers; what they are is told by the coordinate.
            let longer = |date: &PartialDate| date.unit() != Unit::Year;
            (low.as_ref().is_some_and(longer) || high.as_ref().is_some_and(longer)).then_some((low, high))
        });
        parted.map(|(low, high)| Part::Dates(low, high))
    }

    /// Of an axis of times, numbers of four digits are years.
    fn of_times(self) -> Part {
        let year = |x: f64| {
            ((1000.0..10_000.0).contains(&x) && x.fract() == 0.0).then(|| PartialDate::year(x as i64))
        };
        let end = |x: Option<f64>| x.map_or(Some(None), |x| year(x).map(Some));
        match self {
            Part::Value(x) => year(x).map_or(self, Part::Date),
            Part::Values(low, high) if low.is_some() || high.is_some() => match (end(low), end(high)) {
                (Some(low), Some(high)) => Part::Dates(low, high),
                _ => self,
            },
            part => part,
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
        let times = match part {
            Part::Index(_) => None,
            _ => times(dataset, variable, at)?,
        };
        let part = if times.is_some() { part.of_times() } else { *part };
        let take = match &part {
            Part::Index(take) => *take,
            Part::Dates(..) | Part::Date(_) => of_dates(times.as_ref(), said, &part)?,
            Part::Values(low, high) => {
                let coordinate = coordinate(dataset, variable, at)?;
                let as_here = |end: &Option<f64>| end.map(|end| coordinate.as_here(end));
                between(&coordinate.values, said, as_here(low), as_here(high), f64::to_string)?
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

/// The times of a coordinate, in order.
struct Times {
    units: TimeUnits,
    instants: Vec<Instant>,
}

/// The times of the coordinate of an axis; `None` where it has none, or no times.
fn times(dataset: &Dataset, variable: &Variable, axis: usize) -> Result<Option<Times>, ClientError> {
    let Some(found) = coordinate::of(dataset, variable, axis) else { return Ok(None) };
    let Some(units) = TimeUnits::of(found)? else { return Ok(None) };
    let values = coordinate::values(dataset, found)?.values;
    let instants: Option<Vec<Instant>> = values.iter().map(|x| units.instant(*x)).collect();
    Ok(instants.map(|instants| Times { units, instants }))
}

/// The elements of dates.
fn of_dates(times: Option<&Times>, name: &str, part: &Part) -> Result<Take, ClientError> {
    let Some(Times { units, instants }) = times else {
        return Err(ClientError::Usage(format!(
            "{name} has no times to compare with a date: its coordinate has no units as in 'days since 2001-01-01', or is missing"
        )));
    };
    let span = |date: &PartialDate| {
        date.span(units.calendar)
            .ok_or_else(|| ClientError::Usage(format!("{name}: there is no such date in its calendar")))
    };
    let (low, high) = match part {
        Part::Date(date) => (Some(span(date)?), Some(span(date)?)),
        Part::Dates(low, high) => (low.as_ref().map(span).transpose()?, high.as_ref().map(span).transpose()?),
        _ => (None, None),
    };
    // Other calendars are cftime's in xarray, which never drops an axis for a date.
    let dropping = matches!(units.calendar, Calendar::Standard | Calendar::ProlepticGregorian);
    if let (Part::Date(date), Some((first, _))) = (part, low)
        && dropping
        && date.unit() >= finest(instants)
    {
        let found = instants.iter().position(|at| *at == first);
        return found.map(|at| Take::At(at as i64)).ok_or_else(|| {
            ClientError::Usage(format!(
                "no element of {name} is at {}; give a range, as in {name}=LOW:HIGH",
                units.text(first)
            ))
        });
    }
    between(instants, name, low.map(|(first, _)| first), high.map(|(_, next)| next - 1), |at| units.text(*at))
}

/// The elements between two values: a coordinate ascends or descends, so they lie side by side.
fn between<T: PartialOrd + Copy>(
    values: &[T],
    name: &str,
    low: Option<T>,
    high: Option<T>,
    told: impl Fn(&T) -> String,
) -> Result<Take, ClientError> {
    let ordered = values.is_sorted() || values.is_sorted_by(|a, b| a >= b);
    // NaN is equal to nothing, itself included.
    if !ordered || values.iter().any(|x| x.partial_cmp(x).is_none()) {
        return Err(ClientError::Usage(format!(
            "coordinate {name} neither ascends nor descends; select by index with --isel {name}=START:STOP"
        )));
    }
    if low.zip(high).is_some_and(|(low, high)| low > high) {
        return Err(ClientError::Usage(format!("{name}: the lower end comes first, as in {name}=LOW:HIGH")));
    }
    let inside = |x: &T| low.is_none_or(|low| *x >= low) && high.is_none_or(|high| *x <= high);
    let start = values.iter().position(inside).unwrap_or(0);
    let count = values.iter().skip(start).take_while(|x| inside(x)).count();
    if count == 0 {
        let ends = values.first().zip(values.last());
        let lies = ends.map_or("has no values".into(), |(first, last)| {
            format!("goes from {} to {}", told(first), told(last))
        });
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
        assert_eq!(between(&up, "lat", Some(-30.0), Some(30.0), f64::to_string).unwrap(), slice(1, 4));
        assert_eq!(between(&up, "lat", None, Some(-1.0), f64::to_string).unwrap(), slice(0, 2));
        let empty = between(&up, "lat", Some(70.0), None, f64::to_string).unwrap_err().to_string();
        assert!(empty.contains("from -60 to 60"), "{empty}");
        assert!(between(&up, "lat", Some(30.0), Some(-30.0), f64::to_string).is_err());
        let down = [60.0, 30.0, 0.0];
        assert_eq!(between(&down, "lat", Some(0.0), Some(30.0), f64::to_string).unwrap(), slice(1, 3));
        assert!(between(&[0.0, 2.0, 1.0], "lat", None, None, f64::to_string).is_err());
        assert!(between(&[0.0, f64::NAN], "lat", None, None, f64::to_string).is_err());
    }

    #[test]
    fn parts_are_read_as_people_write_them() {
        assert_eq!(Part::values("-30:30").unwrap(), Part::Values(Some(-30.0), Some(30.0)));
        assert_eq!(Part::values(":1e3").unwrap(), Part::Values(None, Some(1e3)));
        assert_eq!(Part::values("7.5").unwrap(), Part::Value(7.5));
        assert!(Part::values("a:b").is_err() && Part::values("nan").is_err());
        assert_eq!(Part::values("2001:2003").unwrap(), Part::Values(Some(2001.0), Some(2003.0)));
        let date = |text| PartialDate::parse(text).unwrap();
        assert_eq!(Part::values("2001-01").unwrap(), Part::Date(date("2001-01")));
        assert_eq!(Part::values("2001-01-01T06:30").unwrap(), Part::Date(date("2001-01-01T06:30")));
        let clocks = Part::Dates(Some(date("2001-01-01T06:30")), Some(date("2001-01-02 12:00")));
        assert_eq!(Part::values("2001-01-01T06:30:2001-01-02 12:00").unwrap(), clocks);
        assert_eq!(Part::values(":2001-06").unwrap(), Part::Dates(None, Some(date("2001-06"))));
        assert_eq!(
            Part::values("2000:2001-06").unwrap(),
            Part::Dates(Some(PartialDate::year(2000)), Some(date("2001-06")))
        );
        assert_eq!(Part::index("0:12").unwrap(), Part::Index(slice(0, 12)));
        assert_eq!(Part::index("-1").unwrap(), Part::Index(Take::At(-1)));
        assert!(Part::index("1,2").is_err());
    }
}
