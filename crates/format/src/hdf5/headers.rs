//! Object headers as bytes: their chunks and messages (section IV.A.1 of the HDF5 specification).

use std::collections::HashSet;

use hdf5_reader::Hdf5File;
use hdf5_reader::checksum::jenkins_lookup3;
use hdf5_reader::io::Cursor;
use hdf5_reader::messages::{MSG_CONTINUATION, continuation};

use super::{MAX_HEADER_BYTES, bad};
use crate::FormatError;

/// Most chunks of a header.
const MAX_CHUNKS: u64 = 1024;

/// The first bytes of a header of version 2, and of its further chunks.
const SIGNATURE: &[u8; 4] = b"OHDR";
const CONTINUED: &[u8; 4] = b"OCHK";

/// Bytes of a checksum.
const CHECKSUM: usize = 4;

/// A chunk of a header.
pub struct Chunk {
    /// Address of the chunk.
    pub start: u64,
    /// All bytes of the chunk, with its signature and its checksum.
    pub bytes: Vec<u8>,
    /// Range of the messages in the bytes.
    from: usize,
    to: usize,
    form: Form,
}

/// The encoding of the messages of a header.
#[derive(Clone, Copy)]
struct Form {
    /// Whether the header has version 2, with checksums.
    sealed: bool,
    /// Bytes before the body of a message.
    envelope: usize,
}

/// A message of a chunk: its kind and the location of its body.
pub struct Message {
    pub kind: u16,
    envelope: usize,
    from: usize,
    to: usize,
}

/// Reads all chunks of a header.
///
/// # Errors
/// Returns an error if a chunk cannot be read or is damaged.
pub fn chunks(file: &Hdf5File, address: u64) -> Result<Vec<Chunk>, FormatError> {
    let (offsets, lengths) = (file.superblock().offset_size, file.superblock().length_size);
    let mut all = vec![first(file, address)?];
    let mut seen = HashSet::from([address]);
    let mut at = 0;
    while let Some(chunk) = all.get(at) {
        let mut next = Vec::new();
        for message in chunk.messages().filter(|message| message.kind == MSG_CONTINUATION) {
            let body = chunk.message(&message);
            let more = continuation::parse(&mut Cursor::new(body), offsets, lengths, body.len());
            next.push(more.map_err(bad)?);
        }
        let form = chunk.form;
        for more in next {
            if !seen.insert(more.offset) {
                return Err(bad("an object header goes round in a circle"));
            }
            FormatError::limit("chunks of an object header", seen.len() as u64, MAX_CHUNKS)?;
            let bytes = all
                .iter()
                .fold(more.length, |sum, chunk: &Chunk| sum.saturating_add(chunk.bytes.len() as u64));
            FormatError::limit("bytes of an object header", bytes, MAX_HEADER_BYTES as u64)?;
            all.push(further(file, more.offset, more.length, form)?);
        }
        at += 1;
    }
    Ok(all)
}

fn read(file: &Hdf5File, offset: u64, length: usize) -> Result<Vec<u8>, FormatError> {
    FormatError::limit("bytes of an object header", length as u64, MAX_HEADER_BYTES as u64)?;
    Ok(file.storage().read_range(offset, length).map_err(bad)?.to_vec())
}

fn first(file: &Hdf5File, address: u64) -> Result<Chunk, FormatError> {
    let start = read(file, address, 16)?;
    if !start.starts_with(SIGNATURE) {
        let length = number(&start[8..12]);
        let bytes = read(file, address, 16usize.saturating_add(length))?;
        let to = bytes.len();
        return Ok(Chunk { start: address, bytes, from: 16, to, form: Form { sealed: false, envelope: 8 } });
    }
    let flags = start[5];
    // Times, then the numbers of attributes at which they move to a heap, then the size of the chunk.
    let before = 6 + if flags & 0x20 == 0 { 0 } else { 16 } + if flags & 0x10 == 0 { 0 } else { 4 };
    let from = before + (1 << (flags & 3));
    let size = number(&read(file, address, from)?[before..]);
    let to = from.saturating_add(size);
    let bytes = read(file, address, to.saturating_add(CHECKSUM))?;
    let form = Form { sealed: true, envelope: if flags & 4 == 0 { 4 } else { 6 } };
    Chunk { start: address, bytes, from, to, form }.checked()
}

fn further(file: &Hdf5File, offset: u64, length: u64, form: Form) -> Result<Chunk, FormatError> {
    let bytes = read(file, offset, usize::try_from(length).unwrap_or(usize::MAX))?;
    let whole = bytes.len();
    let (from, to) = if form.sealed { (4, whole.saturating_sub(CHECKSUM)) } else { (0, whole) };
    if form.sealed && !bytes.starts_with(CONTINUED) {
        return Err(bad("an object header does not go on where it says"));
    }
    Chunk { start: offset, bytes, from, to, form }.checked()
}

/// Reads a little-endian number of any size.
fn number(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0usize, |all, byte| all.saturating_mul(256).saturating_add(usize::from(*byte)))
}

impl Chunk {
    /// Checks the checksum of the chunk. A later change in it gets a new checksum.
    fn checked(self) -> Result<Chunk, FormatError> {
        let right = !self.form.sealed
            || self.bytes.get(self.to..) == Some(&jenkins_lookup3(&self.bytes[..self.to]).to_le_bytes());
        if right { Ok(self) } else { Err(bad("the checksum of an object header does not fit")) }
    }

    /// Returns the messages that are complete.
    pub fn messages(&self) -> impl Iterator<Item = Message> {
        let mut at = self.from;
        std::iter::from_fn(move || {
            let envelope = self.bytes.get(at..at.checked_add(self.form.envelope)?)?;
            let (kind, size) = match self.form.sealed {
                true => (u16::from(envelope[0]), number(&envelope[1..3])),
                false => (number(&envelope[..2]) as u16, number(&envelope[2..4])),
            };
            let shared = envelope[if self.form.sealed { 3 } else { 4 }] & 2 != 0;
            let (start, from) = (at, at + self.form.envelope);
            let to = from + size;
            if to > self.to {
                return None;
            }
            at = to;
            // The body of a shared message has its address.
            let kind = if shared { u16::MAX } else { kind };
            Some(Message { kind, envelope: start, from, to })
        })
    }

    /// Returns the body of a message.
    pub fn message(&self, message: &Message) -> &[u8] {
        self.bytes.get(message.from..message.to).unwrap_or_default()
    }

    /// Replaces a message by an empty one.
    pub fn blank(&mut self, message: &Message) {
        let kind = if self.form.sealed { 1 } else { 2 };
        if let Some(bytes) = self.bytes.get_mut(message.envelope..message.envelope + kind) {
            bytes.fill(0);
        }
    }

    /// Updates the checksum of the chunk.
    pub fn sealed(mut self) -> Chunk {
        if self.form.sealed {
            self.bytes.truncate(self.to);
            let sum = jenkins_lookup3(&self.bytes).to_le_bytes();
            self.bytes.extend_from_slice(&sum);
        }
        self
    }
}
