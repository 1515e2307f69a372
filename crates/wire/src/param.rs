//! The value of a parameter of a request by path.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The value of a parameter, as the text that kernels read. In JSON it is a text, a number or a boolean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Param(pub String);

impl From<&str> for Param {
    fn from(text: &str) -> Param {
        Param(text.to_owned())
    }
}

impl<'de> Deserialize<'de> for Param {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Param, D::Error> {
        struct Value;

        impl Visitor<'_> for Value {
            type Value = Param;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a number or a boolean for a parameter")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Param, E> {
                Ok(Param(text.to_owned()))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Param, E> {
                Ok(Param(text))
            }

            fn visit_bool<E: Error>(self, flag: bool) -> Result<Param, E> {
                Ok(Param(flag.to_string()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Param, E> {
                Ok(Param(number.to_string()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Param, E> {
                Ok(Param(number.to_string()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Param, E> {
                // The shortest text that reads as this number, as in JSON.
                let number = serde_json::Number::from_f64(number);
                number.map(|number| Param(number.to_string())).ok_or_else(|| E::custom("not a finite number"))
            }
        }

        from.deserialize_any(Value)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn texts_numbers_and_booleans_become_text() {
        let read = |text: &str| serde_json::from_str::<Param>(text).map(|param| param.0);
        for (json, text) in [
            (r#""-5:5""#, "-5:5"),
            ("50", "50"),
            ("-3", "-3"),
            ("18446744073709551615", "18446744073709551615"),
            ("0.1", "0.1"),
            ("2.0", "2.0"),
            ("1.5e3", "1500.0"),
            ("true", "true"),
        ] {
            assert_eq!(read(json).unwrap(), text);
        }
        for json in ["null", "[1]", r#"{"a": 1}"#] {
            let error = read(json).unwrap_err().to_string();
            assert!(error.contains("a text, a number or a boolean"), "{error}");
        }
    }
}
