//! Tests of selections of arrays.
#![allow(clippy::unwrap_used)]

use super::*;

fn slice(start: i64, stop: i64) -> Take {
    Take::Slice { start: Some(start), stop: Some(stop), step: 1 }
}

#[test]
fn elements_between_two_values_both_included() {
    let up = [-60.0, -30.0, 0.0, 30.0, 60.0];
    assert_eq!(take_between(&up, "lat", Some(-30.0), Some(30.0), f64::to_string).unwrap(), slice(1, 4));
    assert_eq!(take_between(&up, "lat", None, Some(-1.0), f64::to_string).unwrap(), slice(0, 2));
    let empty = take_between(&up, "lat", Some(70.0), None, f64::to_string).unwrap_err().to_string();
    assert!(empty.contains("from -60 to 60"), "{empty}");
    assert!(take_between(&up, "lat", Some(30.0), Some(-30.0), f64::to_string).is_err());
    let down = [60.0, 30.0, 0.0];
    assert_eq!(take_between(&down, "lat", Some(0.0), Some(30.0), f64::to_string).unwrap(), slice(1, 3));
    assert!(take_between(&[0.0, 2.0, 1.0], "lat", None, None, f64::to_string).is_err());
    assert!(take_between(&[0.0, f64::NAN], "lat", None, None, f64::to_string).is_err());
}

#[test]
fn parts_are_read_as_people_write_them() {
    assert_eq!(AxisSelection::values("-30:30").unwrap(), AxisSelection::Values(Some(-30.0), Some(30.0)));
    assert_eq!(AxisSelection::values(":1e3").unwrap(), AxisSelection::Values(None, Some(1e3)));
    assert_eq!(AxisSelection::values("7.5").unwrap(), AxisSelection::Value(7.5));
    assert!(AxisSelection::values("a:b").is_err() && AxisSelection::values("nan").is_err());
    assert_eq!(
        AxisSelection::values("2001:2003").unwrap(),
        AxisSelection::Values(Some(2001.0), Some(2003.0))
    );
    let date = |text| PartialDate::parse(text).unwrap();
    assert_eq!(AxisSelection::values("2001-01").unwrap(), AxisSelection::Date(date("2001-01")));
    assert_eq!(
        AxisSelection::values("2001-01-01T06:30").unwrap(),
        AxisSelection::Date(date("2001-01-01T06:30"))
    );
    let clocks = AxisSelection::Dates(Some(date("2001-01-01T06:30")), Some(date("2001-01-02 12:00")));
    assert_eq!(AxisSelection::values("2001-01-01T06:30:2001-01-02 12:00").unwrap(), clocks);
    assert_eq!(AxisSelection::values(":2001-06").unwrap(), AxisSelection::Dates(None, Some(date("2001-06"))));
    assert_eq!(
        AxisSelection::values("2000:2001-06").unwrap(),
        AxisSelection::Dates(Some(PartialDate::year(2000)), Some(date("2001-06")))
    );
    assert_eq!(AxisSelection::index("0:12").unwrap(), AxisSelection::Index(slice(0, 12)));
    assert_eq!(AxisSelection::index("-1").unwrap(), AxisSelection::Index(Take::At(-1)));
    assert!(AxisSelection::index("1,2").is_err());
}
