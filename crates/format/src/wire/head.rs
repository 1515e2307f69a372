//! The head of a table.

use super::MAX_HEAD_BYTES;
use super::array::{array, put_array};
use super::number::{Reader, bad, put, put_bytes};
use super::page::Page;
use super::sum::{with_sum, without_sum};
use crate::array::Array;
use crate::rows::Rows;
use crate::table::{ChunkLocations, ChunkTable, FileRef, MAX_CHUNKS};
use crate::{FormatError, MAX_FILES};

const MAGIC: &[u8; 4] = b"grtb";
const VERSION: u8 = 2;

/// A table without the locations that its pages list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The array of the table.
    pub array: Array,
    /// Number of files with chunks.
    pub(super) files: u32,
    /// The file, if there is a single one.
    pub(super) only: Option<FileRef>,
    locations: HeadLocations,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HeadLocations {
    /// The pages list this number of locations.
    Listed(u64),
    Rows(Rows),
    Inline(Vec<u8>),
}

/// Encodes the head of a table. It has at most [`MAX_HEAD_BYTES`] if [`ChunkTable::check`] accepts the table.
pub fn head(table: &ChunkTable) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(MAGIC);
    out.push(VERSION);
    put_array(&mut out, &table.array);
    put(&mut out, table.files.len() as u64);
    if let [only] = table.files.as_slice() {
        put_file(&mut out, only);
    }
    match &table.locations {
        ChunkLocations::Listed(locations) => {
            out.push(0);
            put(&mut out, locations.len() as u64);
        }
        ChunkLocations::Rows(rows) => {
            out.push(1);
            put(&mut out, rows.begin);
            put(&mut out, rows.stride);
        }
        ChunkLocations::Inline(bytes) => {
            out.push(2);
            put_bytes(&mut out, bytes);
        }
    }
    with_sum(out)
}

pub fn put_file(out: &mut Vec<u8>, file: &FileRef) {
    put_bytes(out, file.name.as_bytes());
    put(out, file.length);
}

pub fn file(from: &mut Reader<'_>) -> Result<FileRef, FormatError> {
    Ok(FileRef { name: from.text()?, length: from.number()? })
}

impl Head {
    /// Decodes a head.
    ///
    /// # Errors
    /// Returns [`FormatError::Table`] or [`FormatError::Limit`] for bytes that [`head`] does not write.
    pub fn decode(bytes: &[u8]) -> Result<Head, FormatError> {
        FormatError::limit("bytes of a table's head", bytes.len() as u64, MAX_HEAD_BYTES as u64)?;
        let mut from = Reader::new(without_sum(bytes)?);
        if from.exactly(MAGIC.len())? != MAGIC {
            return Err(bad("it is not a chunk table"));
        }
        if from.u8()? != VERSION {
            return Err(bad("it is of another version of Gristmill"));
        }
        let array = array(&mut from)?;
        let files = from.u32()?;
        FormatError::limit("files", u64::from(files), MAX_FILES as u64)?;
        let only = if files == 1 { Some(file(&mut from)?) } else { None };
        let locations = match from.u8()? {
            0 => {
                let count = from.number()?;
                FormatError::limit("chunks", count, MAX_CHUNKS as u64)?;
                HeadLocations::Listed(count)
            }
            1 => HeadLocations::Rows(Rows { begin: from.number()?, stride: from.number()? }),
            2 => HeadLocations::Inline(from.bytes()?.to_vec()),
            _ => return Err(bad("its locations are of an unknown kind")),
        };
        from.end()?;
        Ok(Head { array, files, only, locations })
    }

    /// Number of the chunk after the last one of the pages; 0 if there are no pages.
    pub fn pages_end(&self) -> u64 {
        match self.locations {
            HeadLocations::Listed(_) => self.array.chunks(),
            HeadLocations::Rows(_) | HeadLocations::Inline(_) => 0,
        }
    }

    /// Makes the table from all its pages, in order. Check it against the files with [`ChunkTable::check`].
    ///
    /// # Errors
    /// Returns [`FormatError::Table`] if pages are missing or do not belong together.
    pub fn table(self, pages: Vec<Page>) -> Result<ChunkTable, FormatError> {
        let mut next = 0;
        let mut locations = Vec::new();
        let mut files: Vec<Option<FileRef>> = vec![None; self.files as usize];
        if let (Some(slot), Some(only)) = (files.first_mut(), &self.only) {
            *slot = Some(only.clone());
        }
        let end = self.pages_end();
        for page in pages {
            if page.chunks.start != next {
                return Err(bad("its pages are not in order, or one is missing"));
            }
            next = page.chunks.end;
            FormatError::limit("chunks", (locations.len() + page.locations.len()) as u64, MAX_CHUNKS as u64)?;
            locations.extend(page.locations);
            for (number, file) in page.files {
                let slot =
                    files.get_mut(number as usize).ok_or_else(|| bad("a page names a file too many"))?;
                if slot.as_ref().is_some_and(|known| *known != file) {
                    return Err(bad("two pages have different names for a file"));
                }
                *slot = Some(file);
            }
        }
        if next != end {
            return Err(bad("its pages end before its chunks"));
        }
        let files = files.into_iter().collect::<Option<Vec<_>>>();
        let files = files.ok_or_else(|| bad("no page names one of its files"))?;
        let locations = match self.locations {
            HeadLocations::Listed(count) if count == locations.len() as u64 => {
                ChunkLocations::Listed(locations)
            }
            HeadLocations::Listed(_) => return Err(bad("its pages have another number of chunks")),
            HeadLocations::Rows(rows) => ChunkLocations::Rows(rows),
            HeadLocations::Inline(bytes) => ChunkLocations::Inline(bytes),
        };
        Ok(ChunkTable { array: self.array, files, locations })
    }
}
