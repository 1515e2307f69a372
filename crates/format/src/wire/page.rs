//! A page of a table: the places of the chunks of a range.

use std::collections::BTreeSet;
use std::ops::Range;

use super::head::{Head, file, put_file};
use super::number::{Reader, bad, put, put_change};
use super::sum::{with_sum, without_sum};
use super::{MAX_PAGE_BYTES, PAGE_BYTES};
use crate::FormatError;
use crate::table::{ChunkTable, FileRef, Found, Place, Places};

const MAGIC: &[u8; 4] = b"grtp";
const VERSION: u8 = 2;

/// Most bytes of a place: five numbers.
const PLACE_BYTES: usize = 50;

/// The places of the chunks of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The chunks that it says all of.
    pub chunks: Range<u64>,
    /// The files that they lie in, by their number, where the table has several.
    pub(super) files: Vec<(u32, FileRef)>,
    pub(super) places: Vec<Place>,
}

/// The page that begins with chunk `from`, as bytes: at most [`MAX_PAGE_BYTES`]. The last reaches to the end of the
/// chunks.
///
/// # Errors
/// [`FormatError::Table`] for a table that lists no chunks, and a chunk past the last.
pub fn page(table: &ChunkTable, from: u64) -> Result<Vec<u8>, FormatError> {
    let Places::Listed(all) = &table.places else { return Err(bad("it has no pages")) };
    let chunks = table.array.chunks();
    if from >= chunks {
        return Err(bad("it has no page there"));
    }
    let first = all.partition_point(|place| place.chunk < from);
    let rest = all.get(first..).unwrap_or_default();
    let several = table.files.len() > 1;
    let (mut places, mut names, mut named) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut last = Last::at(from);
    let mut count = 0;
    for place in rest {
        if places.len() + names.len() + PLACE_BYTES > PAGE_BYTES {
            break;
        }
        put(&mut places, place.chunk.wrapping_sub(last.next));
        if several {
            put_change(&mut places, u64::from(last.file), u64::from(place.file));
            if named.insert(place.file) {
                let file =
                    table.files.get(place.file as usize).ok_or_else(|| bad("a chunk lies in no file"))?;
                put(&mut names, u64::from(place.file));
                put_file(&mut names, file);
            }
        }
        put_change(&mut places, last.end_in(place.file), place.offset);
        put_change(&mut places, last.bytes, place.bytes);
        put(&mut places, u64::from(place.mask));
        last.step(place);
        count += 1;
    }
    let end = rest.get(count).map_or(chunks, |place| place.chunk);
    let mut out = MAGIC.to_vec();
    out.push(VERSION);
    put(&mut out, from);
    put(&mut out, end);
    if several {
        put(&mut out, named.len() as u64);
        out.extend_from_slice(&names);
    }
    put(&mut out, count as u64);
    out.extend_from_slice(&places);
    Ok(with_sum(out))
}

impl Page {
    /// Reads a page of the table with this head.
    ///
    /// # Errors
    /// [`FormatError::Table`] and [`FormatError::Limit`] for whatever [`page`] does not write.
    pub fn decode(head: &Head, bytes: &[u8]) -> Result<Page, FormatError> {
        FormatError::limit("bytes of a table's page", bytes.len() as u64, MAX_PAGE_BYTES as u64)?;
        let mut from = Reader::new(without_sum(bytes)?);
        if from.exactly(MAGIC.len())? != MAGIC || from.u8()? != VERSION {
            return Err(bad("a page is none, or of another version of Gristmill"));
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
        let mut places = Vec::with_capacity(count);
        let mut last = Last::at(chunks.start);
        for _ in 0..count {
            let chunk = last.next.checked_add(from.number()?).filter(|chunk| *chunk < chunks.end);
            let chunk = chunk.ok_or_else(|| bad("a page has a chunk of another"))?;
            let number = if several { from.change(u64::from(last.file))? } else { 0 };
            let number = u32::try_from(number).ok().filter(|number| *number < head.files);
            let number = number.ok_or_else(|| bad("a chunk lies in no file"))?;
            let offset = from.change(last.end_in(number))?;
            let bytes = from.change(last.bytes)?;
            let place = Place { chunk, file: number, offset, bytes, mask: from.u32()? };
            if place.offset.checked_add(place.bytes).is_none() {
                return Err(bad("a chunk ends past the longest file"));
            }
            last.step(&place);
            places.push(place);
        }
        from.end()?;
        Ok(Page { chunks, files, places })
    }

    /// Where a chunk lies; `None` for one that this page says nothing of.
    pub fn find(&self, number: u64) -> Option<Found<'_>> {
        if !self.chunks.contains(&number) {
            return None;
        }
        Some(match self.places.binary_search_by_key(&number, |place| place.chunk) {
            Ok(index) => Found::At(*self.places.get(index)?),
            Err(_) => Found::Missing,
        })
    }

    /// The files that its chunks lie in, by their number; empty where the table has one.
    pub fn files(&self) -> &[(u32, FileRef)] {
        &self.files
    }
}

/// What the next place is told against.
struct Last {
    /// The chunk behind it.
    next: u64,
    file: u32,
    end: u64,
    bytes: u64,
}

impl Last {
    const fn at(chunk: u64) -> Last {
        Last { next: chunk, file: 0, end: 0, bytes: 0 }
    }

    /// Where a chunk is expected: behind this one, or at the beginning of another file.
    const fn end_in(&self, file: u32) -> u64 {
        if file == self.file { self.end } else { 0 }
    }

    const fn step(&mut self, place: &Place) {
        *self = Last {
            next: place.chunk.saturating_add(1),
            file: place.file,
            end: place.offset.saturating_add(place.bytes),
            bytes: place.bytes,
        };
    }
}
