//! Selections of axes, by index, by the values of a coordinate or by date.

use std::str::FromStr;

use gristmill_array::{ArrayError, Selection, Take};
use gristmill_format::{Dataset, Variable};

use super::axis_names;
use super::calendar::Calendar;
use super::coordinate::{self, Coordinate};
use super::partial_date::{PartialDate, Unit, finest};
use super::time::{Instant, TimeUnits};
use crate::ClientError;

/// The selection along one axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AxisSelection {
    /// Elements by index.
    Index(Take),
    /// Elements whose coordinate lies between these two, both included.
    Values(Option<f64>, Option<f64>),
    /// The element whose coordinate is this number; the axis is dropped.
    Value(f64),
    /// Elements whose times lie between these two dates. The end includes the whole year, month or other unit that it
    /// names.
    Dates(Option<PartialDate>, Option<PartialDate>),
    /// The elements of a date. If the times are no finer than the date, it is one element and the axis is dropped, as
    /// in pandas.
    Date(PartialDate),
}

impl AxisSelection {
    /// Reads a selection by values: `LOW:HIGH`, where either may be left out, or one value. Values are numbers or
    /// dates.
    ///
    /// # Errors
    /// Returns a message if a value is neither a number nor a date.
    pub fn values(text: &str) -> Result<AxisSelection, String> {
        if let Some(dates) = AxisSelection::dates(text) {
            return Ok(dates);
        }
        let number = |text: &str| match f64::from_str(text.trim()) {
            Ok(x) if !x.is_nan() => Ok(x),
            _ => Err(format!(
                "'{text}' is neither a number nor a date; write LOW:HIGH, as in lat=-30:30 or time=2001-01:2001-06, or one of them"
            )),
        };
        let end = |text: &str| if text.trim().is_empty() { Ok(None) } else { number(text).map(Some) };
        match text.split_once(':') {
            Some((low, high)) => Ok(AxisSelection::Values(end(low)?, end(high)?)),
            None => Ok(AxisSelection::Value(number(text)?)),
        }
    }

    /// Reads a date, or two dates of which one may be left out. A time of day has colons too, so each colon is tried as
    /// the separator.
    fn dates(text: &str) -> Option<AxisSelection> {
        let end = |text: &str| match text.trim() {
            "" => Some(None),
            // A year is a date if the other end is a longer date.
            year if year.len() == 4 && year.parse::<u32>().is_ok() => {
                Some(year.parse().ok().map(PartialDate::year))
            }
            date => PartialDate::parse(date).map(Some),
        };
        if let Some(one) = PartialDate::parse(text.trim()) {
            return Some(AxisSelection::Date(one));
        }
        let parted = text.match_indices(':').find_map(|(at, _)| {
            let (low, high) = (end(&text[..at])?, end(&text[at + 1..])?);
            // Years alone may be numbers; the coordinate decides.
            let longer = |date: &PartialDate| date.unit() != Unit::Year;
            (low.as_ref().is_some_and(longer) || high.as_ref().is_some_and(longer)).then_some((low, high))
        });
        parted.map(|(low, high)| AxisSelection::Dates(low, high))
    }

    /// Turns numbers of four digits into years, for an axis of times.
    fn as_years(self) -> AxisSelection {
        let year = |x: f64| {
            ((1000.0..10_000.0).contains(&x) && x.fract() == 0.0).then(|| PartialDate::year(x as i64))
        };
        let end = |x: Option<f64>| x.map_or(Some(None), |x| year(x).map(Some));
        match self {
            AxisSelection::Value(x) => year(x).map_or(self, AxisSelection::Date),
            AxisSelection::Values(low, high) if low.is_some() || high.is_some() => {
                match (end(low), end(high)) {
                    (Some(low), Some(high)) => AxisSelection::Dates(low, high),
                    _ => self,
                }
            }
            part => part,
        }
    }

    /// Reads a selection by index: `START:STOP:STEP` as in Python, or one index.
    ///
    /// # Errors
    /// Returns a message if the text is not such a selection of one axis.
    pub fn index(text: &str) -> Result<AxisSelection, String> {
        let Selection(takes) = text.parse().map_err(|error: ArrayError| error.to_string())?;
        match takes[..] {
            [take] => Ok(AxisSelection::Index(take)),
            _ => Err(format!("'{text}' is not of one axis; write START:STOP:STEP, or one index")),
        }
    }
}

/// Resolves selections of some axes to a selection of the variable.
pub(super) fn selection(
    dataset: &Dataset,
    variable: &Variable,
    parts: &[(String, AxisSelection)],
) -> Result<Selection, ClientError> {
    let mut takes = vec![None; variable.shape.len()];
    for (name_or_number, part) in parts {
        let at = axis_names::find(variable, name_or_number)?;
        let times = match part {
            AxisSelection::Index(_) => None,
            _ => times(dataset, variable, at)?,
        };
        let part = if times.is_some() { part.as_years() } else { *part };
        let take = match &part {
            AxisSelection::Index(take) => *take,
            AxisSelection::Dates(..) | AxisSelection::Date(_) => {
                take_dates(times.as_ref(), name_or_number, &part)?
            }
            AxisSelection::Values(low, high) => {
                let coordinate = coordinate(dataset, variable, at)?;
                let rounded = |end: &Option<f64>| end.map(|end| coordinate.rounded(end));
                take_between(&coordinate.values, name_or_number, rounded(low), rounded(high), f64::to_string)?
            }
            AxisSelection::Value(value) => {
                let coordinate = coordinate(dataset, variable, at)?;
                let wanted = coordinate.rounded(*value);
                let found = coordinate.values.iter().position(|x| *x == wanted).ok_or_else(|| {
                    ClientError::Usage(format!(
                        "no element of {name_or_number} is {value}; give a range, as in {name_or_number}=LOW:HIGH"
                    ))
                })?;
                Take::At(found as i64)
            }
        };
        if takes[at].replace(take).is_some() {
            return Err(ClientError::Usage(format!("axis {name_or_number} is selected twice")));
        }
    }
    Ok(Selection(takes.into_iter().map(|take| take.unwrap_or(Take::ALL)).collect()))
}

fn coordinate(dataset: &Dataset, variable: &Variable, axis: usize) -> Result<Coordinate, ClientError> {
    let Some(found) = coordinate::find(dataset, variable, axis) else {
        let name = axis_names::name(variable, axis);
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

/// Returns the times of the coordinate of an axis, or `None` if it has no coordinate of times.
fn times(dataset: &Dataset, variable: &Variable, axis: usize) -> Result<Option<Times>, ClientError> {
    let Some(found) = coordinate::find(dataset, variable, axis) else { return Ok(None) };
    let Some(units) = TimeUnits::from_variable(found)? else { return Ok(None) };
    let values = coordinate::values(dataset, found)?.values;
    let instants: Option<Vec<Instant>> = values.iter().map(|x| units.instant(*x)).collect();
    Ok(instants.map(|instants| Times { units, instants }))
}

/// Selects the elements of a date, or between two dates.
fn take_dates(times: Option<&Times>, name: &str, part: &AxisSelection) -> Result<Take, ClientError> {
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
        AxisSelection::Date(date) => (Some(span(date)?), Some(span(date)?)),
        AxisSelection::Dates(low, high) => {
            (low.as_ref().map(span).transpose()?, high.as_ref().map(span).transpose()?)
        }
        _ => (None, None),
    };
    // In xarray other calendars use cftime, which never drops an axis for a date.
    let dropping = matches!(units.calendar, Calendar::Standard | Calendar::ProlepticGregorian);
    if let (AxisSelection::Date(date), Some((first, _))) = (part, low)
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
    take_between(instants, name, low.map(|(first, _)| first), high.map(|(_, next)| next - 1), |at| {
        units.text(*at)
    })
}

/// Selects the elements between two values. They are contiguous because a coordinate ascends or descends.
fn take_between<T: PartialOrd + Copy>(
    values: &[T],
    name: &str,
    low: Option<T>,
    high: Option<T>,
    text: impl Fn(&T) -> String,
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
            format!("goes from {} to {}", text(first), text(last))
        });
        return Err(ClientError::Usage(format!("no element of {name} lies there; it {lies}")));
    }
    Ok(Take::Slice { start: Some(start as i64), stop: Some((start + count) as i64), step: 1 })
}

#[cfg(test)]
mod tests;
