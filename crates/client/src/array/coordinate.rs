//! The values of a coordinate: a variable with one axis that has the name of its dimension.

use gristmill_format::{Dataset, Decoder, Variable, is_named};
use gristmill_kernel::{ArrayType, DType};

use super::{axis_names, meaning};
use crate::ClientError;

/// Most values of a coordinate.
const MAX_VALUES: u64 = 1 << 24;

/// Finds the coordinate of an axis of a variable. Returns `None` if the file has no such coordinate of numbers.
pub(super) fn find<'a>(dataset: &'a Dataset, variable: &Variable, axis: usize) -> Option<&'a Variable> {
    let name = variable.dimensions.get(axis).filter(|name| !name.is_empty())?;
    let found = dataset.variables.iter().find(|other| other.path == *name)?;
    let fits = found.dimensions.first() == Some(name) && found.shape.first() == variable.shape.get(axis);
    (found.dimensions.len() == 1 && fits && found.dtype().is_ok()).then_some(found)
}

/// Checks that a variable holds numbers along one axis of another variable, and has no other axis.
///
/// # Errors
/// Returns [`ClientError::Usage`] with the difference.
pub(super) fn check_axis(found: &Variable, variable: &Variable, axis: usize) -> Result<(), ClientError> {
    let name = axis_names::name(variable, axis);
    let same_name = match (found.dimensions.first(), variable.dimensions.get(axis)) {
        (Some(a), Some(b)) => a == b || !is_named(a) && !is_named(b),
        (a, b) => a == b,
    };
    if found.shape.len() != 1 || found.shape.first() != variable.shape.get(axis) || !same_name {
        return Err(ClientError::Usage(format!(
            "{} has not the one dimension {name}, of length {}",
            found.path, variable.shape[axis]
        )));
    }
    found.dtype()?;
    Ok(())
}

/// The values of a coordinate.
pub(super) struct Coordinate {
    pub values: Vec<f64>,
    /// The type of the decoded values.
    pub dtype: ArrayType,
}

impl Coordinate {
    /// Rounds a number to f32 if the coordinate is f32, so that it can be compared.
    pub fn rounded(&self, number: f64) -> f64 {
        if self.dtype == ArrayType::Number(DType::F32) { f64::from(number as f32) } else { number }
    }
}

/// Reads all values of a coordinate, decoded by its attributes.
///
/// # Errors
/// Returns an error if the coordinate cannot be read, or has more than 16 Mi values.
pub(super) fn values(dataset: &Dataset, variable: &Variable) -> Result<Coordinate, ClientError> {
    let length: u64 = variable.shape.iter().product();
    if length > MAX_VALUES {
        let text = format!("coordinate {} has {length} values; at most {MAX_VALUES} are read", variable.path);
        return Err(ClientError::Usage(text));
    }
    let table = dataset.table(&variable.path)?;
    let meaning = meaning::from_attributes(variable, false)?;
    let (mut decoder, mut bytes) = (Decoder::new(&table.array)?, Vec::new());
    let mut all = Vec::with_capacity(length as usize);
    for number in 0..table.array.chunks() {
        dataset.read_chunk(&table, number, &mut decoder, &mut bytes)?;
        let clipped = table.array.extent(number).map_or(0, |extent| extent.clipped.iter().product::<u64>());
        // Integers beyond 2^53 are rounded. Coordinates are compared, but not computed with.
        all.extend(meaning.decode(&bytes)?.to_f64().into_iter().take(clipped as usize));
    }
    Ok(Coordinate { values: all, dtype: meaning.decoded() })
}
