//! Codecs by name.

use serde_json::{Map, Value};

use crate::filter::Filter;

/// Reads a codec of numcodecs as in version 2: `{"id": ...}`.
pub fn numcodecs(json: &Value) -> Result<Filter, String> {
    let id = json.get("id").and_then(Value::as_str).ok_or("it has a filter without a name")?;
    named(id, json.as_object())
}

/// Returns the filter of a numcodecs codec with its parameters.
fn named(id: &str, parameters: Option<&Map<String, Value>>) -> Result<Filter, String> {
    let number = |name: &str| parameters.and_then(|all| all.get(name)).and_then(Value::as_u64);
    Ok(match id {
        "zlib" => Filter::Zlib,
        "gzip" => Filter::Gzip,
        "zstd" => Filter::Zstd,
        "lz4" => Filter::Lz4Numcodecs,
        "blosc" => Filter::Blosc,
        "shuffle" => {
            let size = number("elementsize").unwrap_or(4);
            Filter::Shuffle { size: u32::try_from(size).map_err(|_| "its elements are too large")? }
        }
        "fletcher32" => Filter::Fletcher32,
        other => return Err(unsupported(other)),
    })
}

/// Returns the filter of a codec of version 3 that maps bytes to bytes.
pub fn bytes_to_bytes(name: &str, parameters: Option<&Map<String, Value>>) -> Result<Filter, String> {
    match name {
        "gzip" => Ok(Filter::Gzip),
        "zstd" => Ok(Filter::Zstd),
        "blosc" => Ok(Filter::Blosc),
        "crc32c" => Ok(Filter::Crc32c),
        "shuffle" => named(name, parameters),
        // zarr-python offers the codecs of numcodecs too.
        other => match other.strip_prefix("numcodecs.") {
            Some(id) => named(id, parameters),
            None => Err(unsupported(other)),
        },
    }
}

pub fn unsupported(name: &str) -> String {
    format!("its codec {name} is not supported; write it again with gzip, zstd or blosc")
}
