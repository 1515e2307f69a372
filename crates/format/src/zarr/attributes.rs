//! Attributes in JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gristmill_kernel::DType;
use serde_json::Value;

use super::document::{float, is_number, written};
use crate::attribute::{Attribute, AttributeValue};

/// Attribute that names the dimensions of an array in version 2, by a convention of xarray.
pub const DIMENSIONS: &str = "_ARRAY_DIMENSIONS";

/// Reads the attributes of an object, in its order.
pub fn from_json(json: Option<&Value>) -> Vec<Attribute> {
    let Some(object) = json.and_then(Value::as_object) else { return Vec::new() };
    let shown = object.iter().filter(|(name, _)| *name != DIMENSIONS);
    shown.map(|(name, json)| Attribute { name: name.clone(), value: value(json) }).collect()
}

/// The attribute of netCDF that gives the value of missing elements.
const FILL_VALUE: &str = "_FillValue";

/// Adds the missing value of an array of version 2: its fill value, as xarray and NCZarr write it. Only the document of
/// the array has it.
pub fn missing_is_fill(attributes: &mut Vec<Attribute>, dtype: DType, fill: &[u8]) {
    attributes.retain(|attribute| attribute.name != FILL_VALUE);
    let value = AttributeValue::Numbers { dtype, bytes: fill.to_vec(), scalar: true, typed: true };
    attributes.push(Attribute { name: FILL_VALUE.to_owned(), value });
}

/// Decodes the missing value of floats in version 3, which xarray writes as eight bytes in base64.
pub fn missing_from_text(attributes: &mut [Attribute], dtype: DType) {
    let Some(attribute) = attributes.iter_mut().find(|attribute| attribute.name == FILL_VALUE) else {
        return;
    };
    let text = attribute.value.text().filter(|_| dtype.is_float());
    let bytes = text.and_then(|text| STANDARD.decode(text).ok()).and_then(|bytes| bytes.try_into().ok());
    let Some(value) = bytes.map(f64::from_le_bytes) else { return };
    let bytes = match dtype {
        DType::F32 => (value as f32).to_le_bytes().to_vec(),
        _ => value.to_le_bytes().to_vec(),
    };
    attribute.value = AttributeValue::Numbers { dtype, bytes, scalar: true, typed: true };
}

/// Reads a value of JSON. Integers are i64, or u64 if they are too large for it; all other numbers are f64.
fn value(json: &Value) -> AttributeValue {
    match json {
        Value::String(text) => AttributeValue::Text(text.clone()),
        one if is_number(one) => numbers(std::slice::from_ref(one), true),
        Value::Array(all) if !all.is_empty() && all.iter().all(Value::is_string) => {
            AttributeValue::Texts(all.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        Value::Array(all) if all.iter().all(is_number) => numbers(all, false),
        other => AttributeValue::Other(written(other)),
    }
}

fn numbers(all: &[Value], scalar: bool) -> AttributeValue {
    let signed: Option<Vec<i64>> = all.iter().map(Value::as_i64).collect();
    if let Some(all) = signed {
        let bytes = all.iter().flat_map(|x| x.to_le_bytes()).collect();
        return AttributeValue::Numbers { dtype: DType::I64, bytes, scalar, typed: false };
    }
    let unsigned: Option<Vec<u64>> = all.iter().map(Value::as_u64).collect();
    if let Some(all) = unsigned {
        let bytes = all.iter().flat_map(|x| x.to_le_bytes()).collect();
        return AttributeValue::Numbers { dtype: DType::U64, bytes, scalar, typed: false };
    }
    let bytes = all.iter().filter_map(float).flat_map(f64::to_le_bytes).collect();
    AttributeValue::Numbers { dtype: DType::F64, bytes, scalar, typed: false }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn fill_value(json: &Value, change: impl Fn(&mut Vec<Attribute>)) -> AttributeValue {
        let mut all = from_json(Some(json));
        change(&mut all);
        assert_eq!(all.iter().filter(|attribute| attribute.name == FILL_VALUE).count(), 1);
        all.into_iter().find(|attribute| attribute.name == FILL_VALUE).unwrap().value
    }

    #[test]
    fn missing_values_of_floats_are_read_from_text() {
        let of_type = |dtype, text: &str| {
            fill_value(&json!({"a": 1, "_FillValue": text}), |all| missing_from_text(all, dtype))
        };
        // struct.pack("<d", 1e20) in base64.
        let number = |dtype, bytes| AttributeValue::Numbers { dtype, bytes, scalar: true, typed: true };
        assert_eq!(of_type(DType::F64, "QIy1eB2vFUQ="), number(DType::F64, 1e20f64.to_le_bytes().to_vec()));
        assert_eq!(of_type(DType::F32, "QIy1eB2vFUQ="), number(DType::F32, 1e20f32.to_le_bytes().to_vec()));
        for (dtype, text) in [(DType::I32, "QIy1eB2vFUQ="), (DType::F64, "QIy1"), (DType::F64, "no base64!")]
        {
            assert_eq!(of_type(dtype, text), AttributeValue::Text(text.to_owned()));
        }
    }

    #[test]
    fn the_document_says_what_is_missing() {
        for attributes in [json!({}), json!({"_FillValue": 3})] {
            let fill = fill_value(&attributes, |all| missing_is_fill(all, DType::I16, &[9, 0]));
            let bytes = vec![9, 0];
            let dtype = DType::I16;
            assert_eq!(fill, AttributeValue::Numbers { dtype, bytes, scalar: true, typed: true });
        }
    }
}
