//! The variables of a scientific file, as JSON and as text.

use std::path::Path;

use gristmill_format::{
    AttributeValue, ChunkTable, Dataset, FormatError, FoundChunk, Kind, Variable, open_path,
};
use gristmill_kernel::{ByteOrder, Value as Number};
use serde_json::{Map, Value as Json, json};

use crate::commands::file_location::FileLocation;
use crate::error::CliError;
use crate::json::{integer, value};
use crate::size::readable;

/// Most chunks that are listed for one variable.
const MAX_LISTED: u64 = 1 << 20;

/// Most characters of an attribute that the text shows.
const SHOWN: usize = 200;

/// Files that mark a folder as Zarr.
const ZARR: [&str; 3] = ["zarr.json", ".zarray", ".zgroup"];

/// Whether a folder holds Zarr.
pub fn is_zarr(path: &Path) -> bool {
    path.is_dir() && ZARR.iter().any(|name| path.join(name).is_file())
}

/// The variables of a file or folder; `None` if its format is unknown.
pub fn open(path: &Path) -> Result<Option<Dataset>, FormatError> {
    match open_path(path) {
        Ok(dataset) => Ok(Some(dataset)),
        Err(FormatError::Unrecognised { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes the error of a file. Its message names the file.
pub fn failed(path: &Path) -> impl Fn(FormatError) -> CliError {
    let path = path.to_owned();
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

fn for_each_stored(
    table: &ChunkTable,
    each: &mut dyn FnMut(u64, &[u64], FoundChunk<'_>),
) -> Result<(), FormatError> {
    if table.stored_chunks() > MAX_LISTED {
        return Err(FormatError::Limit {
            what: "chunks to list".to_owned(),
            found: table.stored_chunks(),
            max: MAX_LISTED,
        });
    }
    let numbers: Box<dyn Iterator<Item = u64>> = match &table.locations {
        gristmill_format::ChunkLocations::Listed(places) => Box::new(places.iter().map(|place| place.chunk)),
        _ => Box::new(0..table.array.chunks()),
    };
    for number in numbers {
        if let (Some(found), Some(extent)) = (table.find(number), table.array.extent(number)) {
            each(number, &extent.origin, found);
        }
    }
    Ok(())
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

/// All variables of a file, or one, as text: lines that follow the line about the file.
pub fn to_text(
    dataset: &Dataset,
    only: Option<&str>,
    chunks: bool,
    location: Option<&FileLocation>,
) -> Result<String, FormatError> {
    let mut out = format!("\n  {}", dataset.format);
    if let Some(name) = only {
        let variable = dataset.variable(name)?;
        out.push_str(&line(dataset, variable, variable.path.len()));
        for attribute in &variable.attributes {
            out.push_str(&format!("\n    {}: {}", clean(&attribute.name), attribute_text(&attribute.value)));
        }
        if let Some((location, table)) = location.zip(dataset.table(name).ok()) {
            out.push_str(&location.text(&table));
        }
        if chunks {
            out.push_str(&chunks_text(&dataset.table(name)?, location)?);
        }
        return Ok(out);
    }
    if !dataset.dimensions.is_empty() {
        let all: Vec<String> = dataset
            .dimensions
            .iter()
            .map(|dimension| {
                let unlimited = if dimension.unlimited { " (unlimited)" } else { "" };
                format!("{} = {}{unlimited}", clean(&dimension.name), dimension.length)
            })
            .collect();
        out.push_str(&format!("\n  dimensions: {}", all.join(", ")));
    }
    let width = dataset.variables.iter().map(|variable| variable.path.chars().count()).max().unwrap_or(0);
    for variable in &dataset.variables {
        out.push_str(&line(dataset, variable, width));
    }
    Ok(out)
}

/// One line about a variable: type, shape, chunks and their size.
fn line(dataset: &Dataset, variable: &Variable, width: usize) -> String {
    let axes: Vec<String> = variable
        .shape
        .iter()
        .zip(&variable.dimensions)
        .map(
            |(length, name)| {
                if name.is_empty() { length.to_string() } else { format!("{}={length}", clean(name)) }
            },
        )
        .collect();
    let kind = clean(&variable.kind.to_string());
    let mut out = format!("\n  {:width$}  {kind} ({})", clean(&variable.path), axes.join(", "));
    if !matches!(variable.kind, Kind::Number(_)) {
        out.push_str(", not supported");
        return out;
    }
    if variable.order == ByteOrder::Big {
        out.push_str(" big-endian");
    }
    out.push_str(&format!(", {}", variable.storage.name()));
    if !variable.filters.is_empty() {
        out.push_str(&format!(" with {}", variable.filters.join(", ")));
    }
    match dataset.table(&variable.path) {
        Err(error) => out.push_str(&format!(": refused, {}", clean(&error.to_string()))),
        Ok(table) => {
            let shape: Vec<String> = table.array.chunk.iter().map(u64::to_string).collect();
            let (all, stored) = (table.array.chunks(), table.stored_chunks());
            let some = if stored < all { format!("{stored} of {all}") } else { all.to_string() };
            let of = if shape.is_empty() { String::new() } else { format!(" of {}", shape.join("x")) };
            let s = if all == 1 { "" } else { "s" };
            out.push_str(&format!(": {some} chunk{s}{of}, {}", readable(table.stored_bytes())));
        }
    }
    out
}

/// Replaces control characters by spaces, so that a text is one line and does not control a terminal.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn attribute_text(all: &AttributeValue) -> String {
    let text = match all {
        AttributeValue::Text(text) => text.clone(),
        AttributeValue::Texts(texts) => texts.join(", "),
        AttributeValue::Other(what) => what.clone(),
        AttributeValue::Numbers { .. } => {
            let one = |number: &Number| match number {
                Number::Float(x) => x.to_string(),
                other => value(other).to_string(),
            };
            all.numbers().unwrap_or_default().iter().map(one).collect::<Vec<_>>().join(", ")
        }
    };
    let clean = clean(&text);
    match clean.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", clean.get(..end).unwrap_or(&clean)),
        None => clean,
    }
}

fn chunks_text(table: &ChunkTable, location: Option<&FileLocation>) -> Result<String, FormatError> {
    let mut out = String::new();
    for_each_stored(table, &mut |number, origin, found| {
        let place = match found {
            FoundChunk::At(place) => {
                let file = table.files.get(place.file as usize).map_or("", |file| &file.name);
                let file = if file.is_empty() { String::new() } else { format!(" of {file}") };
                let mask =
                    if place.mask == 0 { String::new() } else { format!(", filter mask {:#x}", place.mask) };
                let on = match location.map(|location| location.targets_of(&place)) {
                    None => String::new(),
                    Some(on) => {
                        let on: Vec<String> = on.iter().map(u32::to_string).collect();
                        format!(" on target{} {}", if on.len() == 1 { "" } else { "s" }, on.join(", "))
                    }
                };
                let end = place.offset.saturating_add(place.bytes);
                format!("bytes {}..{end}{file}{mask}{on}", place.offset)
            }
            _ => "inside the file's description".to_owned(),
        };
        out.push_str(&format!("\n    chunk {number} at {origin:?}: {place}"));
    })?;
    Ok(out)
}
