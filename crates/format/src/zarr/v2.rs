//! Zarr version 2: `.zarray` and `.zattrs`.

use serde_json::{Map, Value};

use super::attributes::{self, DIMENSIONS};
use super::codecs::numcodecs;
use super::keys::Keys;
use super::{Node, Stored, bad, fill, lengths, path_of};
use crate::array::{Array, Edges};
use crate::dataset::{Kind, Storage, Variable, names};
use crate::filter::Filter;
use crate::npy::kind_of;
use crate::tree::Tree;
use crate::{FormatError, MAX_DIMENSIONS};

/// Reads the attributes of a folder. A folder without the file has none.
pub fn attributes(tree: &dyn Tree, folder: &str) -> Result<Map<String, Value>, FormatError> {
    let key = if folder.is_empty() { ".zattrs".to_owned() } else { format!("{folder}/.zattrs") };
    match tree.open(&key)? {
        Some(_) => super::json(tree, &key),
        None => Ok(Map::new()),
    }
}

/// Reads an array from its document.
pub fn node(
    folder: &str,
    json: &Map<String, Value>,
    attrs: &Map<String, Value>,
) -> Result<Node, FormatError> {
    if json.get("zarr_format").and_then(Value::as_u64) != Some(2) {
        return Err(bad(format!("{}: it is not of version 2", path_of(folder))));
    }
    let shape = lengths(json.get("shape"), "the shape of an array")?;
    let chunk = lengths(json.get("chunks"), "the chunk shape of an array")?;
    FormatError::limit("dimensions", shape.len() as u64, MAX_DIMENSIONS as u64)?;
    let (kind, order) = match json.get("dtype") {
        Some(Value::String(code)) => kind_of(code),
        _ => (Kind::Other("records of several fields".to_owned()), Default::default()),
    };
    let filters = filters(json, shape.len());
    let element = match kind {
        Kind::Number(dtype) => fill::fill(json.get("fill_value"), dtype),
        Kind::Other(_) => None,
    };
    let stored = match (&kind, &filters, &element) {
        (Kind::Number(dtype), Ok(filters), Some(fill)) => Ok(Stored {
            array: Array {
                dtype: *dtype,
                order,
                stored: shape.clone(),
                shape: shape.clone(),
                chunk: chunk.clone(),
                edges: Edges::Whole,
                filters: filters.clone(),
                fill: fill.clone(),
            },
            keys: keys(json)?,
            shards: None,
        }),
        (_, Err(why), _) => Err(why.clone()),
        (_, _, None) => Err("its fill value does not have the type of its elements".to_owned()),
        _ => Err("its elements are not numbers".to_owned()),
    };
    let dimensions = attrs.get(DIMENSIONS).and_then(Value::as_array);
    let dimension = |axis: usize| dimensions.and_then(|names| names.get(axis)).and_then(Value::as_str);
    let mut given = attributes::from_json(Some(&Value::Object(attrs.clone())));
    if let (Kind::Number(dtype), Some(element)) = (&kind, &element)
        && json.get("fill_value").is_some_and(|value| !value.is_null())
    {
        attributes::missing_is_fill(&mut given, *dtype, element);
    }
    let variable = Variable {
        path: path_of(folder),
        dimensions: (0..shape.len()).map(|axis| dimension(axis).unwrap_or_default().to_owned()).collect(),
        kind,
        order,
        chunk: Some(chunk),
        storage: Storage::Chunked,
        filters: filters.as_ref().map_or_else(|_| listed(json), |filters| names(filters)),
        fill: element,
        attributes: given,
        shape,
    };
    Ok(Node { folder: folder.to_owned(), variable, stored })
}

fn keys(json: &Map<String, Value>) -> Result<Keys, FormatError> {
    let separator = match json.get("dimension_separator").and_then(Value::as_str) {
        None | Some(".") => '.',
        Some("/") => '/',
        Some(other) => return Err(bad(format!("the separator of its chunk keys is {other:?}"))),
    };
    Ok(Keys { prefixed: false, separator })
}

/// Returns the filters of a chunk, in the order of writing.
fn filters(json: &Map<String, Value>, axes: usize) -> Result<Vec<Filter>, String> {
    let mut out = Vec::new();
    match json.get("order").and_then(Value::as_str) {
        Some("C") => {}
        Some("F") => out.push(Filter::Transpose((0..axes as u8).rev().collect())),
        _ => return Err("it does not say the order of its axes".to_owned()),
    }
    let more = json.get("filters").and_then(Value::as_array).into_iter().flatten();
    let compressor = json.get("compressor").filter(|compressor| !compressor.is_null());
    for filter in more.chain(compressor) {
        out.push(numcodecs(filter)?);
    }
    Ok(out)
}

/// Returns the names of filters of which some are not supported.
fn listed(json: &Map<String, Value>) -> Vec<String> {
    let more = json.get("filters").and_then(Value::as_array).into_iter().flatten();
    let all = more.chain(json.get("compressor"));
    all.filter_map(|filter| filter.get("id")?.as_str()).map(str::to_owned).collect()
}
