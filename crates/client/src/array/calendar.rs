//! Days and dates in the calendars of the CF conventions (section 4.4.1), as whole numbers. Pure.
//!
//! Years are astronomical: year 0 is before year 1. Consecutive days of a calendar have consecutive numbers. Numbers of
//! different calendars are not compared.

/// A calendar of the CF conventions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calendar {
    /// `standard`, `gregorian`: Julian to 4 October 1582, Gregorian from 15 October on, which is the day after.
    Standard,
    /// `proleptic_gregorian`: the Gregorian calendar at all times.
    ProlepticGregorian,
    /// `julian`: every fourth year has a 29 February.
    Julian,
    /// `noleap`, `365_day`: no year has one.
    NoLeap,
    /// `all_leap`, `366_day`: every year has one.
    AllLeap,
    /// `360_day`: twelve months of 30 days.
    Days360,
}

/// A day of a calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// The year; year 0 is before year 1.
    pub year: i64,
    /// The month, from 1 to 12.
    pub month: u32,
    /// The day of the month, from 1.
    pub day: u32,
}

/// 15 October 1582, the first day of the Gregorian calendar, counted from 1 January 1970.
const GREGORIAN_BEGINS: i64 = -141_427;

/// Days before each month of a year without a 29 February.
const BEFORE: [u32; 13] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];

/// Largest year of a date, positive or negative. Its microseconds fit an i64.
const MAX_YEAR: u64 = 200_000;

/// Largest number of a day, positive or negative.
const MAX_DAY: i64 = 366 * (MAX_YEAR as i64 + 1970);

impl Calendar {
    /// The calendar of a name in an attribute `calendar`.
    pub fn named(name: &str) -> Option<Calendar> {
        Some(match name.to_ascii_lowercase().as_str() {
            "standard" | "gregorian" => Calendar::Standard,
            "proleptic_gregorian" => Calendar::ProlepticGregorian,
            "julian" => Calendar::Julian,
            "noleap" | "365_day" => Calendar::NoLeap,
            "all_leap" | "366_day" => Calendar::AllLeap,
            "360_day" => Calendar::Days360,
            _ => return None,
        })
    }

    /// Whether written dates of this calendar have a year 0.
    pub(super) const fn has_year_zero(self) -> bool {
        !matches!(self, Calendar::Standard | Calendar::Julian)
    }

    /// The number of a day, or `None` if the calendar has no such date.
    pub fn day(self, date: Date) -> Option<i64> {
        let Date { year, month, day } = date;
        if !(1..=12).contains(&month) || day == 0 || year.unsigned_abs() > MAX_YEAR {
            return None;
        }
        let number = match self {
            Calendar::Standard => match gregorian_day(date) {
                day if day >= GREGORIAN_BEGINS => day,
                // The ten days that the calendar left out come after the last Julian day.
                _ => Some(julian_day(date)).filter(|day| *day < GREGORIAN_BEGINS)?,
            },
            Calendar::ProlepticGregorian => gregorian_day(date),
            Calendar::Julian => julian_day(date),
            Calendar::NoLeap => 365 * year + i64::from(BEFORE[month as usize - 1] + day - 1),
            Calendar::AllLeap => {
                let leap = u32::from(month > 2);
                366 * year + i64::from(BEFORE[month as usize - 1] + leap + day - 1)
            }
            Calendar::Days360 => 360 * year + i64::from(30 * (month - 1) + day - 1),
        };
        // A 31 April would come back as a 1 May.
        (self.date(number) == date).then_some(number)
    }

    /// The date of a day, or the last date for a day beyond 200,000 years.
    pub fn date(self, day: i64) -> Date {
        let day = day.clamp(-MAX_DAY, MAX_DAY);
        match self {
            Calendar::Standard if day >= GREGORIAN_BEGINS => gregorian_date(day),
            Calendar::Standard | Calendar::Julian => julian_date(day),
            Calendar::ProlepticGregorian => gregorian_date(day),
            Calendar::NoLeap => in_year(day.div_euclid(365), day.rem_euclid(365) as u32, false),
            Calendar::AllLeap => in_year(day.div_euclid(366), day.rem_euclid(366) as u32, true),
            Calendar::Days360 => {
                let rest = day.rem_euclid(360) as u32;
                Date { year: day.div_euclid(360), month: rest / 30 + 1, day: rest % 30 + 1 }
            }
        }
    }

    /// The first day of a month, or `None` for years beyond 200,000. Months are counted from January of year 0.
    pub fn month_begins(self, month: i64) -> Option<i64> {
        self.day(Date { year: month.div_euclid(12), month: month.rem_euclid(12) as u32 + 1, day: 1 })
    }

    /// The number of a day in its year, from 1. The ten days that were left out in 1582 count too, as in cftime.
    pub fn day_of_year(self, day: i64) -> i64 {
        let year = self.date(day).year;
        let left_out =
            if self == Calendar::Standard && year == 1582 && day >= GREGORIAN_BEGINS { 10 } else { 0 };
        self.month_begins(12 * year).map_or(0, |first| day - first + 1 + left_out)
    }
}

/// Days before a date in a year that begins in March, so that a 29 February is its last day.
const fn from_march(month: u32, day: u32) -> i64 {
    ((153 * ((month + 9) % 12) + 2) / 5 + day - 1) as i64
}

/// The month and the day of a day of a year that begins in March, and whether it lies in the next calendar year.
const fn after_march(day_of_year: i64) -> (u32, u32, bool) {
    let month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month + 2) / 5 + 1) as u32;
    let next = month >= 10;
    ((if next { month - 9 } else { month + 3 }) as u32, day, next)
}

/// Days from 1 January 1970, Gregorian; 719,468 lie between that day and 1 March of year 0.
const fn gregorian_day(date: Date) -> i64 {
    let year = date.year - (date.month <= 2) as i64;
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leaps + from_march(date.month, date.day) - 719_468
}

/// Eras of 400 years have 146,097 days.
const fn gregorian_date(day: i64) -> Date {
    let from = day + 719_468;
    let (era, of_era) = (from.div_euclid(146_097), from.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let (month, day, next) = after_march(of_era - (365 * year + year / 4 - year / 100));
    Date { year: 400 * era + year + next as i64, month, day }
}

/// Days from 1 January 1970, which is 19 December 1969 in this calendar.
const fn julian_day(date: Date) -> i64 {
    let year = date.year - (date.month <= 2) as i64;
    365 * year + year.div_euclid(4) + from_march(date.month, date.day) - 719_470
}

const fn julian_date(day: i64) -> Date {
    let from = day + 719_470;
    let (era, of_era) = (from.div_euclid(1461), from.rem_euclid(1461));
    let year = (of_era - of_era / 1460) / 365;
    let (month, day, next) = after_march(of_era - 365 * year);
    Date { year: 4 * era + year + next as i64, month, day }
}

/// The date of a day of a year, counted from 0, of a calendar whose years all have the same length.
fn in_year(year: i64, day: u32, leap: bool) -> Date {
    let before = |month: usize| BEFORE[month] + u32::from(leap && month >= 2);
    let month = (1..12).find(|month| day < before(*month)).unwrap_or(12);
    Date { year, month: month as u32, day: day - before(month - 1) + 1 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const ALL: [Calendar; 6] = [
        Calendar::Standard,
        Calendar::ProlepticGregorian,
        Calendar::Julian,
        Calendar::NoLeap,
        Calendar::AllLeap,
        Calendar::Days360,
    ];

    fn date(year: i64, month: u32, day: u32) -> Date {
        Date { year, month, day }
    }

    #[test]
    fn every_day_follows_the_one_before_it_and_comes_back() {
        for calendar in ALL {
            let start = calendar.day(date(-5, 1, 1)).unwrap();
            let mut last = calendar.date(start - 1);
            for day in start..start + 900_000 {
                let now = calendar.date(day);
                assert_eq!(calendar.day(now), Some(day), "{calendar:?} {now:?}");
                let same_month = (now.year, now.month) == (last.year, last.month);
                let follows = if same_month { now.day == last.day + 1 } else { now.day == 1 };
                let reform = calendar == Calendar::Standard && now == date(1582, 10, 15);
                assert!(follows || reform && last == date(1582, 10, 4), "{calendar:?} {last:?} {now:?}");
                last = now;
            }
        }
    }

    #[test]
    fn days_between_dates_are_those_of_cftime_and_datetime() {
        // cftime 1.6: (cftime.datetime(*b, calendar=c) - cftime.datetime(*a, calendar=c)).days
        let apart =
            |calendar: Calendar, a: Date, b: Date| calendar.day(b).unwrap() - calendar.day(a).unwrap();
        let (a, b) = (date(1500, 2, 28), date(2000, 3, 1));
        let expected = [182_614, 182_623, 182_627, 182_501, 183_002, 180_003];
        for (calendar, expected) in ALL.into_iter().zip(expected) {
            assert_eq!(apart(calendar, a, b), expected, "{calendar:?}");
        }
        // datetime.date(2024, 2, 29).toordinal() - datetime.date(1970, 1, 1).toordinal()
        assert_eq!(Calendar::ProlepticGregorian.day(date(2024, 2, 29)), Some(19_782));
        assert_eq!(Calendar::Standard.day(date(2024, 2, 29)), Some(19_782));
    }

    #[test]
    fn what_is_no_date_has_no_number() {
        for calendar in ALL {
            assert_eq!(calendar.day(date(2001, 13, 1)), None);
            assert_eq!(calendar.day(date(2001, 0, 1)), None);
            assert_eq!(calendar.day(date(2001, 4, 31)), None);
            assert_eq!(calendar.day(date(i64::MAX, 4, 1)), None);
        }
        assert_eq!(Calendar::NoLeap.day(date(2000, 2, 29)), None);
        assert_eq!(Calendar::Standard.day(date(1582, 10, 10)), None);
        assert_eq!(Calendar::ProlepticGregorian.day(date(1900, 2, 29)), None);
        assert!(Calendar::Julian.day(date(1900, 2, 29)).is_some());
        assert!(Calendar::AllLeap.day(date(1999, 2, 29)).is_some());
        assert!(Calendar::Days360.day(date(1999, 2, 30)).is_some());
    }
}
