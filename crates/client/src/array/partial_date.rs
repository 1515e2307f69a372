//! Partial dates: a year, a month, a day, an hour or a shorter unit.

use super::calendar::{Calendar, Date};
use super::time::{DAY, HOUR, Instant, of_day};

/// Microseconds of a minute and of a second.
const MINUTE: i64 = HOUR / 60;
const SECOND: i64 = MINUTE / 60;

/// Least digits of a year; fewer digits are a number.
const YEAR_DIGITS: usize = 4;

/// The unit to which a date is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unit {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Microsecond,
}

/// A partial date: `2001`, `2001-06`, `2001-06-15`, `2001-06-15T12:30`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialDate {
    /// The written year: in a calendar without a year 0, year -1 is before year 1.
    year: i64,
    month: u32,
    day: u32,
    /// Time of day in microseconds.
    clock: i64,
    unit: Unit,
}

impl PartialDate {
    /// Reads a date of at least a year and a month. Returns `None` if the text is not one.
    pub fn parse(text: &str) -> Option<PartialDate> {
        let (sign, rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
        let (date, clock) = match rest.find(['T', 't', ' ']) {
            Some(at) => (&rest[..at], Some(&rest[at + 1..])),
            None => (rest, None),
        };
        let mut parts = date.split('-');
        let digits =
            |part: &str| part.chars().all(|c| c.is_ascii_digit()).then(|| part.parse().ok()).flatten();
        let year = parts.next().filter(|year| year.len() >= YEAR_DIGITS)?;
        let (year, month): (u32, u32) = (digits(year)?, digits(parts.next()?)?);
        let day = parts.next().map(digits);
        let unit = if day.is_some() { Unit::Day } else { Unit::Month };
        let date =
            PartialDate { year: sign * i64::from(year), month, day: day.unwrap_or(Some(1))?, clock: 0, unit };
        match (clock, parts.next()) {
            (_, Some(_)) => None,
            (None, None) => Some(date),
            (Some(_), None) if unit != Unit::Day => None,
            (Some(clock), None) => {
                let unit = match (clock.matches(':').count(), clock.contains('.')) {
                    (_, true) => Unit::Microsecond,
                    (0, _) => Unit::Hour,
                    (1, _) => Unit::Minute,
                    _ => Unit::Second,
                };
                Some(PartialDate { clock: of_day(clock)?, unit, ..date })
            }
        }
    }

    /// A year.
    pub const fn year(year: i64) -> PartialDate {
        PartialDate { year, month: 1, day: 1, clock: 0, unit: Unit::Year }
    }

    /// The unit to which the date is written.
    pub(super) const fn unit(&self) -> Unit {
        self.unit
    }

    /// Returns the first microsecond of the date and the first one after it, or `None` if the calendar has no such
    /// date.
    pub(super) fn span(&self, calendar: Calendar) -> Option<(Instant, Instant)> {
        let begins = |year, month, day| Some(calendar.day(Date { year, month, day })? * DAY);
        let year = match (self.year, calendar.has_year_zero()) {
            (0, false) => return None,
            (year, false) if year < 0 => year + 1,
            (year, _) => year,
        };
        let first = begins(year, self.month, self.day)?.checked_add(self.clock)?;
        let next = match self.unit {
            Unit::Year => begins(year + 1, 1, 1)?,
            Unit::Month if self.month == 12 => begins(year + 1, 1, 1)?,
            Unit::Month => begins(year, self.month + 1, 1)?,
            Unit::Day => first + DAY,
            Unit::Hour => first + HOUR,
            Unit::Minute => first + MINUTE,
            Unit::Second => first + SECOND,
            Unit::Microsecond => first + 1,
        };
        Some((first, next))
    }
}

/// Returns the finest unit that any of the times needs, at most days, as pandas finds the resolution of an index.
pub(super) fn finest(times: &[Instant]) -> Unit {
    let of = |at: &Instant| match at.rem_euclid(DAY) {
        0 => Unit::Day,
        rest if rest % HOUR == 0 => Unit::Hour,
        rest if rest % MINUTE == 0 => Unit::Minute,
        rest if rest % SECOND == 0 => Unit::Second,
        _ => Unit::Microsecond,
    };
    times.iter().map(of).max().unwrap_or(Unit::Day)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn dates_reach_as_far_as_they_are_written() {
        let days = |text: &str| {
            let (first, next) = PartialDate::parse(text).unwrap().span(Calendar::NoLeap).unwrap();
            (next - first) as f64 / DAY as f64
        };
        assert_eq!(days("2000-02"), 28.0);
        assert_eq!(days("2000-12"), 31.0);
        assert_eq!(days("2000-12-31"), 1.0);
        assert_eq!(days("2000-12-31T06"), 1.0 / 24.0);
        assert_eq!(days("2000-12-31 06:30"), 1.0 / 1440.0);
        let year = PartialDate::year(2000).span(Calendar::Days360).unwrap();
        assert_eq!(year.1 - year.0, 360 * DAY);
        assert!(PartialDate::parse("2001-02-29").unwrap().span(Calendar::NoLeap).is_none());
        for text in ["2001", "1-2", "2001-01T06", "2001-1-1-1", "time", "2001-01-01T", "2001--01", "-30"] {
            assert_eq!(PartialDate::parse(text), None, "{text}");
        }
    }
}
