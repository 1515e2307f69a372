//! A chunk table as bytes: a head, and pages of bounded size. Each page covers a range of chunks.
//!
//! Numbers are unsigned LEB128 unless stated otherwise; differences are zigzag-coded first. A chunk that directly
//! follows the previous one in the file takes about five bytes.
//!
//! | part | what |
//! |---|---|
//! | head | `grtb`, version 2 (1 byte), the array, number of files, the file if it is one, locations or the number listed, sum |
//! | array | type, byte order and edges (1 byte each), lengths, chunk lengths, stored lengths, filters, fill value |
//! | page | `grtp`, version, first chunk, chunk after the last, files (if there are several), locations, sum |
//! | location | chunks left out before it, file, difference of its offset to the expected one, bytes, mask |
//! | sum | CRC-32C (Castagnoli) of all bytes before it, 4 bytes, little-endian |
//!
//! A wrong location of a chunk would give a wrong number, so a head or a page with a wrong sum is refused. Decoding
//! makes the checks of [`ChunkTable::check`](crate::ChunkTable::check) except those of the files' lengths, which the
//! server knows.
//!
//! ```
//! # use std::sync::Arc;
//! # use gristmill_format::{open_raw, wire};
//! # use gristmill_kernel::{ByteOrder, DType};
//! # fn main() -> Result<(), gristmill_format::FormatError> {
//! let file = open_raw(Arc::new(vec![0u8; 800]), DType::F64, ByteOrder::Little, &[10, 10], 0)?;
//! let table = file.table("data")?;
//! let head = wire::Head::decode(&wire::head(&table))?;
//! let mut pages = Vec::new();
//! let mut next = 0;
//! while next < head.pages_end() {
//!     let bytes = wire::page(&table, next)?;
//!     let page = wire::Page::decode(&head, &bytes)?;
//!     next = page.chunks.end;
//!     pages.push(page);
//! }
//! assert_eq!(head.table(pages)?, table);
//! # Ok(())
//! # }
//! ```

mod array;
mod head;
mod number;
mod page;
mod sum;

pub use head::{Head, head};
pub use page::{Page, page};
pub use sum::with_sum;

/// Encodes an array as in a head.
pub fn array(array: &crate::Array) -> Vec<u8> {
    let mut out = Vec::new();
    array::put_array(&mut out, array);
    out
}

/// Most bytes of a head.
pub const MAX_HEAD_BYTES: usize = 128 << 10;

/// A page ends after the location with which it reaches this number of bytes.
pub const PAGE_BYTES: usize = 256 << 10;

/// Most bytes of a page.
pub const MAX_PAGE_BYTES: usize = PAGE_BYTES + (16 << 10);
