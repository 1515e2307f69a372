//! Zarr, versions 2 and 3 (the specifications at zarr-specs.readthedocs.io): a tree of files with a JSON document for
//! each array, and a file for each chunk or, in shards, for several.

mod attributes;
mod codecs;
mod document;
mod fill;
mod keys;
mod shard;
mod v2;
mod v3;

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::dataset::{Dataset, Dimension, Format, Tables, Variable};
use crate::source::{self, Source};
use crate::table::{ChunkLocation, ChunkLocations, ChunkTable, FileRef};
use crate::tree::Tree;
use crate::{Array, FormatError, MAX_CHUNKS, MAX_FILES, MAX_GROUP_DEPTH, MAX_VARIABLES};

use keys::Keys;
use shard::Shards;

/// Most bytes of a JSON document.
const MAX_DOCUMENT: u64 = 16 << 20;

/// An array and the folder of its files.
struct Node {
    /// The folder of the array, `""` for the root.
    folder: String,
    variable: Variable,
    /// The storage of the chunks, or the reason why they cannot be read.
    stored: Result<Stored, String>,
}

/// The storage of an array's chunks.
struct Stored {
    array: Array,
    keys: Keys,
    /// The shards, if a file has several chunks and an index.
    shards: Option<Shards>,
}

/// Opens an array, or a group with all arrays below it.
pub fn open(tree: Arc<dyn Tree>) -> Result<Dataset, FormatError> {
    let files = tree.list("")?;
    let has = |name: &str| files.iter().any(|(key, _)| key == name);
    let (format, document) = if has("zarr.json") {
        (Format::Zarr3, "zarr.json")
    } else if has(".zarray") || has(".zgroup") {
        (Format::Zarr2, ".zarray")
    } else {
        let why = "it is a folder without zarr.json, .zarray or .zgroup".to_owned();
        return Err(FormatError::Unrecognised { why });
    };
    let (mut nodes, mut groups, mut attributes) = (Vec::new(), Vec::new(), Vec::new());
    for (key, _) in &files {
        if let Some(folder) = key.strip_suffix("/.zgroup") {
            groups.push(folder.to_owned());
        }
        let folder = match key.rsplit_once('/') {
            Some((folder, name)) if name == document => folder,
            None if key == document => "",
            _ => continue,
        };
        FormatError::limit("levels of groups", folder.split('/').count() as u64, MAX_GROUP_DEPTH as u64)?;
        let json = json(&*tree, key)?;
        match format {
            Format::Zarr3 if json.get("node_type").and_then(Value::as_str) == Some("group") => {
                if folder.is_empty() {
                    attributes = attributes::from_json(json.get("attributes"));
                } else {
                    groups.push(folder.to_owned());
                }
            }
            Format::Zarr3 => nodes.push(v3::node(folder, &json)?),
            _ => nodes.push(v2::node(folder, &json, &v2::attributes(&*tree, folder)?)?),
        }
        FormatError::limit("variables", nodes.len() as u64, MAX_VARIABLES as u64)?;
    }
    if format == Format::Zarr2 && !has(".zarray") {
        attributes = attributes::from_json(Some(&Value::Object(v2::attributes(&*tree, "")?)));
    }
    Ok(Dataset { groups, attributes, ..dataset(tree, format, nodes) })
}

fn dataset(tree: Arc<dyn Tree>, format: Format, nodes: Vec<Node>) -> Dataset {
    // Zarr has names of dimensions but no dimensions. In a group, equal names with equal lengths count as one
    // dimension.
    let mut dimensions: Vec<Dimension> = Vec::new();
    for node in &nodes {
        for (name, length) in node.variable.dimensions.iter().zip(&node.variable.shape) {
            let dimension = Dimension { name: name.clone(), length: *length, unlimited: false };
            if !name.is_empty() && !dimensions.contains(&dimension) {
                dimensions.push(dimension);
            }
        }
    }
    let variables = nodes.iter().map(|node| node.variable.clone()).collect();
    let tables = Box::new(ZarrTables { tree, nodes });
    Dataset { format, dimensions, groups: Vec::new(), attributes: Vec::new(), variables, tables }
}

/// The name of an array: its folder, or `data` for the root.
fn path_of(folder: &str) -> String {
    if folder.is_empty() { "data".to_owned() } else { folder.to_owned() }
}

/// Reads a JSON object.
fn json(tree: &dyn Tree, key: &str) -> Result<Map<String, Value>, FormatError> {
    let source = tree.open(key)?.ok_or_else(|| bad(format!("{key} is not there")))?;
    let bytes = source::read(&*source, 0, source.len(), MAX_DOCUMENT)?;
    match document::parse(&bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(bad(format!("{key} is not a JSON object"))),
        Err(error) => Err(bad(format!("{key} is not JSON: {error}"))),
    }
}

fn bad(why: impl Into<String>) -> FormatError {
    FormatError::damaged("Zarr", why)
}

/// Reads lengths of axes.
fn lengths(json: Option<&Value>, what: &str) -> Result<Vec<u64>, FormatError> {
    let all = json.and_then(Value::as_array).and_then(|all| all.iter().map(Value::as_u64).collect());
    all.ok_or_else(|| bad(format!("{what} is not a list of lengths")))
}

/// A tree and its arrays, in the order of the variables.
struct ZarrTables {
    tree: Arc<dyn Tree>,
    nodes: Vec<Node>,
}

impl Tables for ZarrTables {
    fn table(&self, index: usize, variable: &Variable) -> Result<ChunkTable, FormatError> {
        let node = self.nodes.get(index).ok_or_else(|| FormatError::table("there is no such variable"))?;
        let stored =
            node.stored.as_ref().map_err(|why| FormatError::unsupported(&variable.path, why.clone()))?;
        let array = stored.array.clone();
        array.check()?;
        let (mut files, mut locations, mut listed) = (Vec::new(), Vec::new(), 0);
        let grid = stored.grid();
        for (key, length) in self.tree.list(&node.folder)? {
            let below = if node.folder.is_empty() {
                Some(key.as_str())
            } else {
                key.strip_prefix(&node.folder).and_then(|rest| rest.strip_prefix('/'))
            };
            let Some(coordinates) = below.and_then(|below| stored.keys.coordinates(below, array.shape.len()))
            else {
                continue;
            };
            let file = files.len() as u32;
            let before = locations.len();
            listed += u64::from(coordinates.iter().zip(&grid).all(|(at, count)| at < count));
            match &stored.shards {
                None => {
                    // A file outside the grid was left when the array was shortened.
                    if let Some(chunk) = array.number_at(&coordinates) {
                        locations.push(ChunkLocation { chunk, file, offset: 0, bytes: length, mask: 0 });
                    }
                }
                Some(shards) => {
                    let source = self.open(&key)?;
                    shards.locations(&*source, &array, &coordinates, file, &mut locations)?;
                }
            }
            FormatError::limit("chunks", locations.len() as u64, MAX_CHUNKS as u64)?;
            if locations.len() > before {
                FormatError::limit("files", files.len() as u64 + 1, MAX_FILES as u64)?;
                files.push(FileRef { name: key, length });
            }
        }
        if !self.tree.lists_everything() {
            check_complete(&variable.path, listed, &grid)?;
        }
        locations.sort_unstable_by_key(|location| location.chunk);
        Ok(ChunkTable { array, files, locations: ChunkLocations::Listed(locations) })
    }

    fn source(&self, table: &ChunkTable, file: u32) -> Result<Arc<dyn Source>, FormatError> {
        let file = table
            .files
            .get(file as usize)
            .ok_or_else(|| FormatError::table("a chunk is in none of its files"))?;
        self.open(&file.name)
    }
}

/// Checks that a list has the file of every chunk or shard, because the list may leave out files that exist.
fn check_complete(path: &str, listed: u64, grid: &[u64]) -> Result<(), FormatError> {
    let wanted = grid.iter().copied().fold(1u64, u64::saturating_mul);
    if listed >= wanted {
        return Ok(());
    }
    let why = format!(
        "the server lists {listed} of its {wanted} files, and its list may leave out some that exist; \
         get the folder with another tool, or use a server with the protocol of S3"
    );
    Err(FormatError::unsupported(path, why))
}

impl Stored {
    /// Files along each axis: chunks, or shards.
    fn grid(&self) -> Vec<u64> {
        let inner = self.shards.as_ref().map(|shards| shards.chunks.as_slice()).unwrap_or_default();
        let axes = self.array.shape.iter().zip(&self.array.chunk).enumerate();
        let along = axes.map(|(axis, (length, chunk))| {
            let whole = chunk.saturating_mul(inner.get(axis).copied().unwrap_or(1)).max(1);
            length.div_ceil(whole)
        });
        along.collect()
    }
}

impl ZarrTables {
    fn open(&self, key: &str) -> Result<Arc<dyn Source>, FormatError> {
        self.tree.open(key)?.ok_or_else(|| {
            FormatError::io(key, std::io::Error::new(std::io::ErrorKind::NotFound, "it was removed"))
        })
    }
}
