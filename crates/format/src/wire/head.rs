//! The head of a table.

use super::MAX_HEAD_BYTES;
use super::array::{array, put_array};
use super::number::{Reader, bad, put, put_bytes};
use super::page::Page;
use super::sum::{with_sum, without_sum};
use crate::array::Array;
use crate::rows::Rows;
use crate::table::{ChunkTable, FileRef, MAX_CHUNKS, Places};
use crate::{FormatError, MAX_FILES};

const MAGIC: &[u8; 4] = b"grtb";
const VERSION: u8 = 2;

/// All of a table but for the places that it lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The array.
    pub array: Array,
    /// How many files chunks lie in.
    pub(super) files: u32,
    /// The file, where there is one.
    pub(super) only: Option<FileRef>,
    places: HeadPlaces,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HeadPlaces {
    /// So many are in the pages.
    Listed(u64),
    Rows(Rows),
    Inline(Vec<u8>),
}

/// The head of a table as bytes, at most [`MAX_HEAD_BYTES`] of a table that [`ChunkTable::check`] accepts.
pub fn head(table: &ChunkTable) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(MAGIC);
    out.push(VERSION);
    put_array(&mut out, &table.array);
    put(&mut out, table.files.len() as u64);
    if let [only] = table.files.as_slice() {
        put_file(&mut out, only);
    }
    match &table.places {
        Places::Listed(places) => {
            out.push(0);
            put(&mut out, places.len() as u64);
        }
        Places::Rows(rows) => {
            out.push(1);
            put(&mut out, rows.begin);
            put(&mut out, rows.stride);
        }
        Places::Inline(bytes) => {
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
    /// Reads a head.
    ///
    /// # Errors
    /// [`FormatError::Table`] and [`FormatError::Limit`] for whatever [`head`] does not write.
    pub fn decode(bytes: &[u8]) -> Result<Head, FormatError> {
        FormatError::limit("bytes of a table's head", bytes.len() as u64, MAX_HEAD_BYTES as u64)?;
        let mut from = Reader::new(without_sum(bytes)?);
        if from.exactly(MAGIC.len())? != MAGIC {
            return Err(bad("it is no chunk table"));
        }
        if from.u8()? != VERSION {
            return Err(bad("it is of another version of Gristmill"));
        }
        let array = array(&mut from)?;
        let files = from.u32()?;
        FormatError::limit("files", u64::from(files), MAX_FILES as u64)?;
        let only = if files == 1 { Some(file(&mut from)?) } else { None };
        let places = match from.u8()? {
            0 => {
                let count = from.number()?;
                FormatError::limit("chunks", count, MAX_CHUNKS as u64)?;
                HeadPlaces::Listed(count)
            }
            1 => HeadPlaces::Rows(Rows { begin: from.number()?, stride: from.number()? }),
            2 => HeadPlaces::Inline(from.bytes()?.to_vec()),
            _ => return Err(bad("its places are of an unknown kind")),
        };
        from.end()?;
        Ok(Head { array, files, only, places })
    }

    /// The chunk behind the last that pages are about; 0 where there are none to ask for.
    pub fn pages_end(&self) -> u64 {
        match self.places {
            HeadPlaces::Listed(_) => self.array.chunks(),
            HeadPlaces::Rows(_) | HeadPlaces::Inline(_) => 0,
        }
    }

    /// The table, from all its pages in their order. Check it against the files ([`ChunkTable::check`]).
    ///
    /// # Errors
    /// [`FormatError::Table`] for pages that leave something out or do not belong together.
    pub fn table(self, pages: Vec<Page>) -> Result<ChunkTable, FormatError> {
        let mut next = 0;
        let mut places = Vec::new();
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
            FormatError::limit("chunks", (places.len() + page.places.len()) as u64, MAX_CHUNKS as u64)?;
            places.extend(page.places);
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
        let places = match self.places {
            HeadPlaces::Listed(count) if count == places.len() as u64 => Places::Listed(places),
            HeadPlaces::Listed(_) => return Err(bad("its pages have another number of chunks")),
            HeadPlaces::Rows(rows) => Places::Rows(rows),
            HeadPlaces::Inline(bytes) => Places::Inline(bytes),
        };
        Ok(ChunkTable { array: self.array, files, places })
    }
}
