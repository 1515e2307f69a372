//! Bins of time, as in xarray's `resample`: closed and labelled at their beginning.

use std::str::FromStr;

use super::calendar::Calendar;
use super::group::check_count;
use super::time::{DAY, HOUR, Instant, TimeUnits};
use crate::ClientError;

/// Largest number of units in a step: some 1,900 years of hours.
const MAX_STEP: u32 = 1 << 24;

/// The length of bins of time and their beginning, as pandas writes them: `6h`, `5D`, `MS`, `QS-DEC`, `YS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frequency {
    count: u32,
    unit: Unit,
}

/// The unit of a frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Microseconds, counted from the beginning of the first day.
    Fixed(i64),
    /// Months. The first bin begins this number of months after January.
    Months { length: i64, anchor: i64 },
}

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];

impl FromStr for Frequency {
    type Err = String;

    fn from_str(text: &str) -> Result<Frequency, String> {
        let wrong = || {
            format!(
                "'{text}' is not a length of time; write a number, unless it is 1, and h (hours), D (days), MS (months), \
                 QS (quarters) or YS (years), as in 6h, 5D, MS, QS-DEC"
            )
        };
        let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (count, unit) = text.split_at(digits);
        let count = if count.is_empty() { 1 } else { count.parse().map_err(|_| wrong())? };
        if count == 0 || count > MAX_STEP {
            return Err(wrong());
        }
        let (unit, anchor) = match unit.split_once('-') {
            None => (unit, None),
            Some((unit, month)) => {
                let at = MONTHS.iter().position(|name| month.eq_ignore_ascii_case(name));
                (unit, Some(at.ok_or_else(wrong)? as i64))
            }
        };
        let months = |length| Unit::Months { length, anchor: anchor.unwrap_or(0) % length };
        let unit = match unit {
            "h" | "H" if anchor.is_none() => Unit::Fixed(HOUR),
            "D" | "d" if anchor.is_none() => Unit::Fixed(DAY),
            "MS" if anchor.is_none() => months(1),
            "QS" => months(3),
            "YS" => months(12),
            _ => return Err(wrong()),
        };
        Ok(Frequency { count, unit })
    }
}

/// Bins of one frequency that cover some times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bins {
    calendar: Calendar,
    frequency: Frequency,
    /// Beginning of the first bin: an instant, or a month counted from January of year 0.
    first: i64,
    /// Number of bins.
    pub count: u64,
}

impl Frequency {
    pub(super) const fn one(unit: Unit) -> Frequency {
        Frequency { count: 1, unit }
    }

    /// Returns the bins that hold all of these times.
    ///
    /// # Errors
    /// Returns an error if there are more bins than a request may have.
    pub(super) fn bins(
        self,
        calendar: Calendar,
        times: impl Iterator<Item = Instant> + Clone,
    ) -> Result<Bins, ClientError> {
        let Some((low, high)) = times.clone().min().zip(times.max()) else {
            return Ok(Bins { calendar, frequency: self, first: 0, count: 0 });
        };
        let first = match self.unit {
            Unit::Fixed(length) => {
                let day = low.div_euclid(DAY) * DAY;
                let step = length.saturating_mul(self.count.into());
                day + (low - day).div_euclid(step) * step
            }
            Unit::Months { length, anchor } => {
                let month = month(calendar, low);
                month - (month - anchor).rem_euclid(length)
            }
        };
        let mut bins = Bins { calendar, frequency: self, first, count: 0 };
        bins.count = bins.bin_of(high).unsigned_abs() + 1;
        check_count("resample", bins.count)?;
        Ok(bins)
    }
}

impl Bins {
    /// Number of the bin of a time.
    pub fn bin_of(&self, instant: Instant) -> i64 {
        let count = i64::from(self.frequency.count);
        match self.frequency.unit {
            Unit::Fixed(length) => (instant - self.first).div_euclid(length.saturating_mul(count)),
            Unit::Months { length, .. } => {
                (month(self.calendar, instant) - self.first).div_euclid(length * count)
            }
        }
    }

    /// The beginning of a bin.
    pub fn begins(&self, bin: u64) -> Option<Instant> {
        let count = i64::from(self.frequency.count).checked_mul(i64::try_from(bin).ok()?)?;
        match self.frequency.unit {
            Unit::Fixed(length) => self.first.checked_add(length.checked_mul(count)?),
            Unit::Months { length, .. } => {
                let month = self.first.checked_add(length.checked_mul(count)?)?;
                Some(self.calendar.month_begins(month)? * DAY)
            }
        }
    }

    /// Returns the beginnings of all bins as numbers in some units.
    pub fn numbers(&self, units: &TimeUnits) -> Vec<f64> {
        (0..self.count).filter_map(|bin| self.begins(bin)).map(|at| units.number(at)).collect()
    }
}

/// Returns the month of a time, counted from January of year 0.
fn month(calendar: Calendar, instant: Instant) -> i64 {
    let date = calendar.date(instant.div_euclid(DAY));
    12 * date.year + i64::from(date.month) - 1
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn lengths_are_written_as_pandas_writes_them() {
        let read = |text: &str| text.parse::<Frequency>();
        assert_eq!(read("MS"), read("1MS"));
        assert_eq!(read("QS"), read("QS-JAN"));
        assert_eq!(read("QS-DEC"), read("QS-MAR"));
        assert_ne!(read("YS-DEC"), read("YS-MAR"));
        for wrong in ["", "3", "M", "0D", "-1D", "1.5D", "99999999999D", "MS-JAN", "QS-XXX", "6hours"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bins_begin_where_months_do() {
        let units = TimeUnits::parse("days since 2000-01-01", Some("noleap")).unwrap().unwrap();
        let times = [45.0, 300.5].map(|day| units.instant(day).unwrap());
        let begins = |text: &str| {
            let bins = text.parse::<Frequency>().unwrap().bins(units.calendar, times.into_iter()).unwrap();
            bins.numbers(&units)
        };
        assert_eq!(begins("QS"), [0.0, 90.0, 181.0, 273.0]);
        assert_eq!(begins("QS-DEC"), [-31.0, 59.0, 151.0, 243.0]);
        assert_eq!(begins("4MS"), [31.0, 151.0, 273.0]);
        assert_eq!(begins("YS"), [0.0]);
        assert_eq!(begins("200D"), [45.0, 245.0]);
        let hours = "1h".parse::<Frequency>().unwrap();
        let far = [0.0, 4e7].map(|day| units.instant(day).unwrap());
        assert!(hours.bins(units.calendar, far.into_iter()).is_err());
    }
}
