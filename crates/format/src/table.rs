//! The chunk table of a variable: its array and the location of each chunk.

use crate::array::{Array, bytes_of};
use crate::rows::Rows;
use crate::source::{self, Source};
use crate::{Decoder, FormatError, MAX_FILES, MAX_INLINE_BYTES, MAX_NAME_BYTES, MAX_STORED_BYTES};

/// Most chunks that a table lists one by one.
pub const MAX_CHUNKS: usize = 1 << 24;

/// Location of a stored chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLocation {
    /// Number of the chunk, in C order in the grid of all chunks.
    pub chunk: u64,
    /// Number of the file in the table.
    pub file: u32,
    /// Offset of the chunk in the file, in bytes.
    pub offset: u64,
    /// Bytes of the stored chunk.
    pub bytes: u64,
    /// Filters that were not applied to the chunk: bit `i` for the array's filter `i`.
    pub mask: u32,
}

/// A file with chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRef {
    /// Key in a tree of files; empty for a format of a single file.
    pub name: String,
    /// Length in bytes when the table was made.
    pub length: u64,
}

/// Locations of all chunks of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChunkLocations {
    /// Stored chunks in ascending order of their numbers. Chunks that are not listed are not stored.
    Listed(Vec<ChunkLocation>),
    /// All chunks are in the first file, at locations that arithmetic gives.
    Rows(Rows),
    /// The bytes of the only chunk, which is stored inside the metadata of the file.
    Inline(Vec<u8>),
}

/// The storage of one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundChunk<'a> {
    /// The chunk is not stored and reads as the fill value.
    Missing,
    /// The chunk is stored at a location.
    At(ChunkLocation),
    /// The stored bytes of the chunk.
    Inline(&'a [u8]),
}

/// Everything that is needed to read and decode the chunks of a variable. It does not depend on the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkTable {
    /// The array of the chunks.
    pub array: Array,
    /// The files that have the chunks.
    pub files: Vec<FileRef>,
    /// The locations of the chunks.
    pub locations: ChunkLocations,
}

impl ChunkTable {
    /// Returns the storage of a chunk, or `None` for a number past the last.
    pub fn find(&self, number: u64) -> Option<FoundChunk<'_>> {
        if number >= self.array.chunks() {
            return None;
        }
        Some(match &self.locations {
            ChunkLocations::Listed(locations) => {
                match locations.binary_search_by_key(&number, |location| location.chunk) {
                    Ok(index) => FoundChunk::At(*locations.get(index)?),
                    Err(_) => FoundChunk::Missing,
                }
            }
            ChunkLocations::Rows(rows) => {
                let (offset, bytes) = rows.location(&self.array, number)?;
                FoundChunk::At(ChunkLocation { chunk: number, file: 0, offset, bytes, mask: 0 })
            }
            ChunkLocations::Inline(bytes) => FoundChunk::Inline(bytes),
        })
    }

    /// Returns a table with only these chunks, whose numbers ascend, and with their files. Tables without a list of
    /// chunks are returned as they are.
    pub fn only(&self, numbers: &[u64]) -> ChunkTable {
        let ChunkLocations::Listed(locations) = &self.locations else { return self.clone() };
        let kept = locations.iter().filter(|location| numbers.binary_search(&location.chunk).is_ok());
        let mut kept: Vec<ChunkLocation> = kept.copied().collect();
        let mut files = self.files.clone();
        if files.len() > 1 {
            let mut needed: Vec<u32> = kept.iter().map(|location| location.file).collect();
            needed.sort_unstable();
            needed.dedup();
            for location in &mut kept {
                location.file = needed.partition_point(|file| *file < location.file) as u32;
            }
            files = needed.iter().filter_map(|file| self.files.get(*file as usize).cloned()).collect();
        }
        ChunkTable { array: self.array.clone(), files, locations: ChunkLocations::Listed(kept) }
    }

    /// Number of stored chunks.
    pub fn stored_chunks(&self) -> u64 {
        match &self.locations {
            ChunkLocations::Listed(locations) => locations.len() as u64,
            ChunkLocations::Rows(_) | ChunkLocations::Inline(_) => self.array.chunks(),
        }
    }

    /// Bytes of all stored chunks.
    pub fn stored_bytes(&self) -> u64 {
        match &self.locations {
            ChunkLocations::Listed(locations) => {
                locations.iter().fold(0, |all, location| all.saturating_add(location.bytes))
            }
            ChunkLocations::Rows(_) => bytes_of(&self.array.shape, self.array.dtype).unwrap_or(u64::MAX),
            ChunkLocations::Inline(bytes) => bytes.len() as u64,
        }
    }

    /// Checks the whole table against the lengths of its files, in order. After the check every chunk is inside its
    /// file, so a receiver need not trust the sender of a table.
    ///
    /// # Errors
    /// Returns [`FormatError::PastEnd`] if a chunk reaches past the end of its file, [`FormatError::Limit`] if
    /// something is too large, and [`FormatError::Table`] if parts do not fit together.
    pub fn check(&self, lengths: &[u64]) -> Result<(), FormatError> {
        self.array.check()?;
        FormatError::limit("files", self.files.len() as u64, MAX_FILES as u64)?;
        if lengths.len() != self.files.len() {
            return Err(FormatError::table("it has another number of files"));
        }
        for file in &self.files {
            FormatError::limit("bytes of a name", file.name.len() as u64, MAX_NAME_BYTES as u64)?;
        }
        match &self.locations {
            ChunkLocations::Listed(locations) => self.check_locations(locations, lengths),
            ChunkLocations::Rows(rows) => {
                rows.check(&self.array)?;
                let Some(length) = lengths.first().copied() else {
                    return Err(FormatError::table("it has no file"));
                };
                let end = rows.end(&self.array).unwrap_or(u64::MAX);
                if end > length && self.array.chunks() > 0 {
                    return Err(self.past_end(self.array.chunks() - 1, 0, rows.begin, end, length));
                }
                Ok(())
            }
            ChunkLocations::Inline(bytes) => {
                FormatError::limit("bytes inside a table", bytes.len() as u64, MAX_INLINE_BYTES as u64)?;
                if self.array.chunks() > 1 {
                    return Err(FormatError::table(
                        "it has the bytes of one chunk, and there are more chunks",
                    ));
                }
                Ok(())
            }
        }
    }

    fn check_locations(&self, locations: &[ChunkLocation], lengths: &[u64]) -> Result<(), FormatError> {
        FormatError::limit("chunks", locations.len() as u64, MAX_CHUNKS as u64)?;
        let chunks = self.array.chunks();
        let mut next = 0;
        for location in locations {
            let length = usize::try_from(location.file).ok().and_then(|file| lengths.get(file)).copied();
            let length = length.ok_or_else(|| FormatError::table("a chunk is in none of its files"))?;
            if location.chunk < next || location.chunk >= chunks {
                return Err(FormatError::table("its chunks are not in order, or past the last"));
            }
            next = location.chunk + 1;
            FormatError::limit("bytes of a stored chunk", location.bytes, MAX_STORED_BYTES)?;
            let end = location.offset.saturating_add(location.bytes);
            if end > length {
                return Err(self.past_end(location.chunk, location.file, location.offset, end, length));
            }
        }
        Ok(())
    }

    fn past_end(&self, chunk: u64, file: u32, offset: u64, end: u64, length: u64) -> FormatError {
        let name = usize::try_from(file).ok().and_then(|file| self.files.get(file));
        let file = match name.map_or("", |file| &file.name) {
            "" => "the file".to_owned(),
            name => name.to_owned(),
        };
        FormatError::PastEnd { chunk, offset, end, file, length }
    }

    /// Reads and decodes one chunk into `out`, as [`Decoder::decode`] does. `sources` opens the table's files by
    /// number.
    ///
    /// # Errors
    /// Returns [`FormatError::Io`] if a file cannot be read, [`FormatError::Table`] if there is no such chunk, and the
    /// errors of [`Decoder::decode`].
    pub fn read(
        &self,
        number: u64,
        decoder: &mut Decoder,
        sources: &dyn Fn(u32) -> Result<std::sync::Arc<dyn Source>, FormatError>,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        match self.find(number) {
            None => Err(FormatError::table(format!("there is no chunk {number}"))),
            Some(FoundChunk::Missing) => decoder.fill(number, out),
            Some(FoundChunk::Inline(bytes)) => decoder.decode(number, bytes, 0, out),
            Some(FoundChunk::At(location)) => {
                let source = sources(location.file)?;
                let stored = source::read(&*source, location.offset, location.bytes, MAX_STORED_BYTES)?;
                decoder.decode(number, &stored, location.mask, out)
            }
        }
    }
}
