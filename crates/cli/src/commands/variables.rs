//! The variables of a scientific file, as JSON. [`text`] has them as text.

mod stored_chunks;
mod text;

use std::fmt::Display;
use std::path::{Path, PathBuf};

use gristmill_client::{ClientError, Here, Location};
use gristmill_format::{AttributeValue, ChunkTable, Dataset, FormatError, FoundChunk, Variable, open_path};
use gristmill_kernel::ByteOrder;
use serde_json::{Map, Value as Json, json};

use self::stored_chunks::for_each_stored;
pub use self::text::to_text;
use crate::commands::file_location::FileLocation;
use crate::error::CliError;
use crate::json::{integer, value};

/// The variables of a file or folder; `None` if its format is unknown.
pub fn open(path: &Path) -> Result<Option<Dataset>, FormatError> {
    match open_path(path) {
        Ok(dataset) => Ok(Some(dataset)),
        Err(FormatError::Unrecognised { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens a file, or a folder of Zarr, that this process reads itself.
///
/// # Errors
/// The message names the file.
pub fn open_here(location: &Location, verify: bool) -> Result<Here, CliError> {
    Here::open(location, verify).map_err(|error| match error {
        ClientError::Format(error) => failed(location)(error),
        error => error.into(),
    })
}

/// Makes the error of a file. Its message names the file.
pub fn failed(name: &impl Display) -> impl Fn(FormatError) -> CliError {
    let path = PathBuf::from(name.to_string());
    move |source| CliError::Format { path: path.clone(), source }
}

/// All variables of a file, or one, as JSON.
pub fn to_json(
    dataset: &Dataset,
    only: Option<&str>,
    chunks: bool,
    location: Option<&FileLocation>,
) -> Result<Map<String, Json>, FormatError> {
    let mut out = Map::new();
    out.insert("format".to_owned(), json!(dataset.format.name()));
    if let Some(name) = only {
        let variable = dataset.variable(name)?;
        let mut shown = variable_json(dataset, variable, chunks, location)?;
        if let Some((location, table)) = location.zip(dataset.table(name).ok()) {
            shown["targets"] = location.json(&table);
        }
        out.insert("variables".to_owned(), json!([shown]));
        return Ok(out);
    }
    let dimensions: Vec<Json> = dataset
        .dimensions
        .iter()
        .map(|dimension| {
            json!({ "name": dimension.name, "length": integer(dimension.length.into()), "unlimited": dimension.unlimited })
        })
        .collect();
    out.insert("dimensions".to_owned(), json!(dimensions));
    out.insert("attributes".to_owned(), attributes(&dataset.attributes));
    let variables: Result<Vec<Json>, FormatError> =
        dataset.variables.iter().map(|variable| variable_json(dataset, variable, false, None)).collect();
    out.insert("variables".to_owned(), json!(variables?));
    Ok(out)
}

fn variable_json(
    dataset: &Dataset,
    variable: &Variable,
    chunks: bool,
    location: Option<&FileLocation>,
) -> Result<Json, FormatError> {
    let dtype = variable.dtype().ok();
    let fill = dtype.zip(variable.fill.as_deref()).map(|(dtype, fill)| value(&dtype.value(fill)));
    let mut out = json!({
        "name": variable.path,
        "type": dtype.map(|dtype| dtype.name()),
        "kind": variable.kind.to_string(),
        "order": order(variable),
        "shape": lengths(&variable.shape),
        "dimensions": variable.dimensions,
        "storage": variable.storage.name(),
        "filters": variable.filters,
        "fill": fill,
        "attributes": attributes(&variable.attributes),
    });
    let table = match dataset.table(&variable.path) {
        Ok(table) => table,
        Err(error) if chunks => return Err(error),
        Err(error) => {
            out["refused"] = json!(error.to_string());
            return Ok(out);
        }
    };
    out["chunk"] = lengths(&table.array.chunk);
    out["chunks"] = integer(table.array.chunks().into());
    out["stored_chunks"] = integer(table.stored_chunks().into());
    out["stored_bytes"] = integer(table.stored_bytes().into());
    if chunks {
        out["table"] = json!(chunks_json(&table, location)?);
    }
    Ok(out)
}

/// All stored chunks of a table as JSON.
fn chunks_json(table: &ChunkTable, location: Option<&FileLocation>) -> Result<Vec<Json>, FormatError> {
    let mut out = Vec::new();
    for_each_stored(table, &mut |number, origin, found| {
        let mut one = match found {
            FoundChunk::At(place) => json!({
                "chunk": integer(number.into()),
                "origin": lengths(origin),
                "file": table.files.get(place.file as usize).map(|file| &file.name),
                "offset": integer(place.offset.into()),
                "bytes": integer(place.bytes.into()),
                "mask": place.mask,
            }),
            _ => json!({ "chunk": integer(number.into()), "origin": lengths(origin), "inline": true }),
        };
        if let (Some(location), FoundChunk::At(place)) = (location, found) {
            one["targets"] = json!(location.targets_of(&place));
        }
        out.push(one);
    })?;
    Ok(out)
}

/// Attributes as JSON: texts unchanged, numbers with their type.
fn attributes(all: &[gristmill_format::Attribute]) -> Json {
    let shown = |attribute: &gristmill_format::Attribute| {
        let shown = match &attribute.value {
            AttributeValue::Text(text) => json!(text),
            AttributeValue::Texts(texts) => json!(texts),
            AttributeValue::Other(what) => json!({ "other": what }),
            AttributeValue::Numbers { dtype, scalar, .. } => {
                let numbers: Vec<Json> =
                    attribute.value.numbers().unwrap_or_default().iter().map(value).collect();
                let numbers = match (scalar, numbers.as_slice()) {
                    (true, [one]) => one.clone(),
                    _ => json!(numbers),
                };
                json!({ "type": dtype.name(), "value": numbers })
            }
        };
        (attribute.name.clone(), shown)
    };
    Json::Object(all.iter().map(shown).collect())
}

fn lengths(all: &[u64]) -> Json {
    Json::Array(all.iter().map(|length| integer((*length).into())).collect())
}

fn order(variable: &Variable) -> &'static str {
    match variable.order {
        ByteOrder::Little => "little",
        ByteOrder::Big => "big",
    }
}
