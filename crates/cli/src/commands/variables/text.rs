//! The variables of a scientific file, as text.

use gristmill_format::{AttributeValue, ChunkTable, Dataset, FormatError, FoundChunk, Kind, Variable};
use gristmill_kernel::{ByteOrder, Value as Number};

use super::stored_chunks::for_each_stored;
use crate::commands::file_location::FileLocation;
use crate::json::value;
use crate::size::readable;

/// Most characters of an attribute that the text shows.
const SHOWN: usize = 200;

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
