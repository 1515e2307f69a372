//! A page of a table: the locations of the chunks of a range.

use std::collections::BTreeSet;
use std::ops::Range;

use super::head::{Head, file, put_file};
use super::number::{Reader, bad, put, put_change};
use super::sum::{with_sum, without_sum};
use super::{MAX_PAGE_BYTES, PAGE_BYTES};
use crate::FormatError;
use crate::table::{ChunkLocation, ChunkLocations, ChunkTable, FileRef, FoundChunk};

const MAGIC: &[u8; 4] = b"grtp";
const VERSION: u8 = 2;

/// Most bytes of an encoded location: five numbers.
const LOCATION_BYTES: usize = 50;

/// The locations of the chunks of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The chunks that the page covers.
    pub chunks: Range<u64>,
    /// The files of the chunks with their numbers, if the table has several files.
    pub(super) files: Vec<(u32, FileRef)>,
    pub(super) locations: Vec<ChunkLocation>,
}

/// Encodes the page that begins with chunk `from`, of at most [`MAX_PAGE_BYTES`]. The last page reaches the end of the
/// chunks.
///
/// # Errors
/// Returns [`FormatError::Table`] if the table lists no chunks, or if `from` is past the last chunk.
pub fn page(table: &ChunkTable, from: u64) -> Result<Vec<u8>, FormatError> {
    let ChunkLocations::Listed(all) = &table.locations else { return Err(bad("it has no pages")) };
    let chunks = table.array.chunks();
    if from >= chunks {
        return Err(bad("it has no page there"));
    }
    let first = all.partition_point(|location| location.chunk < from);
    let rest = all.get(first..).unwrap_or_default();
    let several = table.files.len() > 1;
    let (mut locations, mut names, mut named) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut previous = PreviousLocation::at(from);
    let mut count = 0;
    for location in rest {
        if locations.len() + names.len() + LOCATION_BYTES > PAGE_BYTES {
            break;
        }
        put(&mut locations, location.chunk.wrapping_sub(previous.next));
        if several {
            put_change(&mut locations, u64::from(previous.file), u64::from(location.file));
            if named.insert(location.file) {
                let file = table
                    .files
                    .get(location.file as usize)
                    .ok_or_else(|| bad("a chunk is in none of its files"))?;
                put(&mut names, u64::from(location.file));
                put_file(&mut names, file);
            }
        }
        put_change(&mut locations, previous.end_in(location.file), location.offset);
        put_change(&mut locations, previous.bytes, location.bytes);
        put(&mut locations, u64::from(location.mask));
        previous.step(location);
        count += 1;
    }
    let end = rest.get(count).map_or(chunks, |location| location.chunk);
    let mut out = MAGIC.to_vec();
    out.push(VERSION);
    put(&mut out, from);
    put(&mut out, end);
    if several {
        put(&mut out, named.len() as u64);
        out.extend_from_slice(&names);
    }
    put(&mut out, count as u64);
    out.extend_from_slice(&locations);
    Ok(with_sum(out))
}

impl Page {
    /// Decodes a page of the table with this head.
    ///
    /// # Errors
    /// Returns [`FormatError::Table`] or [`FormatError::Limit`] for bytes that [`page`] does not write.
    pub fn decode(head: &Head, bytes: &[u8]) -> Result<Page, FormatError> {
        FormatError::limit("bytes of a table's page", bytes.len() as u64, MAX_PAGE_BYTES as u64)?;
        let mut from = Reader::new(without_sum(bytes)?);
        if from.exactly(MAGIC.len())? != MAGIC || from.u8()? != VERSION {
            return Err(bad("bytes are not a page, or one of another version of Gristmill"));
        }
        let chunks = from.number()?..from.number()?;
        if chunks.is_empty() || chunks.end > head.pages_end() {
            return Err(bad("a page is about no chunks, or some past the last"));
        }
        let several = head.files > 1;
        let (mut files, mut named) = (Vec::new(), BTreeSet::new());
        for _ in 0..if several { from.count(3)? } else { 0 } {
            let number = from.u32()?;
            if number >= head.files || !named.insert(number) {
                return Err(bad("a page names a file twice, or one too many"));
            }
            files.push((number, file(&mut from)?));
        }
        let count = from.count(4)?;
        let mut locations = Vec::with_capacity(count);
        let mut previous = PreviousLocation::at(chunks.start);
        for _ in 0..count {
            let chunk = previous.next.checked_add(from.number()?).filter(|chunk| *chunk < chunks.end);
            let chunk = chunk.ok_or_else(|| bad("a page has a chunk of another"))?;
            let number = if several { from.change(u64::from(previous.file))? } else { 0 };
            let number = u32::try_from(number).ok().filter(|number| *number < head.files);
            let number = number.ok_or_else(|| bad("a chunk is in none of its files"))?;
            let offset = from.change(previous.end_in(number))?;
            let bytes = from.change(previous.bytes)?;
            let location = ChunkLocation { chunk, file: number, offset, bytes, mask: from.u32()? };
            if location.offset.checked_add(location.bytes).is_none() {
                return Err(bad("a chunk ends past the longest file"));
            }
            previous.step(&location);
            locations.push(location);
        }
        from.end()?;
        Ok(Page { chunks, files, locations })
    }

    /// Returns the storage of a chunk, or `None` if the page does not cover it.
    pub fn find(&self, number: u64) -> Option<FoundChunk<'_>> {
        if !self.chunks.contains(&number) {
            return None;
        }
        Some(match self.locations.binary_search_by_key(&number, |location| location.chunk) {
            Ok(index) => FoundChunk::At(*self.locations.get(index)?),
            Err(_) => FoundChunk::Missing,
        })
    }

    /// Files of the chunks with their numbers; empty if the table has a single file.
    pub fn files(&self) -> &[(u32, FileRef)] {
        &self.files
    }
}

/// The previous location, against which the next one is encoded.
struct PreviousLocation {
    /// Number of the chunk after it.
    next: u64,
    file: u32,
    end: u64,
    bytes: u64,
}

impl PreviousLocation {
    const fn at(chunk: u64) -> PreviousLocation {
        PreviousLocation { next: chunk, file: 0, end: 0, bytes: 0 }
    }

    /// Expected offset of the next chunk: after this one, or at the beginning of another file.
    const fn end_in(&self, file: u32) -> u64 {
        if file == self.file { self.end } else { 0 }
    }

    const fn step(&mut self, location: &ChunkLocation) {
        *self = PreviousLocation {
            next: location.chunk.saturating_add(1),
            file: location.file,
            end: location.offset.saturating_add(location.bytes),
            bytes: location.bytes,
        };
    }
}
