//! Zarr version 3: `zarr.json`.

use gristmill_kernel::{ByteOrder, DType};
use serde_json::{Map, Value};

use super::codecs::{bytes_to_bytes, unsupported};
use super::keys::Keys;
use super::shard::Shards;
use super::{Node, Stored, attributes, bad, fill, lengths, path_of};
use crate::array::{Array, Edges};
use crate::dataset::{Kind, Storage, Variable, names};
use crate::filter::Filter;
use crate::{FormatError, MAX_DIMENSIONS};

/// Reads an array from its document.
pub fn node(folder: &str, json: &Map<String, Value>) -> Result<Node, FormatError> {
    let path = path_of(folder);
    if json.get("zarr_format").and_then(Value::as_u64) != Some(3)
        || json.get("node_type").and_then(Value::as_str) != Some("array")
    {
        return Err(bad(format!("{path}: it is not an array of version 3")));
    }
    let shape = lengths(json.get("shape"), "the shape of an array")?;
    FormatError::limit("dimensions", shape.len() as u64, MAX_DIMENSIONS as u64)?;
    let grid = json.get("chunk_grid").and_then(Value::as_object);
    let (grid, parameters) = grid.map(parts).unwrap_or_default();
    if grid != "regular" {
        return Err(bad(format!("{path}: its grid of chunks is {grid:?}, and only regular ones are known")));
    }
    let outer = lengths(parameters.and_then(|all| all.get("chunk_shape")), "the chunk shape of an array")?;
    let kind = kind_of(json.get("data_type"));
    let element = match kind {
        Kind::Number(dtype) => fill::fill(json.get("fill_value"), dtype),
        Kind::Other(_) => None,
    };
    let chain = chain(json, &outer);
    let order = chain.as_ref().map_or(ByteOrder::Little, |chain| chain.order);
    let chunk = chain.as_ref().map_or_else(|_| outer.clone(), |chain| chain.chunk.clone());
    let filters = chain.as_ref().map_or_else(|_| Vec::new(), |chain| names(&chain.filters));
    let stored = match (&kind, chain, &element) {
        (Kind::Number(dtype), Ok(chain), Some(fill)) => Ok(Stored {
            array: Array {
                dtype: *dtype,
                order: chain.order,
                stored: shape.clone(),
                shape: shape.clone(),
                chunk: chain.chunk,
                edges: Edges::Whole,
                filters: chain.filters,
                fill: fill.clone(),
            },
            keys: keys(json)?,
            shards: chain.shards,
        }),
        (_, Err(why), _) => Err(why),
        (_, _, None) => Err("its fill value does not have the type of its elements".to_owned()),
        _ => Err("its elements are not numbers".to_owned()),
    };
    let dimensions = json.get("dimension_names").and_then(Value::as_array);
    let dimension = |axis: usize| dimensions.and_then(|names| names.get(axis)).and_then(Value::as_str);
    let mut given = attributes::from_json(json.get("attributes"));
    if let Kind::Number(dtype) = kind {
        attributes::missing_from_text(&mut given, dtype);
    }
    let variable = Variable {
        path,
        dimensions: (0..shape.len()).map(|axis| dimension(axis).unwrap_or_default().to_owned()).collect(),
        kind,
        order,
        chunk: Some(chunk),
        storage: Storage::Chunked,
        filters,
        fill: element,
        attributes: given,
        shape,
    };
    Ok(Node { folder: folder.to_owned(), variable, stored })
}

/// Returns the name and the parameters of an extension, which may be only a name.
fn parts(object: &Map<String, Value>) -> (&str, Option<&Map<String, Value>>) {
    let name = object.get("name").and_then(Value::as_str).unwrap_or_default();
    (name, object.get("configuration").and_then(Value::as_object))
}

fn extension(json: &Value) -> (&str, Option<&Map<String, Value>>) {
    match json {
        Value::String(name) => (name, None),
        Value::Object(object) => parts(object),
        _ => ("", None),
    }
}

fn kind_of(json: Option<&Value>) -> Kind {
    let dtype = match json.and_then(Value::as_str) {
        Some("int8") => DType::I8,
        Some("int16") => DType::I16,
        Some("int32") => DType::I32,
        Some("int64") => DType::I64,
        Some("uint8") => DType::U8,
        Some("uint16") => DType::U16,
        Some("uint32") => DType::U32,
        Some("uint64") => DType::U64,
        Some("float32") => DType::F32,
        Some("float64") => DType::F64,
        Some("bool") => return Kind::Other("booleans".to_owned()),
        Some("float16") => return Kind::Other("floats of 16 bits".to_owned()),
        Some(other) => return Kind::Other(other.to_owned()),
        None => {
            let name = json.map(extension).map_or("", |(name, _)| name);
            return Kind::Other(format!("of a type of its own, {name:?}"));
        }
    };
    Kind::Number(dtype)
}

fn keys(json: &Map<String, Value>) -> Result<Keys, FormatError> {
    let (name, parameters) = json.get("chunk_key_encoding").map(extension).unwrap_or(("default", None));
    let separator = parameters.and_then(|all| all.get("separator")).and_then(Value::as_str);
    let (prefixed, usual) = match name {
        "default" => (true, '/'),
        "v2" => (false, '.'),
        other => return Err(bad(format!("its chunk keys are of an unknown kind, {other:?}"))),
    };
    let separator = match separator {
        None => usual,
        Some(".") => '.',
        Some("/") => '/',
        Some(other) => return Err(bad(format!("the separator of its chunk keys is {other:?}"))),
    };
    Ok(Keys { prefixed, separator })
}

/// The codecs of a chunk.
struct Chain {
    filters: Vec<Filter>,
    order: ByteOrder,
    /// Lengths of a chunk. With shards, those of a chunk inside a shard.
    chunk: Vec<u64>,
    shards: Option<Shards>,
}

fn chain(json: &Map<String, Value>, outer: &[u64]) -> Result<Chain, String> {
    if json.get("storage_transformers").and_then(Value::as_array).is_some_and(|all| !all.is_empty()) {
        return Err("it has storage transformers, which are not supported".to_owned());
    }
    let codecs = json.get("codecs").and_then(Value::as_array).ok_or("it has no codecs")?;
    let first = codecs.first().map(extension);
    let Some(("sharding_indexed", parameters)) = first else {
        let (filters, order) = elements_to_bytes(codecs)?;
        return Ok(Chain { filters, order, chunk: outer.to_vec(), shards: None });
    };
    if codecs.len() > 1 {
        return Err("its shards are compressed as a whole, so a chunk in them has no place".to_owned());
    }
    let parameter = |name: &str| parameters.and_then(|all| all.get(name));
    let chunk =
        lengths(parameter("chunk_shape"), "the chunk shape of shards").map_err(|error| error.to_string())?;
    let fits = chunk.len() == outer.len()
        && outer.iter().zip(&chunk).all(|(shard, chunk)| *chunk > 0 && shard.is_multiple_of(*chunk));
    if !fits {
        return Err("its shards are not a whole number of chunks".to_owned());
    }
    let inner =
        parameter("codecs").and_then(Value::as_array).ok_or("the chunks of its shards have no codecs")?;
    let (filters, order) = elements_to_bytes(inner)?;
    let at_end = match parameter("index_location").and_then(Value::as_str) {
        None | Some("end") => true,
        Some("start") => false,
        Some(other) => return Err(format!("the index of its shards is at an unknown place, {other:?}")),
    };
    let index =
        parameter("index_codecs").and_then(Value::as_array).ok_or("the index of its shards has no codecs")?;
    let checked = match elements_to_bytes(index)? {
        (filters, ByteOrder::Little) if filters.is_empty() => false,
        (filters, ByteOrder::Little) if filters == [Filter::Crc32c] => true,
        _ => {
            return Err(
                "the index of its shards is stored in an unusual way, which is not supported".to_owned()
            );
        }
    };
    let chunks = outer.iter().zip(&chunk).map(|(shard, chunk)| shard / chunk).collect();
    Ok(Chain { filters, order, chunk, shards: Some(Shards { chunks, at_end, checked }) })
}

/// Returns the filters and the byte order of a list of codecs: from arrays to arrays, then to bytes, then from bytes to
/// bytes.
fn elements_to_bytes(codecs: &[Value]) -> Result<(Vec<Filter>, ByteOrder), String> {
    let mut filters = Vec::new();
    let mut order = None;
    for codec in codecs {
        let (name, parameters) = extension(codec);
        match (name, order) {
            ("transpose", None) if filters.is_empty() => {
                let axes = parameters.and_then(|all| all.get("order")).and_then(Value::as_array);
                let axis = |axis: &Value| axis.as_u64().and_then(|axis| u8::try_from(axis).ok());
                let axes: Option<Vec<u8>> = axes.and_then(|axes| axes.iter().map(axis).collect());
                filters.push(Filter::Transpose(axes.ok_or("its axes are in an unknown order")?));
            }
            ("bytes", None) => {
                let endian = parameters.and_then(|all| all.get("endian")).and_then(Value::as_str);
                order = Some(match endian {
                    None | Some("little") => ByteOrder::Little,
                    Some("big") => ByteOrder::Big,
                    Some(other) => return Err(format!("its byte order is unknown, {other:?}")),
                });
            }
            ("sharding_indexed", _) => {
                return Err("it has shards in an order that is not supported".to_owned());
            }
            (name, Some(_)) => filters.push(bytes_to_bytes(name, parameters)?),
            (name, None) => return Err(unsupported(name)),
        }
    }
    Ok((filters, order.ok_or("it has no codec from elements to bytes")?))
}
