//! Round dates between two times, for the axis of a picture.

use super::resample::{Frequency, Unit};
use super::time::{DAY, HOUR, TimeUnits, shown_year};

/// Distances between round dates in hours, days and months, the shortest first.
const HOURS: [i64; 4] = [1, 3, 6, 12];
const DAYS: [i64; 4] = [1, 2, 5, 10];
const MONTHS: [i64; 3] = [1, 3, 6];
const YEARS: [i64; 16] =
    [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000];

impl TimeUnits {
    /// Returns at most `most` round dates between two numbers, both included, at one distance: their numbers, and texts
    /// that are as short as the distance allows.
    pub fn round_dates(&self, low: f64, high: f64, most: usize) -> Vec<(f64, String)> {
        let Some((first, last)) = self.instant(low).zip(self.instant(high)) else { return Vec::new() };
        let fixed =
            HOURS.map(|n| Unit::Fixed(n * HOUR)).into_iter().chain(DAYS.map(|n| Unit::Fixed(n * DAY)));
        let months = MONTHS.into_iter().chain(YEARS.map(|n| 12 * n));
        let months = months.map(|length| Unit::Months { length, anchor: 0 });
        for unit in fixed.chain(months) {
            let Ok(bins) = Frequency::one(unit).bins(self.calendar, [first, last].into_iter()) else {
                continue;
            };
            // The first bin begins at or before the first time.
            if bins.count > most as u64 + 1 {
                continue;
            }
            let begins = (0..bins.count).filter_map(|bin| bins.begins(bin));
            let inside: Vec<i64> = begins.filter(|at| (first..=last).contains(at)).collect();
            if inside.len() <= most {
                return inside.into_iter().map(|at| (self.number(at), self.shortly(at, unit))).collect();
            }
        }
        Vec::new()
    }

    fn shortly(&self, at: i64, unit: Unit) -> String {
        let text = self.text(at);
        match unit {
            Unit::Fixed(length) if length < DAY => {
                let date = self.calendar.date(at.div_euclid(DAY));
                let hour = at.rem_euclid(DAY) / HOUR;
                format!("{:02}-{:02} {hour:02}h", date.month, date.day)
            }
            Unit::Fixed(_) => text,
            Unit::Months { length, .. } if length < 12 => {
                text.rsplit_once('-').map_or(text.clone(), |(month, _)| month.to_owned())
            }
            Unit::Months { .. } => {
                shown_year(self.calendar, self.calendar.date(at.div_euclid(DAY)).year).to_string()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn dates_are_round_and_no_more_than_asked_for() {
        let units = TimeUnits::parse("days since 2001-01-01", Some("360_day")).unwrap().unwrap();
        let texts = |low, high, most| -> Vec<String> {
            units.round_dates(low, high, most).into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(
            texts(15.0, 705.0, 8),
            ["2001-04", "2001-07", "2001-10", "2002-01", "2002-04", "2002-07", "2002-10"]
        );
        assert_eq!(texts(0.0, 3600.0, 6), ["2002", "2004", "2006", "2008", "2010"]);
        assert_eq!(texts(0.0, 0.5, 5), ["01-01 00h", "01-01 03h", "01-01 06h", "01-01 09h", "01-01 12h"]);
        assert_eq!(texts(0.25, 3.25, 5), ["2001-01-02", "2001-01-03", "2001-01-04"]);
        assert!(texts(0.0, 1e300, 5).is_empty());
        for most in 1..12 {
            assert!(texts(3.0, 1e5, most).len() <= most);
        }
    }
}
