//! The chunk table of a variable: its array, and where each chunk lies.

use crate::array::{Array, bytes_of};
use crate::rows::Rows;
use crate::source::{self, Source};
use crate::{Decoder, FormatError, MAX_FILES, MAX_INLINE_BYTES, MAX_NAME_BYTES, MAX_STORED_BYTES};

/// Most chunks that a table lists one by one.
pub const MAX_CHUNKS: usize = 1 << 24;

/// Where a stored chunk lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the chunk, in C order in the grid of all chunks.
    pub chunk: u64,
    /// Which of the table's files.
    pub file: u32,
    /// Its first byte there.
    pub offset: u64,
    /// Its bytes, as they are stored.
    pub bytes: u64,
    /// Filters that were not applied to it: bit `i` for the array's filter `i`.
    pub mask: u32,
}

/// A file that chunks lie in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRef {
    /// Its name: the key in a tree of files, empty for a format that has one file.
    pub name: String,
    /// Its length when the table was made.
    pub length: u64,
}

/// Where the chunks lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Places {
    /// One by one, in ascending order of their numbers. Those that are not listed are not stored.
    Listed(Vec<Place>),
    /// All of them, by arithmetic, in the first file.
    Rows(Rows),
    /// The one chunk is here, because it lies inside what a file says about itself.
    Inline(Vec<u8>),
}

/// What is known of one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// It reads as the fill value.
    Missing,
    /// It lies there.
    At(Place),
    /// These are its stored bytes.
    Inline(&'a [u8]),
}

/// All that is needed to read and decode the chunks of a variable, and nothing of the format it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkTable {
    /// The array.
    pub array: Array,
    /// The files.
    pub files: Vec<FileRef>,
    /// The chunks.
    pub places: Places,
}

impl ChunkTable {
    /// Where a chunk lies; `None` for a number past the last.
    pub fn find(&self, number: u64) -> Option<Found<'_>> {
        if number >= self.array.chunks() {
            return None;
        }
        Some(match &self.places {
            Places::Listed(places) => match places.binary_search_by_key(&number, |place| place.chunk) {
                Ok(index) => Found::At(*places.get(index)?),
                Err(_) => Found::Missing,
            },
            Places::Rows(rows) => {
                let (offset, bytes) = rows.place(&self.array, number)?;
                Found::At(Place { chunk: number, file: 0, offset, bytes, mask: 0 })
            }
            Places::Inline(bytes) => Found::Inline(bytes),
        })
    }

    /// The table with the places of these chunks alone, ascending, and the files that they lie in. Data without an index and a
    /// chunk inside the table stay what they are.
    pub fn only(&self, numbers: &[u64]) -> ChunkTable {
        let Places::Listed(places) = &self.places else { return self.clone() };
        let asked = places.iter().filter(|place| numbers.binary_search(&place.chunk).is_ok());
        let mut asked: Vec<Place> = asked.copied().collect();
        let mut files = self.files.clone();
        if files.len() > 1 {
            let mut needed: Vec<u32> = asked.iter().map(|place| place.file).collect();
            needed.sort_unstable();
            needed.dedup();
            for place in &mut asked {
                place.file = needed.partition_point(|file| *file < place.file) as u32;
            }
            files = needed.iter().filter_map(|file| self.files.get(*file as usize).cloned()).collect();
        }
        ChunkTable { array: self.array.clone(), files, places: Places::Listed(asked) }
    }

    /// Chunks that are stored.
    pub fn stored_chunks(&self) -> u64 {
        match &self.places {
            Places::Listed(places) => places.len() as u64,
            Places::Rows(_) | Places::Inline(_) => self.array.chunks(),
        }
    }

    /// Bytes that the chunks take in their files.
    pub fn stored_bytes(&self) -> u64 {
        match &self.places {
            Places::Listed(places) => places.iter().fold(0, |all, place| all.saturating_add(place.bytes)),
            Places::Rows(_) => bytes_of(&self.array.shape, self.array.dtype).unwrap_or(u64::MAX),
            Places::Inline(bytes) => bytes.len() as u64,
        }
    }

    /// Checks the whole table against the lengths of its files, in their order: whoever receives one need not believe
    /// it. Every chunk's bytes lie inside its file afterwards.
    ///
    /// # Errors
    /// [`FormatError::PastEnd`], [`FormatError::Limit`], [`FormatError::Table`].
    pub fn check(&self, lengths: &[u64]) -> Result<(), FormatError> {
        self.array.check()?;
        FormatError::limit("files", self.files.len() as u64, MAX_FILES as u64)?;
        if lengths.len() != self.files.len() {
            return Err(FormatError::table("it is about another number of files"));
        }
        for file in &self.files {
            FormatError::limit("bytes of a name", file.name.len() as u64, MAX_NAME_BYTES as u64)?;
        }
        match &self.places {
            Places::Listed(places) => self.check_places(places, lengths),
            Places::Rows(rows) => {
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
            Places::Inline(bytes) => {
                FormatError::limit("bytes inside a table", bytes.len() as u64, MAX_INLINE_BYTES as u64)?;
                if self.array.chunks() > 1 {
                    return Err(FormatError::table("one chunk is inside it, and there are more"));
                }
                Ok(())
            }
        }
    }

    fn check_places(&self, places: &[Place], lengths: &[u64]) -> Result<(), FormatError> {
        FormatError::limit("chunks", places.len() as u64, MAX_CHUNKS as u64)?;
        let chunks = self.array.chunks();
        let mut next = 0;
        for place in places {
            let length = usize::try_from(place.file).ok().and_then(|file| lengths.get(file)).copied();
            let length = length.ok_or_else(|| FormatError::table("a chunk lies in no file"))?;
            if place.chunk < next || place.chunk >= chunks {
                return Err(FormatError::table("its chunks are not in order, or past the last"));
            }
            next = place.chunk + 1;
            FormatError::limit("bytes of a stored chunk", place.bytes, MAX_STORED_BYTES)?;
            let end = place.offset.saturating_add(place.bytes);
            if end > length {
                return Err(self.past_end(place.chunk, place.file, place.offset, end, length));
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

    /// Reads and decodes one chunk. `sources` are the table's files; see [`Decoder::decode`] for what `out` becomes.
    ///
    /// # Errors
    /// [`FormatError::Io`], and those of [`Decoder::decode`].
    pub fn read(
        &self,
        number: u64,
        decoder: &mut Decoder,
        sources: &dyn Fn(u32) -> Result<std::sync::Arc<dyn Source>, FormatError>,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        match self.find(number) {
            None => Err(FormatError::table(format!("there is no chunk {number}"))),
            Some(Found::Missing) => decoder.fill(number, out),
            Some(Found::Inline(bytes)) => decoder.decode(number, bytes, 0, out),
            Some(Found::At(place)) => {
                let source = sources(place.file)?;
                let stored = source::read(&*source, place.offset, place.bytes, MAX_STORED_BYTES)?;
                decoder.decode(number, &stored, place.mask, out)
            }
        }
    }
}
