//! What is kept of the rows or bytes of an answer.

use std::io;

use gristmill_kernel::RowBatch;
use gristmill_runtime::RowOutput;

use crate::answer::RowDigest;
use crate::command::Rows;

/// Takes the rows of one answer as a command wants them.
pub enum Kept {
    Nothing,
    Columns(Columns),
    Bytes(Bytes),
}

/// Bytes of a page of memory.
const PAGE: usize = 4096;

/// Most bytes that room is made for before rows come.
const MAX_ROOM: u64 = 1 << 30;

impl Kept {
    /// `bytes` are about as many as will come.
    pub fn new(rows: Rows, bytes: u64) -> Kept {
        match rows {
            Rows::Discard => Kept::Nothing,
            Rows::Collect => Kept::Columns(Columns::with_room(bytes.min(MAX_ROOM) as usize)),
            Rows::Digest => Kept::Bytes(Bytes::default()),
        }
    }

    pub fn digest(self) -> Option<RowDigest> {
        match self {
            Kept::Nothing => None,
            Kept::Columns(columns) => Some(columns.digest()),
            Kept::Bytes(bytes) => Some(bytes.digest()),
        }
    }
}

impl RowOutput for Kept {
    fn rows(&mut self, batch: &RowBatch) -> io::Result<()> {
        match self {
            Kept::Nothing => {}
            Kept::Columns(columns) => columns.take(batch),
            Kept::Bytes(bytes) => bytes.take(batch.bytes()),
        }
        Ok(())
    }
}

/// Positions and bytes of rows, as two arrays.
pub struct Columns {
    index: Vec<u64>,
    values: Vec<u8>,
}

impl Columns {
    /// Room for so many bytes of elements, and for as many positions.
    fn with_room(bytes: usize) -> Columns {
        Columns { index: in_huge_pages(bytes / size_of::<u64>()), values: in_huge_pages(bytes) }
    }

    fn take(&mut self, batch: &RowBatch) {
        self.index.extend_from_slice(batch.records());
        self.values.extend_from_slice(batch.bytes());
    }

    fn digest(&self) -> RowDigest {
        let (words, _) = self.values.as_chunks::<8>();
        let pairs =
            self.index.iter().zip(words).fold(0u64, |sum, (index, word)| {
                sum.wrapping_add(index.wrapping_mul(u64::from_le_bytes(*word)))
            });
        RowDigest::Columns {
            count: self.index.len() as u64,
            ascending: self.index.is_sorted_by(|a, b| a < b),
            pairs: pairs.to_string(),
        }
    }
}

/// An empty vector with room for `capacity` numbers, in huge pages if the machine has them. NumPy requests the same for its
/// arrays.
#[allow(unsafe_code)]
fn in_huge_pages<T: Copy>(capacity: usize) -> Vec<T> {
    let mut vector: Vec<T> = Vec::with_capacity(capacity);
    let room = vector.spare_capacity_mut();
    let start = room.as_mut_ptr().cast::<u8>();
    let skip = start.align_offset(PAGE);
    let length = std::mem::size_of_val(room).saturating_sub(skip);
    if length > 0 {
        // SAFETY: the range begins at a page and lies within memory that this vector owns. The advice does not change its
        // content. It is no failure if a machine has no huge pages.
        let _ =
            unsafe { rustix::mm::madvise(start.add(skip).cast(), length, rustix::mm::Advice::LinuxHugepage) };
    }
    vector
}

/// Number and hash of bytes in their order, however they come in pieces; the bytes are not kept.
pub struct Bytes {
    length: u64,
    hash: u64,
    /// The beginning of a word.
    word: [u8; 8],
}

/// FNV's, taken over words of 8 bytes: it costs next to nothing beside a kernel.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes { length: 0, hash: BASIS, word: [0; 8] }
    }
}

impl Bytes {
    fn take(&mut self, mut bytes: &[u8]) {
        while !self.length.is_multiple_of(8)
            && let Some((first, rest)) = bytes.split_first()
        {
            self.one(*first);
            bytes = rest;
        }
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.hash = (self.hash ^ u64::from_le_bytes(*word)).wrapping_mul(PRIME);
        }
        self.length += 8 * words.len() as u64;
        rest.iter().for_each(|byte| self.one(*byte));
    }

    fn one(&mut self, byte: u8) {
        let at = (self.length % 8) as usize;
        if let Some(place) = self.word.get_mut(at) {
            *place = byte;
        }
        self.length += 1;
        if self.length.is_multiple_of(8) {
            self.hash = (self.hash ^ u64::from_le_bytes(self.word)).wrapping_mul(PRIME);
            self.word = [0; 8];
        }
    }

    fn digest(&self) -> RowDigest {
        let hash = (self.hash ^ u64::from_le_bytes(self.word)).wrapping_mul(PRIME);
        RowDigest::Bytes { bytes: self.length, hash: format!("{hash:016x}") }
    }
}
