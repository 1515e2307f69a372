//! Attributes as JSON.

use gristmill_kernel::DType;
use serde_json::Value;

use crate::attribute::{Attribute, AttributeValue};

/// What names the dimensions of an array in version 2, by a convention of xarray.
pub const DIMENSIONS: &str = "_ARRAY_DIMENSIONS";

/// The attributes of an object, in its order.
pub fn of(json: Option<&Value>) -> Vec<Attribute> {
    let Some(object) = json.and_then(Value::as_object) else { return Vec::new() };
    let shown = object.iter().filter(|(name, _)| *name != DIMENSIONS);
    shown.map(|(name, json)| Attribute { name: name.clone(), value: value(json) }).collect()
}

/// JSON has one kind of numbers: integers are i64, or u64 if they are too large for it, all others f64.
fn value(json: &Value) -> AttributeValue {
    match json {
        Value::String(text) => AttributeValue::Text(text.clone()),
        Value::Number(_) => numbers(std::slice::from_ref(json), true),
        Value::Array(all) if !all.is_empty() && all.iter().all(Value::is_string) => {
            AttributeValue::Texts(all.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        Value::Array(all) if all.iter().all(Value::is_number) => numbers(all, false),
        other => AttributeValue::Other(other.to_string()),
    }
}

fn numbers(all: &[Value], scalar: bool) -> AttributeValue {
    let signed: Option<Vec<i64>> = all.iter().map(Value::as_i64).collect();
    if let Some(all) = signed {
        let bytes = all.iter().flat_map(|x| x.to_le_bytes()).collect();
        return AttributeValue::Numbers { dtype: DType::I64, bytes, scalar };
    }
    let unsigned: Option<Vec<u64>> = all.iter().map(Value::as_u64).collect();
    if let Some(all) = unsigned {
        let bytes = all.iter().flat_map(|x| x.to_le_bytes()).collect();
        return AttributeValue::Numbers { dtype: DType::U64, bytes, scalar };
    }
    let bytes = all.iter().filter_map(Value::as_f64).flat_map(f64::to_le_bytes).collect();
    AttributeValue::Numbers { dtype: DType::F64, bytes, scalar }
}
