//! Weights along an axis.

use gristmill_format::{Dataset, Variable};

use super::coordinate;
use crate::ClientError;

/// Name of the weights that need no variable: the cosine of the axis's coordinate, latitudes in degrees. The area of a
/// cell of a grid of longitudes and latitudes is proportional to it.
pub const COSINE_OF_LATITUDE: &str = "coslat";

/// Returns the weights of the elements `taken` of an axis of a variable: the values of a variable with that axis, or
/// [`COSINE_OF_LATITUDE`].
///
/// # Errors
/// Returns an error if the variable does not exist or has other axes, if a value is missing, or if a coordinate is not
/// a latitude.
pub(super) fn axis_weights(
    dataset: &Dataset,
    variable: &Variable,
    axis: usize,
    taken: &[usize],
    by: &str,
) -> Result<Vec<f64>, ClientError> {
    let wrong = |text: String| Err(ClientError::Usage(text));
    let cosine = by == COSINE_OF_LATITUDE && dataset.variables.iter().all(|other| other.path != by);
    let found = if cosine {
        match coordinate::find(dataset, variable, axis) {
            Some(found) => found,
            None => return wrong(format!("{by}: the axis has no coordinate with latitudes")),
        }
    } else {
        let found = dataset.variable(by)?;
        coordinate::check_axis(found, variable, axis)?;
        found
    };
    let all = coordinate::values(dataset, found)?.values;
    let values: Vec<f64> = taken.iter().filter_map(|at| all.get(*at).copied()).collect();
    if let Some(x) = values.iter().find(|x| !x.is_finite()) {
        return wrong(format!(
            "{} has an element {x}, which is not a weight; make missing elements 0",
            found.path
        ));
    }
    if !cosine {
        return Ok(values);
    }
    let units = found.attribute("units").and_then(|attribute| attribute.value.text()).unwrap_or("degrees");
    // In f32 a pole may lie slightly beyond 90 degrees.
    match values.iter().find(|x| x.abs() > 90.001) {
        _ if !units.starts_with("degree") => {
            wrong(format!("{by}: {} is in {units}, and latitudes are in degrees", found.path))
        }
        Some(x) => wrong(format!("{by}: {} has an element {x}, and latitudes go from -90 to 90", found.path)),
        None => Ok(values.iter().map(|x| x.to_radians().cos().max(0.0)).collect()),
    }
}
