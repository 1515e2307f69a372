//! Conditions on a value, as inclusive bounds of the type of the element.
//!
//! A comparison in the type of the element is exact: `> 3.5` on integers is `>= 4`, and a 64-bit integer is never
//! rounded to a float.

use crate::element::Element;

/// A number in a condition: the exact integer if it is written as one, and the nearest f64.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Literal {
    pub int: Option<i128>,
    pub float: f64,
}

impl Literal {
    pub fn parse(text: &str) -> Result<Literal, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("a number is missing; write for example '> 3.5'".into());
        }
        let float: f64 = text.parse().map_err(|_| format!("'{text}' is not a number"))?;
        if float.is_nan() {
            return Err("no comparison with NaN is ever true; nan=skip and count find NaNs".into());
        }
        Ok(Literal { int: text.parse().ok(), float })
    }
}

/// Most values that one condition excludes.
pub(crate) const MAX_EXCLUDED: usize = 8;

/// A condition: `lo <= x <= hi`, or its negation, without some excluded values. `within` is `None` if no value is
/// within the bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounds<T> {
    pub within: Option<(T, T)>,
    pub negate: bool,
    excluded: [Option<T>; MAX_EXCLUDED],
}

/// An element type that can be compared with a literal.
pub(crate) trait Bounded: Element {
    /// The smallest and the largest value of the type.
    const ALL: (Self, Self);
    /// The smallest value `>= literal`, or `> literal` if `strict`.
    fn at_least(literal: Literal, strict: bool) -> Option<Self>;
    /// The largest value `<= literal`, or `< literal` if `strict`.
    fn at_most(literal: Literal, strict: bool) -> Option<Self>;
}

macro_rules! bounded_integer {
    ($($t:ty)*) => {$(
        impl Bounded for $t {
            const ALL: ($t, $t) = (<$t>::MIN, <$t>::MAX);
            fn at_least(literal: Literal, strict: bool) -> Option<$t> {
                let bound = match literal.int {
                    Some(n) => n.saturating_add(i128::from(strict)),
                    // Casts from float to integer saturate.
                    None if strict => (literal.float.floor() as i128).saturating_add(1),
                    None => literal.float.ceil() as i128,
                };
                <$t>::try_from(bound.max(<$t>::MIN as i128)).ok()
            }
            fn at_most(literal: Literal, strict: bool) -> Option<$t> {
                let bound = match literal.int {
                    Some(n) => n.saturating_sub(i128::from(strict)),
                    None if strict => (literal.float.ceil() as i128).saturating_sub(1),
                    None => literal.float.floor() as i128,
                };
                <$t>::try_from(bound.min(<$t>::MAX as i128)).ok()
            }
        }
    )*};
}

bounded_integer! { i8 i16 i32 i64 u8 u16 u32 u64 }

macro_rules! bounded_float {
    ($($t:ty)*) => {$(
        impl Bounded for $t {
            const ALL: ($t, $t) = (<$t>::NEG_INFINITY, <$t>::INFINITY);
            fn at_least(literal: Literal, strict: bool) -> Option<$t> {
                let near = literal.float as $t;
                let below = f64::from(near) < literal.float || strict && f64::from(near) == literal.float;
                if below && near == <$t>::INFINITY {
                    return None;
                }
                Some(if below { near.next_up() } else { near })
            }
            fn at_most(literal: Literal, strict: bool) -> Option<$t> {
                let near = literal.float as $t;
                let above = f64::from(near) > literal.float || strict && f64::from(near) == literal.float;
                if above && near == <$t>::NEG_INFINITY {
                    return None;
                }
                Some(if above { near.next_down() } else { near })
            }
        }
    )*};
}

bounded_float! { f32 f64 }

impl<T: Bounded> Bounds<T> {
    /// The values that are excluded although they meet `within` and `negate`. They are all different.
    pub fn excluded(&self) -> impl Iterator<Item = T> {
        self.excluded.into_iter().flatten()
    }

    /// Parses `> 3.5`, `>= 1 and < 2`, `> 1 and != 5`, `1..2` (without 2), `1..=2` or `!= 0`.
    pub fn parse(text: &str) -> Result<Bounds<T>, String> {
        if let Some((low, high)) = text.split_once("..") {
            let (high, strict) = match high.strip_prefix('=') {
                Some(high) => (high, false),
                None => (high, true),
            };
            let low = T::at_least(Literal::parse(low)?, false);
            return Ok(Bounds::between(low, T::at_most(Literal::parse(high)?, strict)));
        }
        let (mut low, mut high) = (Some(T::ALL.0), Some(T::ALL.1));
        let (mut compared, mut unequal) = (false, Vec::new());
        for part in text.split(" and ") {
            let part = part.trim();
            if let Some(literal) = part.strip_prefix("!=") {
                let literal = Literal::parse(literal)?;
                // A literal such as 2.5 equals no integer.
                let equal = Bounds::between(T::at_least(literal, false), T::at_most(literal, false));
                unequal.extend(equal.within.map(|(value, _)| value).filter(|value| !unequal.contains(value)));
                continue;
            }
            compared = true;
            let Some((comparison, literal)) =
                [">=", "<=", "==", ">", "<"].iter().find_map(|op| Some((*op, part.strip_prefix(op)?)))
            else {
                return Err(format!(
                    "'{part}' is not a comparison; use one of > >= < <= == != with a number, two of them joined \
                     by ' and ', or a range such as 1.5..2"
                ));
            };
            let literal = Literal::parse(literal)?;
            if comparison != "<" && comparison != "<=" {
                low = larger(low, T::at_least(literal, comparison == ">"));
            }
            if comparison != ">" && comparison != ">=" {
                high = smaller(high, T::at_most(literal, comparison == "<"));
            }
        }
        let mut bounds = Bounds::between(low, high);
        if !compared {
            // NaN meets a condition that has only `!=`.
            bounds.negate = true;
            bounds.within =
                if unequal.is_empty() { None } else { Some(unequal.remove(0)).map(|value| (value, value)) };
        }
        let inside = |value: &T| bounds.within.is_some_and(|(low, high)| *value >= low && *value <= high);
        unequal.retain(|value| inside(value) != bounds.negate);
        if unequal.len() > MAX_EXCLUDED {
            return Err(format!(
                "more than {MAX_EXCLUDED} values are excluded by !=; exclude fewer, or send several requests"
            ));
        }
        for (place, value) in bounds.excluded.iter_mut().zip(unequal) {
            *place = Some(value);
        }
        Ok(bounds)
    }

    fn between(low: Option<T>, high: Option<T>) -> Bounds<T> {
        let within = match (low, high) {
            (Some(low), Some(high)) if low <= high => Some((low, high)),
            _ => None,
        };
        Bounds { within, negate: false, excluded: [None; MAX_EXCLUDED] }
    }
}

fn larger<T: Element>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if a > b { a } else { b }),
        _ => None,
    }
}

fn smaller<T: Element>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if a < b { a } else { b }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within<T: Bounded>(text: &str) -> Option<(T, T)> {
        let bounds = Bounds::<T>::parse(text).unwrap();
        assert!(!bounds.negate);
        bounds.within
    }

    #[test]
    fn integers_are_compared_exactly() {
        assert_eq!(within::<i32>("> 3.5"), Some((4, i32::MAX)));
        assert_eq!(within::<i32>("> 3"), Some((4, i32::MAX)));
        assert_eq!(within::<i32>(">= -3.5 and < 3"), Some((-3, 2)));
        assert_eq!(within::<u8>("< 300"), Some((0, 255)));
        assert_eq!(within::<u8>("> 255"), None);
        assert_eq!(within::<u8>("< 0"), None);
        assert_eq!(within::<u8>("== 3.5"), None);
        assert_eq!(within::<u64>("> 9007199254740992"), Some((9_007_199_254_740_993, u64::MAX)));
        assert_eq!(within::<i64>("> -1e300"), Some((i64::MIN, i64::MAX)));
        assert_eq!(within::<i16>("3..5"), Some((3, 4)));
        assert_eq!(within::<i16>("3..=5"), Some((3, 5)));
    }

    #[test]
    fn floats_are_compared_with_the_nearest_f64_of_the_literal() {
        assert_eq!(within::<f64>("> 0"), Some((f64::from_bits(1), f64::INFINITY)));
        assert_eq!(within::<f64>("<= 0.1"), Some((f64::NEG_INFINITY, 0.1)));
        let above = within::<f32>("> 0.1").unwrap().0;
        assert!(f64::from(above) > 0.1 && f64::from(above.next_down()) <= 0.1);
        assert_eq!(within::<f32>("> 1e39"), Some((f32::INFINITY, f32::INFINITY)));
        assert_eq!(within::<f64>("> inf"), None);
        assert_eq!(within::<f64>("< -inf"), None);
    }

    #[test]
    fn values_are_excluded_from_a_condition() {
        let bounds = Bounds::<i32>::parse("> 1 and != 5 and != 5.0 and != -3 and != 2.5 and < 9").unwrap();
        assert_eq!((bounds.within, bounds.negate), (Some((2, 8)), false));
        assert_eq!(bounds.excluded().collect::<Vec<_>>(), [5]);
        let bounds = Bounds::<f64>::parse("!= 1 and != 2").unwrap();
        assert_eq!((bounds.within, bounds.negate), (Some((1.0, 1.0)), true));
        assert_eq!(bounds.excluded().collect::<Vec<_>>(), [2.0]);
        let bounds = Bounds::<u8>::parse("!= 300").unwrap();
        assert_eq!((bounds.within, bounds.negate, bounds.excluded().count()), (None, true, 0));
        let many: Vec<String> = (0..10).map(|n| format!("!= {n}")).collect();
        assert!(Bounds::<u8>::parse(&many.join(" and ")).unwrap_err().contains("more than 8"));
    }

    #[test]
    fn wrong_conditions_are_refused_with_a_hint() {
        for (text, word) in
            [("3.5", "comparison"), ("> x", "not a number"), ("", "comparison"), ("== nan", "NaN")]
        {
            assert!(Bounds::<f64>::parse(text).unwrap_err().contains(word), "{text}");
        }
    }
}
