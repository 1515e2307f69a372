//! The attributes of the CF conventions: from those of a file to those by which chunks are decoded.

use gristmill_array::{Exact, Factor, FactorType, Meaning};
use gristmill_format::{AttributeValue, Variable};
use gristmill_kernel::Value;

use crate::ClientError;

/// Returns the decoding of a variable by its attributes. `valid` says whether values outside the valid range are
/// missing.
///
/// # Errors
/// Returns [`ClientError::Format`] if the variable does not hold numbers, and [`ClientError::Usage`] if its scale or
/// offset is not a number.
pub(super) fn from_attributes(variable: &Variable, valid: bool) -> Result<Meaning, ClientError> {
    let mut meaning = Meaning::plain(variable.dtype()?);
    meaning.unsigned = match variable.attribute("_Unsigned").and_then(|attribute| attribute.value.text()) {
        Some("true" | "True" | "TRUE") => Some(true),
        Some("false" | "False" | "FALSE") => Some(false),
        _ => None,
    };
    let of_type =
        |name| numbers(variable, name).into_iter().map(|one| with_sign(&meaning, one)).collect::<Vec<_>>();
    let missing: Vec<Exact> = ["_FillValue", "missing_value"].into_iter().flat_map(of_type).collect();
    let valid = valid.then(|| {
        let one = |name| of_type(name).first().copied();
        match of_type("valid_range")[..] {
            [low, high] => (Some(low), Some(high)),
            _ => (one("valid_min"), one("valid_max")),
        }
    });
    meaning.missing = missing;
    meaning.valid = valid.unwrap_or_default();
    meaning.scale = factor(variable, "scale_factor")?;
    meaning.offset = factor(variable, "add_offset")?;
    Ok(meaning)
}

/// Reinterprets a number of an attribute, which has the type of the file, with the sign that `_Unsigned` gives that
/// type.
fn with_sign(meaning: &Meaning, number: Exact) -> Exact {
    let bits = 8 * meaning.raw.size() as u32;
    match (number, meaning.stored() == meaning.raw, meaning.unsigned) {
        (Exact::Int(n), false, Some(true)) if n < 0 => Exact::Int(n + (1 << bits)),
        (Exact::Int(n), false, Some(false)) if n >= 1 << (bits - 1) => Exact::Int(n - (1 << bits)),
        _ => number,
    }
}

/// Returns the numbers of an attribute. Text is ignored, as in xarray.
fn numbers(variable: &Variable, name: &str) -> Vec<Exact> {
    let values = variable.attribute(name).and_then(|attribute| attribute.value.numbers()).unwrap_or_default();
    values
        .into_iter()
        .filter_map(|value| match value {
            Value::Int(n) => Some(Exact::Int(n)),
            Value::Float(x) => Some(Exact::Float(x)),
            _ => None,
        })
        .collect()
}

fn factor(variable: &Variable, name: &str) -> Result<Option<Factor>, ClientError> {
    let Some(attribute) = variable.attribute(name) else { return Ok(None) };
    let dtype = match &attribute.value {
        AttributeValue::Numbers { typed: true, dtype, .. } => FactorType::from_dtype(*dtype),
        AttributeValue::Numbers { dtype, .. } if !dtype.is_float() => FactorType::from_dtype(*dtype),
        _ => FactorType::Untyped,
    };
    match numbers(variable, name).first() {
        Some(Exact::Int(n)) => Ok(Some(Factor { value: *n as f64, dtype })),
        Some(Exact::Float(x)) => Ok(Some(Factor { value: *x, dtype })),
        None => Err(ClientError::Usage(format!(
            "attribute {name} of {} is not a number, so its values cannot be decoded",
            variable.path
        ))),
    }
}
