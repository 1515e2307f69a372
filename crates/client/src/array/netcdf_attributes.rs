//! Attributes of a variable or a file as attributes of classic netCDF.

use gristmill_format::{Attribute, AttributeValue, Variable};
use gristmill_kernel::{DType, Value};

use super::netcdf::NetcdfAttribute;

/// Copies some attributes of a variable.
pub(super) fn copied_attributes(variable: &Variable, names: &[&str]) -> Vec<(String, NetcdfAttribute)> {
    names
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), netcdf_attribute(variable.attribute(name)?)?)))
        .collect()
}

/// Converts an attribute to classic netCDF, or returns `None` if that has no such type. Whole numbers without a type
/// become i32 if they fit.
pub(super) fn netcdf_attribute(attribute: &Attribute) -> Option<NetcdfAttribute> {
    let small = |value: &Value| match value {
        Value::Int(n) => i32::try_from(*n).ok(),
        _ => None,
    };
    Some(match &attribute.value {
        AttributeValue::Numbers { dtype, bytes, typed, .. } => {
            let numbers = attribute.value.numbers().unwrap_or_default();
            match numbers.iter().map(small).collect::<Option<Vec<i32>>>() {
                Some(all) if !typed => {
                    NetcdfAttribute::Numbers(DType::I32, all.into_iter().flat_map(i32::to_le_bytes).collect())
                }
                _ => NetcdfAttribute::Numbers(*dtype, bytes.clone()),
            }
        }
        value => NetcdfAttribute::Text(value.text()?.to_owned()),
    })
}
