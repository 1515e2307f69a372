//! Times for people.

use gristmill_client::{Calendar, Date};

/// Seconds since 1970 as a date and time, UTC.
pub fn utc_text(seconds: u64) -> String {
    let day = i64::try_from(seconds / 86_400).unwrap_or(0);
    let (hours, minutes, rest) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let Date { year, month, day } = Calendar::ProlepticGregorian.date(day);
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{rest:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::utc_text;

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(utc_text(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc_text(951_782_399), "2000-02-28 23:59:59 UTC");
        assert_eq!(utc_text(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc_text(4_102_444_799), "2099-12-31 23:59:59 UTC");
    }
}
