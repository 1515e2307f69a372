//! Names of the axes of a variable.

use gristmill_array::ArrayError;
use gristmill_format::Variable;

use crate::ClientError;

/// The name of an axis: that of its dimension, or `dim_0` and so on.
pub(super) fn name(variable: &Variable, axis: usize) -> String {
    match variable.dimensions.get(axis) {
        Some(name) if !name.is_empty() => name.clone(),
        _ => format!("dim_{axis}"),
    }
}

/// Finds an axis by its name, or by its number, negative from the end.
pub(super) fn find(variable: &Variable, name_or_number: &str) -> Result<usize, ClientError> {
    let axes = variable.shape.len();
    let named: Vec<usize> = (0..axes).filter(|axis| name(variable, *axis) == name_or_number).collect();
    let numbered = name_or_number.parse::<i64>().ok().and_then(|number| {
        let at = if number < 0 { number + axes as i64 } else { number };
        usize::try_from(at).ok().filter(|at| *at < axes)
    });
    match (&named[..], numbered) {
        ([axis], _) => Ok(*axis),
        ([], Some(axis)) => Ok(axis),
        ([], None) => {
            let names: Vec<String> = (0..axes).map(|axis| name(variable, axis)).collect();
            Err(ClientError::Usage(format!(
                "{} has no axis {name_or_number}; it has {}",
                variable.path,
                if names.is_empty() { "none, it is a single number".into() } else { names.join(", ") }
            )))
        }
        _ => Err(ClientError::Usage(format!(
            "several axes of {} are called {name_or_number}; give its number",
            variable.path
        ))),
    }
}

/// Adds the name of the dimension to the error about an index that is outside its axis.
pub(super) fn with_dimension(variable: &Variable, error: ArrayError) -> ClientError {
    match error {
        ArrayError::Index { index, axis, length }
            if variable.dimensions.get(axis).is_some_and(|name| !name.is_empty()) =>
        {
            ClientError::Usage(format!(
                "index {index} is out of range for axis {axis} ({}) of length {length}",
                name(variable, axis)
            ))
        }
        other => other.into(),
    }
}
