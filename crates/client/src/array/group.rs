//! Groups of the elements of an axis: by the values of a variable, or by a part of their dates, as xarray's `groupby`
//! makes them.

use gristmill_array::MAX_LABELS;
use gristmill_format::{Dataset, Variable};
use gristmill_kernel::ArrayType;

use super::calendar::Calendar;
use super::coordinate;
use super::labels::{AxisCoordinate, Labels};
use super::time::{DAY, HOUR, Instant, TimeUnits, shown_year};
use crate::ClientError;

/// A part of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DatePart {
    Year,
    Season,
    Quarter,
    Month,
    Day,
    DayOfYear,
    Hour,
}

/// Parts of dates, by name.
const PARTS: [(&str, DatePart); 7] = [
    ("year", DatePart::Year),
    ("season", DatePart::Season),
    ("quarter", DatePart::Quarter),
    ("month", DatePart::Month),
    ("day", DatePart::Day),
    ("dayofyear", DatePart::DayOfYear),
    ("hour", DatePart::Hour),
];

/// Seasons, named by the initials of their months. Their groups are in alphabetical order.
const SEASONS: [&str; 4] = ["DJF", "JJA", "MAM", "SON"];

impl DatePart {
    fn value_at(self, calendar: Calendar, instant: Instant) -> i32 {
        let day = instant.div_euclid(DAY);
        let date = calendar.date(day);
        // Years are within 200,000, so every part fits an i32.
        (match self {
            DatePart::Year => shown_year(calendar, date.year),
            // Index in SEASONS.
            DatePart::Season => [0, 2, 1, 3][(date.month % 12 / 3) as usize],
            DatePart::Quarter => i64::from((date.month - 1) / 3 + 1),
            DatePart::Month => date.month.into(),
            DatePart::Day => date.day.into(),
            DatePart::DayOfYear => calendar.day_of_year(day),
            DatePart::Hour => instant.rem_euclid(DAY) / HOUR,
        }) as i32
    }
}

/// The groups of the elements of an axis.
#[derive(Debug)]
pub(super) struct Grouped {
    /// The group of each element; -1 for an element without a group.
    pub labels: Vec<i64>,
    /// The coordinate of the groups, ascending.
    pub coordinate: AxisCoordinate,
}

/// Groups the elements `taken` of an axis of a variable. `by` is a variable with that axis, or a variable of times and
/// a part of a date, as in `time.month`.
///
/// # Errors
/// Returns an error if `by` is neither, if its variable has other axes or does not hold numbers, or if the units or the
/// calendar of the times cannot be read.
pub(super) fn group_by(
    dataset: &Dataset,
    variable: &Variable,
    axis: usize,
    taken: &[usize],
    by: &str,
) -> Result<Grouped, ClientError> {
    if dataset.variables.iter().any(|other| other.path == by) {
        return by_values(dataset, variable, axis, taken, by);
    }
    let parts = || PARTS.map(|(name, _)| name).join(", ");
    let found = by.rsplit_once('.').and_then(|(name, part)| {
        let part = PARTS.iter().find(|(name, _)| *name == part)?;
        dataset.variables.iter().find(|other| other.path == name).map(|times| (times, *part))
    });
    let Some((times, (name, part))) = found else {
        return Err(ClientError::Usage(format!(
            "'{by}' is neither a variable to group by nor a part of a date; write DIM=VARIABLE, or TIME.PART with one of {}",
            parts()
        )));
    };
    coordinate::check_axis(times, variable, axis)?;
    let Some(units) = TimeUnits::from_variable(times)? else {
        return Err(ClientError::Usage(format!(
            "{by}: {} has no units as in 'days since 2001-01-01', so it has no dates",
            times.path
        )));
    };
    let values = coordinate::values(dataset, times)?.values;
    let of = |at: &usize| units.instant(*values.get(*at)?).map(|at| part.value_at(units.calendar, at));
    let keys: Vec<Option<i32>> = taken.iter().map(of).collect();
    let groups = distinct(keys.iter().flatten().copied());
    let at = |key: &Option<i32>| {
        key.and_then(|key| groups.binary_search(&key).ok()).map_or(-1, |place| place as i64)
    };
    let labels = keys.iter().map(at).collect();
    let long_name = super::netcdf::NetcdfAttribute::Text(format!("{name} of {}", times.path));
    let texts = || groups.iter().filter_map(|season| SEASONS.get(*season as usize));
    let coordinate = AxisCoordinate {
        name: name.to_owned(),
        labels: match part {
            DatePart::Season => Labels::Texts(texts().map(|text| (*text).to_owned()).collect()),
            _ => Labels::Whole(groups.clone()),
        },
        units: None,
        time: None,
        attributes: vec![("long_name".to_owned(), long_name)],
    };
    Ok(Grouped { labels, coordinate })
}

fn by_values(
    dataset: &Dataset,
    variable: &Variable,
    axis: usize,
    taken: &[usize],
    by: &str,
) -> Result<Grouped, ClientError> {
    let found = dataset.variable(by)?;
    coordinate::check_axis(found, variable, axis)?;
    let all = coordinate::values(dataset, found)?;
    // -0.0 and +0.0 are one group.
    let key = |at: &usize| all.values.get(*at).copied().filter(|x| !x.is_nan()).map(|x| x + 0.0);
    let keys: Vec<Option<f64>> = taken.iter().map(key).collect();
    let mut groups: Vec<f64> = keys.iter().flatten().copied().collect();
    groups.sort_unstable_by(f64::total_cmp);
    groups.dedup();
    let at = |key: &Option<f64>| {
        let found = key.and_then(|key| groups.binary_search_by(|group| group.total_cmp(&key)).ok());
        found.map_or(-1, |place| place as i64)
    };
    let labels = keys.iter().map(at).collect();
    let whole: Option<Vec<i32>> = match all.dtype {
        ArrayType::Number(dtype) if !dtype.is_float() => {
            groups.iter().map(|x| (f64::from(*x as i32) == *x).then_some(*x as i32)).collect()
        }
        _ => None,
    };
    let mut coordinate = AxisCoordinate::new(found, by, groups);
    if let Some(whole) = whole {
        coordinate.labels = Labels::Whole(whole);
    }
    Ok(Grouped { labels, coordinate })
}

/// Each key once, ascending.
fn distinct(keys: impl Iterator<Item = i32>) -> Vec<i32> {
    let mut all: Vec<i32> = keys.collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Checks, before labels are made, that there are no more than a request may have.
pub(super) fn check_count(what: &str, count: u64) -> Result<(), ClientError> {
    if count <= MAX_LABELS {
        return Ok(());
    }
    Err(ClientError::Usage(format!("{what}: {count} groups are more than {MAX_LABELS}; make longer ones")))
}
