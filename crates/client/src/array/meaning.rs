//! The attributes of the CF conventions, from a file's to those that chunks are decoded by.

use gristmill_array::{Exact, Factor, Meaning};
use gristmill_format::{AttributeValue, Variable};
use gristmill_kernel::{DType, Value};

use crate::ClientError;

/// What the numbers of a variable mean. `valid`: whether values outside the valid range are missing.
///
/// # Errors
/// A variable that is no number; attributes that are of another kind than the conventions say.
pub(super) fn of(variable: &Variable, valid: bool) -> Result<Meaning, ClientError> {
    let mut meaning = Meaning::of(variable.dtype()?);
    meaning.unsigned = match variable.attribute("_Unsigned").and_then(|attribute| attribute.value.text()) {
        Some("true" | "True" | "TRUE") => Some(true),
        Some("false" | "False" | "FALSE") => Some(false),
        _ => None,
    };
    for name in ["_FillValue", "missing_value"] {
        meaning.missing.extend(numbers(variable, name)?);
    }
    meaning.scale = factor(variable, "scale_factor")?;
    meaning.offset = factor(variable, "add_offset")?;
    if valid {
        let one = |name| Ok::<_, ClientError>(numbers(variable, name)?.first().copied());
        meaning.valid = match numbers(variable, "valid_range")?[..] {
            [low, high] => (Some(low), Some(high)),
            _ => (one("valid_min")?, one("valid_max")?),
        };
    }
    Ok(meaning)
}

fn numbers(variable: &Variable, name: &str) -> Result<Vec<Exact>, ClientError> {
    let Some(attribute) = variable.attribute(name) else { return Ok(Vec::new()) };
    let values = attribute.value.numbers().ok_or_else(|| {
        ClientError::Usage(format!(
            "attribute {name} of {} is no number, so it says nothing of its values",
            variable.path
        ))
    })?;
    Ok(values
        .into_iter()
        .filter_map(|value| match value {
            Value::Int(n) => Some(Exact::Int(n)),
            Value::Float(x) => Some(Exact::Float(x)),
            _ => None,
        })
        .collect())
}

fn factor(variable: &Variable, name: &str) -> Result<Option<Factor>, ClientError> {
    let single = match variable.attribute(name).map(|attribute| &attribute.value) {
        Some(AttributeValue::Numbers { dtype, .. }) => *dtype == DType::F32,
        _ => false,
    };
    Ok(match numbers(variable, name)?.first() {
        Some(Exact::Int(n)) => Some(Factor { value: *n as f64, single }),
        Some(Exact::Float(x)) => Some(Factor { value: *x, single }),
        None => None,
    })
}
