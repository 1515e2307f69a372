//! Files whose variables continue one another along a dimension, as one file: the months of a year, the years of a run.
//!
//! The table of a joined variable lists the chunks of all files. So a request over it is one request, with the guarantees that a
//! request over one file has. This is possible if the chunks of the files form one grid ([`join_tables`]).

use std::sync::Arc;

use crate::array::{Array, Edges, bytes_of};
use crate::dataset::{Dataset, Format, Tables, Variable};
use crate::rows::Rows;
use crate::source::Source;
use crate::table::{ChunkLocation, ChunkLocations, ChunkTable, FileRef, MAX_CHUNKS};
use crate::{FormatError, MAX_FILES, VIRTUAL_CHUNK_BYTES};

/// Fewest bytes of a chunk of data without an index. All joined files need the same chunks, so their chunks may have to be cut. Smaller
/// chunks cost more than a request to each file.
const MIN_CUT_CHUNK_BYTES: u64 = 1 << 10;

/// Attributes that decide what the elements of a variable mean.
const DECODING_ATTRIBUTES: [&str; 10] = [
    "_FillValue",
    "missing_value",
    "scale_factor",
    "add_offset",
    "valid_min",
    "valid_max",
    "valid_range",
    "_Unsigned",
    "units",
    "calendar",
];

/// Joins opened files along a dimension, in their order. The result has the variables that have this dimension once and that all
/// files have alike: with the same type, the same other dimensions and the same attributes for decoding. Other variables are left
/// out. In the tables of the result a file has its number as name: `0`, `1` and so on.
///
/// # Errors
/// Returns [`FormatError::Limit`] for more than [`MAX_FILES`] files, and [`FormatError::Table`] for none and for folders of Zarr. The table of a variable
/// has the errors of [`join_tables`].
pub fn join(parts: Vec<Arc<Dataset>>, dimension: &str) -> Result<Dataset, FormatError> {
    FormatError::limit("files", parts.len() as u64, MAX_FILES as u64)?;
    let Some(first) = parts.first().cloned() else { return Err(FormatError::table("it has no file")) };
    if parts.iter().any(|part| matches!(part.format, Format::Zarr2 | Format::Zarr3)) {
        return Err(FormatError::table("a folder of Zarr has several files already"));
    }
    let variables =
        first.variables.iter().filter_map(|variable| joined_variable(&parts, variable, dimension));
    let variables: Vec<Variable> = variables.collect();
    let mut dimensions = first.dimensions.clone();
    for one in dimensions.iter_mut().filter(|one| one.name == dimension) {
        let lengths =
            parts.iter().flat_map(|part| part.dimensions.iter().filter(|of_part| of_part.name == dimension));
        one.length = lengths.fold(0u64, |all, of_part| all.saturating_add(of_part.length));
    }
    Ok(Dataset {
        format: first.format,
        dimensions,
        groups: first.groups.clone(),
        attributes: first.attributes.clone(),
        variables,
        tables: Box::new(JoinedTables { parts, dimension: dimension.to_owned() }),
    })
}

/// The variable of all parts, if it has the dimension once and all parts have it alike.
fn joined_variable(parts: &[Arc<Dataset>], first: &Variable, dimension: &str) -> Option<Variable> {
    let axis = axis_of(first, dimension)?;
    let mut joined = first.clone();
    for part in parts.iter().skip(1) {
        let next = part.variable(&first.path).ok()?;
        let alike = next.dimensions == first.dimensions
            && next.kind == first.kind
            && next.shape.len() == first.shape.len();
        let decoded_alike =
            DECODING_ATTRIBUTES.iter().all(|name| first.attribute(name) == next.attribute(name));
        if !alike || !decoded_alike {
            return None;
        }
        for (at, (all, length)) in joined.shape.iter_mut().zip(&next.shape).enumerate() {
            if at == axis {
                *all = all.checked_add(*length)?;
            } else if all != length {
                return None;
            }
        }
    }
    Some(joined)
}

/// The only axis of a variable with this dimension.
fn axis_of(variable: &Variable, dimension: &str) -> Option<usize> {
    let mut axes = (0..variable.dimensions.len()).filter(|at| variable.dimensions[*at] == dimension);
    axes.next().filter(|_| axes.next().is_none())
}

/// The tables of joined files.
struct JoinedTables {
    parts: Vec<Arc<Dataset>>,
    dimension: String,
}

impl Tables for JoinedTables {
    fn table(&self, _: usize, variable: &Variable) -> Result<ChunkTable, FormatError> {
        let axis = axis_of(variable, &self.dimension).ok_or_else(|| {
            FormatError::unsupported(&variable.path, "it does not have the joined dimension once")
        })?;
        let tables =
            self.parts.iter().map(|part| part.table(&variable.path)).collect::<Result<Vec<_>, _>>()?;
        join_tables(&tables, axis).map_err(|error| match error {
            FormatError::Table { why } => FormatError::unsupported(&variable.path, why),
            other => other,
        })
    }

    fn source(&self, table: &ChunkTable, file: u32) -> Result<Arc<dyn Source>, FormatError> {
        let name = table.files.get(file as usize).map_or("", |file| &file.name);
        let part = name.parse::<usize>().ok().and_then(|number| self.parts.get(number));
        part.ok_or_else(|| FormatError::table(format!("there is no file {name:?}")))?
            .tables
            .source(table, file)
    }
}

/// Joins tables along an axis, in their order. A file has the number of its table as name.
///
/// The chunks of an index must have one shape, and each table but the last must end with a whole chunk. Data without an index is
/// cut into chunks that fit all tables.
///
/// # Errors
/// Returns [`FormatError::Table`] if the arrays differ in more than the length of the axis, if their chunks form no grid, or if a
/// table has several files or its bytes inside, and [`FormatError::Limit`] if there are more than [`MAX_CHUNKS`] chunks.
pub fn join_tables(tables: &[ChunkTable], axis: usize) -> Result<ChunkTable, FormatError> {
    let refuse = |why: &str| Err(FormatError::table(why));
    let (Some(first), Some((last, before))) = (tables.first(), tables.split_last()) else {
        return refuse("it has no file");
    };
    tables.iter().try_for_each(|table| table.array.check())?;
    if axis >= first.array.shape.len() {
        return refuse("it has no such axis");
    }
    if tables.iter().any(|table| !is_alike(&first.array, &table.array, axis)) {
        return refuse("its files have arrays of different types, shapes or filters");
    }
    if before.iter().any(|table| table.array.stored[axis] != table.array.shape[axis]) {
        return refuse("a file stores less than its length along the axis");
    }
    let chunk = common_chunk(tables, axis)?;
    let length_before = before.iter().fold(0u64, |all, table| all.saturating_add(table.array.shape[axis]));
    let mut array = Array { chunk: chunk.clone(), ..first.array.clone() };
    array.shape[axis] = length_before.saturating_add(last.array.shape[axis]);
    array.stored[axis] = length_before.saturating_add(last.array.stored[axis]);
    array.check()?;
    let mut all = Joined { array, axis, begin: 0, files: Vec::new(), locations: Vec::new() };
    for (number, table) in tables.iter().enumerate() {
        let part = Array { chunk: chunk.clone(), ..table.array.clone() };
        all.add(number, table, &part)?;
    }
    all.locations.sort_unstable_by_key(|location| location.chunk);
    Ok(ChunkTable { array: all.array, files: all.files, locations: ChunkLocations::Listed(all.locations) })
}

/// A table while it is made.
struct Joined {
    array: Array,
    axis: usize,
    /// Length of the parts so far along the axis.
    begin: u64,
    files: Vec<FileRef>,
    locations: Vec<ChunkLocation>,
}

impl Joined {
    /// Adds the chunks of a table, whose array is `part` with the common chunks.
    fn add(&mut self, number: usize, table: &ChunkTable, part: &Array) -> Result<(), FormatError> {
        let stored = match &table.locations {
            ChunkLocations::Rows(_) => part.chunks(),
            ChunkLocations::Listed(listed) => listed.len() as u64,
            ChunkLocations::Inline(_) => {
                return Err(FormatError::table("a file has the elements inside its metadata"));
            }
        };
        FormatError::limit(
            "chunks",
            (self.locations.len() as u64).saturating_add(stored),
            MAX_CHUNKS as u64,
        )?;
        if stored > 0 {
            let [file] = table.files.as_slice() else {
                return Err(FormatError::table("its chunks lie in several files already"));
            };
            self.files.push(FileRef { name: number.to_string(), length: file.length });
        }
        match &table.locations {
            ChunkLocations::Rows(rows) => {
                for chunk in 0..stored {
                    let found = rows.location(part, chunk);
                    let (offset, bytes) =
                        found.ok_or_else(|| FormatError::table("a chunk is past the end of 64 bits"))?;
                    self.place(part, ChunkLocation { chunk, file: 0, offset, bytes, mask: 0 })?;
                }
            }
            ChunkLocations::Listed(listed) => listed.iter().try_for_each(|one| self.place(part, *one))?,
            ChunkLocations::Inline(_) => {}
        }
        self.begin = self.begin.saturating_add(part.shape[self.axis]);
        Ok(())
    }

    /// Adds a chunk of the last file.
    fn place(&mut self, part: &Array, of_part: ChunkLocation) -> Result<(), FormatError> {
        let past = || FormatError::table("a chunk is past the last");
        let mut at = part.grid_coordinates(of_part.chunk).ok_or_else(past)?;
        at[self.axis] += self.begin / part.chunk[self.axis];
        let chunk = self.array.number_at(&at).ok_or_else(past)?;
        let file = u32::try_from(self.files.len().saturating_sub(1)).map_err(|_| past())?;
        self.locations.push(ChunkLocation { chunk, file, ..of_part });
        Ok(())
    }
}

/// Whether two arrays differ in nothing but the length of the axis and the shape of their chunks.
fn is_alike(first: &Array, other: &Array, axis: usize) -> bool {
    let rest = |lengths: &[u64]| {
        let others = lengths.iter().enumerate().filter(|(at, _)| *at != axis);
        others.map(|(_, length)| *length).collect::<Vec<u64>>()
    };
    first.shape.len() == other.shape.len()
        && (first.dtype, first.order, first.edges) == (other.dtype, other.order, other.edges)
        && first.filters == other.filters
        && first.fill == other.fill
        && rest(&first.shape) == rest(&other.shape)
        && rest(&first.stored) == rest(&other.stored)
}

/// A shape of chunks for all tables. Each table but the last ends with a whole chunk.
fn common_chunk(tables: &[ChunkTable], axis: usize) -> Result<Vec<u64>, FormatError> {
    let first = &tables[0].array;
    let before = &tables[..tables.len() - 1];
    let fits = |along: u64| before.iter().all(|table| table.array.shape[axis].is_multiple_of(along));
    if tables.iter().all(|table| table.array.chunk == first.chunk) && fits(first.chunk[axis]) {
        return Ok(first.chunk.clone());
    }
    let without_index = |table: &ChunkTable| match &table.locations {
        ChunkLocations::Rows(rows) => (table.array.edges == Edges::Clipped).then_some(*rows),
        _ => None,
    };
    let rows: Option<Vec<Rows>> = tables.iter().map(without_index).collect();
    let Some(rows) = rows.filter(|_| first.filters.is_empty()) else {
        return Err(FormatError::table("the chunks of its files form no grid together"));
    };
    // The elementwise minimum of shapes that are one run of bytes is one, too.
    let least = |at: usize| tables.iter().map(|table| table.array.chunk[at]).min().unwrap_or(1);
    let mut chunk: Vec<u64> = (0..first.chunk.len()).map(least).collect();
    chunk[..axis].fill(1);
    let whole_inner = chunk[axis + 1..] == first.shape[axis + 1..];
    let has_gap = || tables.iter().zip(&rows).any(|(table, rows)| rows.has_gap(&table.array));
    chunk[axis] = if !whole_inner || (axis == 0 && has_gap()) {
        1
    } else {
        let row = bytes_of(&first.shape[axis + 1..], first.dtype).unwrap_or(u64::MAX);
        let most = tables.iter().map(|table| table.array.chunk[axis]).max().unwrap_or(1);
        let most = most.min(VIRTUAL_CHUNK_BYTES / row.max(1)).max(1);
        let together = before.iter().fold(0, |all, table| gcd(all, table.array.shape[axis]));
        (1..=most).rev().find(|along| together.is_multiple_of(*along)).unwrap_or(1)
    };
    let bytes = |chunk: &[u64]| bytes_of(chunk, first.dtype).unwrap_or(u64::MAX);
    if bytes(&chunk) < MIN_CUT_CHUNK_BYTES.min(bytes(&first.chunk)) {
        return Err(FormatError::table("its files have too little in common for chunks of a good size"));
    }
    Ok(chunk)
}

/// The greatest common divisor. That of 0 and a number is the number.
fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests;
