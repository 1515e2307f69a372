//! Times of the CF conventions (section 4.4): a number of units since a date of a calendar.
//!
//! Times are rounded to microseconds, as in cftime.

use gristmill_format::Variable;

use super::calendar::{Calendar, Date};
use crate::ClientError;

/// Microseconds of a second, an hour and a day.
const SECOND: i64 = 1_000_000;
pub(super) const HOUR: i64 = 3600 * SECOND;
pub(super) const DAY: i64 = 24 * HOUR;

/// Most microseconds between a time and the first day of its calendar: some 146,000 years.
const MAX_INSTANT: f64 = (1u64 << 62) as f64;

/// The units of a time coordinate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeUnits {
    /// The calendar.
    pub calendar: Calendar,
    /// Microseconds of a unit.
    unit: i64,
    /// The time of the number 0.
    from: Instant,
}

/// Microseconds from the beginning of day 0 of a calendar.
pub type Instant = i64;

impl TimeUnits {
    /// Returns the units of a variable, or `None` if they are not a time since a date.
    ///
    /// # Errors
    /// Returns an error if the date cannot be read, or if the calendar is unknown.
    pub(super) fn from_variable(variable: &Variable) -> Result<Option<TimeUnits>, ClientError> {
        let text = |name| variable.attribute(name).and_then(|attribute| attribute.value.text());
        let Some(units) = text("units") else { return Ok(None) };
        TimeUnits::parse(units, text("calendar")).map_err(|why| {
            ClientError::Usage(format!("the times of {} cannot be read: {why}", variable.path))
        })
    }

    /// Reads the attributes `units` and `calendar`. Returns `None` if the units are not "UNIT since DATE".
    ///
    /// # Errors
    /// Returns a message if the date cannot be read or the calendar is unknown.
    pub(super) fn parse(units: &str, calendar: Option<&str>) -> Result<Option<TimeUnits>, String> {
        let lower = units.to_ascii_lowercase();
        let Some((unit, date)) = lower.split_once(" since ") else { return Ok(None) };
        let name = calendar.unwrap_or("standard");
        let calendar =
            Calendar::named(name.trim()).ok_or_else(|| format!("calendar '{name}' is not known here"))?;
        let unit = match unit.trim() {
            "d" | "day" | "days" => DAY,
            "h" | "hr" | "hrs" | "hour" | "hours" => HOUR,
            "min" | "mins" | "minute" | "minutes" => 60 * SECOND,
            "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
            "ms" | "msec" | "msecs" | "millisec" | "millisecs" | "millisecond" | "milliseconds" => 1000,
            "us" | "microsec" | "microsecs" | "microsecond" | "microseconds" => 1,
            "month" | "months" if calendar == Calendar::Days360 => 30 * DAY,
            other => {
                return Err(format!(
                    "'{other}' is not a unit of one length; use days, hours or a shorter unit"
                ));
            }
        };
        let from = instant(calendar, date.trim())
            .ok_or_else(|| format!("'{}' is not a date of calendar {name}", date.trim()))?;
        Ok(Some(TimeUnits { calendar, unit, from }))
    }

    /// Returns the time of a number, or `None` for NaN and for times out of range.
    pub fn instant(&self, number: f64) -> Option<Instant> {
        // Whole units and the rest are multiplied separately: a single product would lose microseconds far from the
        // date.
        let whole = number.trunc();
        if !(whole.abs() * self.unit as f64).is_finite() || whole.abs() * self.unit as f64 > MAX_INSTANT {
            return None;
        }
        let rest = ((number - whole) * self.unit as f64).round() as i64;
        (whole as i64 * self.unit).checked_add(rest)?.checked_add(self.from)
    }

    /// Returns the number of a time.
    pub fn number(&self, instant: Instant) -> f64 {
        let since = i128::from(instant) - i128::from(self.from);
        let (whole, rest) = (since.div_euclid(self.unit.into()), since.rem_euclid(self.unit.into()));
        whole as f64 + rest as f64 / self.unit as f64
    }

    /// Returns a time as a date, with the time of day unless it is midnight: `2001-01-16T12:00:00`.
    pub fn text(&self, instant: Instant) -> String {
        let Date { year, month, day } = self.calendar.date(instant.div_euclid(DAY));
        let rest = instant.rem_euclid(DAY);
        let year = shown_year(self.calendar, year);
        let sign = if year < 0 { "-" } else { "" };
        let mut text = format!("{sign}{:04}-{month:02}-{day:02}", year.abs());
        if rest > 0 {
            let seconds = rest / SECOND;
            text += &format!("T{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        }
        if rest % SECOND > 0 {
            text += format!(".{:06}", rest % SECOND).trim_end_matches('0');
        }
        text
    }
}

/// Returns the written year: in a calendar without a year 0, year -1 is before year 1.
pub(super) fn shown_year(calendar: Calendar, year: i64) -> i64 {
    if year <= 0 && !calendar.has_year_zero() { year - 1 } else { year }
}

/// Reads a date and a time of day: `2001-1-1`, `2001-01-01 06:00:00.5`, `2001-01-01T00:00Z`, `2001-1-1 0:0:0 +1:30`.
fn instant(calendar: Calendar, text: &str) -> Option<Instant> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = rest.find(|c: char| c == 't' || c.is_whitespace()).unwrap_or(rest.len());
    let (date, clock) = rest.split_at(end);
    let mut numbers = date.split('-').map(|part| part.parse::<u32>().ok());
    let year = sign * i64::from(numbers.next()??);
    let mut part = || numbers.next().unwrap_or(Some(1));
    let (month, day) = (part()?, part()?);
    if numbers.next().is_some() || year == 0 && !calendar.has_year_zero() {
        return None;
    }
    let year = if year < 0 && !calendar.has_year_zero() { year + 1 } else { year };
    let day = calendar.day(Date { year, month, day })?;
    let clock = clock.trim_start_matches('t').trim();
    // The zone follows the time. A zone ahead of UTC means an earlier time in UTC.
    let (clock, ahead) = match clock.strip_suffix('z').or_else(|| clock.strip_suffix("utc")) {
        Some(clock) => (clock.trim(), 0),
        None => match clock.rfind(['+', '-']) {
            None => (clock, 0),
            Some(at) => {
                let (clock, zone) = clock.split_at(at);
                let sign = if zone.starts_with('-') { -1 } else { 1 };
                (clock.trim(), sign * offset(zone.get(1..)?)?)
            }
        },
    };
    let clock = if clock.is_empty() { 0 } else { of_day(clock)? };
    (day * DAY).checked_add(clock - ahead)
}

/// `1:30`, `0130` or `1`, in microseconds.
fn offset(text: &str) -> Option<i64> {
    match (text.contains(':'), text.len()) {
        (false, 3 | 4) => {
            let (hours, minutes) = text.split_at_checked(text.len() - 2)?;
            of_day(&format!("{hours}:{minutes}"))
        }
        _ => of_day(text),
    }
}

/// `6`, `6:30`, `6:30:15.5`, in microseconds.
pub(super) fn of_day(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let mut whole = |most: u32| match parts.next() {
        None => Some(0),
        Some(part) => part.parse::<u32>().ok().filter(|n| *n <= most).map(i64::from),
    };
    let (hours, minutes) = (whole(24)?, whole(59)?);
    let seconds = match parts.next() {
        None => 0.0,
        Some(part) => part.parse::<f64>().ok().filter(|s| (0.0..61.0).contains(s))?,
    };
    let none_left = parts.next().is_none();
    none_left.then(|| hours * HOUR + minutes * 60 * SECOND + (seconds * SECOND as f64).round() as i64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn units(units: &str, calendar: &str) -> TimeUnits {
        TimeUnits::parse(units, Some(calendar)).unwrap().unwrap()
    }

    #[test]
    fn numbers_are_the_times_that_cftime_says() {
        // str(cftime.num2date(number, units, calendar))
        for (number, of, calendar, expected) in [
            (0.0, "days since 2001-1-1", "standard", "2001-01-01"),
            (15.5, "days since 2001-01-01 00:00:00", "noleap", "2001-01-16T12:00:00"),
            (59.0, "days since 2000-1-1", "360_day", "2000-02-30"),
            (59.0, "days since 2000-1-1", "noleap", "2000-03-01"),
            (1e6, "hours since 1900-01-01T00:00Z", "gregorian", "2014-01-29T16:00:00"),
            (0.0, "seconds since 1970-01-01 00:00:00 +01:00", "proleptic_gregorian", "1969-12-31T23:00:00"),
            (0.1, "days since 1850-1-1", "standard", "1850-01-01T02:24:00"),
            (90.5, "minutes since 2000-02-29 12:00:00.5 UTC", "julian", "2000-02-29T13:30:30.5"),
            (-1.0, "days since 1582-10-15", "standard", "1582-10-04"),
            (-1.0, "days since 0001-01-01", "standard", "-0001-12-31"),
            (-1.0, "days since 0001-01-01", "noleap", "0000-12-31"),
            (2.0, "months since 2000-01-01", "360_day", "2000-03-01"),
        ] {
            let units = units(of, calendar);
            let instant = units.instant(number).unwrap();
            assert_eq!(units.text(instant), expected, "{number} {of} {calendar}");
            assert!((units.number(instant) - number).abs() < 1e-9);
        }
    }

    #[test]
    fn what_is_no_time_is_said() {
        assert_eq!(TimeUnits::parse("degrees_north", None), Ok(None));
        let wrong = |units, calendar| TimeUnits::parse(units, Some(calendar)).unwrap_err();
        assert!(wrong("days since yesterday", "standard").contains("yesterday"));
        assert!(wrong("days since 2001-02-30", "standard").contains("2001-02-30"));
        assert!(wrong("days since 0000-01-01", "standard").contains("0000"));
        assert!(wrong("months since 2001-01-01", "standard").contains("months"));
        assert!(wrong("days since 2001-01-01", "mayan").contains("mayan"));
        let days = units("days since 2001-01-01", "standard");
        for number in [f64::NAN, f64::INFINITY, 1e300, -1e18] {
            assert_eq!(days.instant(number), None);
        }
    }
}
