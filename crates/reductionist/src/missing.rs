//! Elements that count as missing.

use serde::Deserialize;
use serde_json::Number;

use crate::RequestError;
use crate::element::Element;

/// Most missing values of a request.
const MAX_MISSING: usize = 64;

/// The numbers of a request that say which elements are missing.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MissingNumbers {
    MissingValue(Number),
    MissingValues(Vec<Number>),
    ValidMin(Number),
    ValidMax(Number),
    ValidRange(Number, Number),
}

/// The values that say which elements are missing, in the type of the elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MissingValues<T> {
    None,
    Values(Vec<T>),
    Outside(Option<T>, Option<T>),
}

impl MissingNumbers {
    pub fn of_type<T: Element>(&self) -> Result<MissingValues<T>, RequestError> {
        let value = |number: &Number| {
            let wrong = || {
                RequestError::invalid(format!("missing: {number} is no value of the type of the elements"))
            };
            T::of_number(number).ok_or_else(wrong)
        };
        Ok(match self {
            MissingNumbers::MissingValue(one) => MissingValues::Values(vec![value(one)?]),
            MissingNumbers::MissingValues(all) if all.len() > MAX_MISSING => {
                return Err(RequestError::invalid(format!(
                    "there may be at most {MAX_MISSING} missing values"
                )));
            }
            MissingNumbers::MissingValues(all) => {
                MissingValues::Values(all.iter().map(value).collect::<Result<_, _>>()?)
            }
            MissingNumbers::ValidMin(least) => MissingValues::Outside(Some(value(least)?), None),
            MissingNumbers::ValidMax(most) => MissingValues::Outside(None, Some(value(most)?)),
            MissingNumbers::ValidRange(least, most) => {
                let (least, most) = (value(least)?, value(most)?);
                if least >= most {
                    return Err(RequestError::invalid("missing: the valid range must begin below its end"));
                }
                MissingValues::Outside(Some(least), Some(most))
            }
        })
    }
}

impl<T: Element> MissingValues<T> {
    pub fn is_none(&self) -> bool {
        matches!(self, MissingValues::None)
    }

    /// Whether an element is missing. A NaN is not.
    pub fn has(&self, element: T) -> bool {
        match self {
            MissingValues::None => false,
            MissingValues::Values(values) => values.contains(&element),
            MissingValues::Outside(least, most) => {
                least.is_some_and(|least| element < least) || most.is_some_and(|most| element > most)
            }
        }
    }
}
