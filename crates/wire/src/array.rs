//! A request over an array as it crosses the network: the chunk table, and what is asked of it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use gristmill_array::{EdgeChunks, Grid, Request, Spoken};
use gristmill_format::wire::{Head, Page, head, page};
use gristmill_format::{Array, ChunkTable, Edges, FormatError};
use serde::{Deserialize, Serialize};

use crate::{MAX_ARRAY_SPEC_BYTES, WireError};

/// Pages of a table, at most.
const MAX_PAGES: usize = 1024;

/// A request over an array: its chunk table as head and pages ([`gristmill_format::wire`]) and what is asked
/// ([`Spoken`]), all in base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArraySpec {
    table: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pages: Vec<String>,
    asked: String,
}

/// The grid of an array's chunks.
///
/// # Errors
/// Shapes and chunks that make no grid.
pub fn grid(array: &Array) -> Result<Grid, WireError> {
    let edges = match array.edges {
        Edges::Whole => EdgeChunks::Whole,
        Edges::Clipped => EdgeChunks::Clipped,
    };
    Grid::new(array.shape.clone(), array.chunk.clone(), edges).map_err(malformed)
}

impl ArraySpec {
    /// This of the array with this table.
    ///
    /// # Errors
    /// [`WireError::TooLong`] for more than [`MAX_ARRAY_SPEC_BYTES`]: some two million chunks.
    pub fn new(table: &ChunkTable, request: &Request) -> Result<ArraySpec, WireError> {
        let (mut pages, mut next) = (Vec::new(), 0);
        let coded = head(table);
        let known = Head::decode(&coded).map_err(malformed)?;
        let asked = Spoken::of(request).encode().map_err(malformed)?;
        let mut spec =
            ArraySpec { table: STANDARD_NO_PAD.encode(&coded), pages: Vec::new(), asked: coded_of(&asked) };
        let mut bytes = spec.bytes();
        while next < known.pages_end() {
            let coded = page(table, next).map_err(malformed)?;
            // The page says where the next begins.
            next = Page::decode(&known, &coded).map_err(malformed)?.chunks.end;
            let coded = coded_of(&coded);
            bytes += coded.len();
            if bytes > MAX_ARRAY_SPEC_BYTES {
                return Err(too_long(bytes));
            }
            pages.push(coded);
        }
        spec.pages = pages;
        if bytes > MAX_ARRAY_SPEC_BYTES { Err(too_long(bytes)) } else { Ok(spec) }
    }

    /// The table, which is to be checked against its files ([`ChunkTable::check`]), and the request.
    ///
    /// # Errors
    /// Whatever [`new`](ArraySpec::new) does not write.
    pub fn decode(&self) -> Result<(ChunkTable, Request), WireError> {
        if self.bytes() > MAX_ARRAY_SPEC_BYTES {
            return Err(too_long(self.bytes()));
        }
        if self.pages.len() > MAX_PAGES {
            return Err(malformed(format!("a table of {} pages", self.pages.len())));
        }
        let bytes = |text: &String| STANDARD_NO_PAD.decode(text).map_err(malformed);
        let head = Head::decode(&bytes(&self.table)?).map_err(malformed)?;
        let page = |text| Page::decode(&head, &bytes(text)?).map_err(malformed);
        let pages = self.pages.iter().map(page).collect::<Result<Vec<Page>, WireError>>()?;
        let table = head.table(pages).map_err(|error: FormatError| malformed(error))?;
        let spoken = Spoken::decode(&bytes(&self.asked)?).map_err(malformed)?;
        let (grid, dtype) = (grid(&table.array)?, table.array.dtype);
        Ok((table, spoken.request(grid, dtype)))
    }

    fn bytes(&self) -> usize {
        self.table.len() + self.asked.len() + self.pages.iter().map(String::len).sum::<usize>()
    }
}

fn coded_of(bytes: &[u8]) -> String {
    STANDARD_NO_PAD.encode(bytes)
}

fn too_long(bytes: usize) -> WireError {
    WireError::TooLong { what: "request over an array", bytes, max: MAX_ARRAY_SPEC_BYTES }
}

fn malformed(why: impl ToString) -> WireError {
    WireError::Malformed { what: "request over an array", why: why.to_string() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use gristmill_array::{Meaning, Op, Reduction, Selection};
    use gristmill_format::{FileRef, Place, Places, open_raw};
    use gristmill_kernel::{ByteOrder, DType};

    use super::*;

    fn table(chunks: u64) -> ChunkTable {
        let source = Arc::new(vec![0u8; 8]);
        let mut table =
            open_raw(source, DType::F64, ByteOrder::Little, &[1], 0).unwrap().table("data").unwrap();
        table.array.shape = vec![chunks * 10];
        table.array.stored = vec![chunks * 10];
        table.array.chunk = vec![10];
        let place = |chunk: u64| Place { chunk, file: 0, offset: chunk * 7919 % 99_991, bytes: 80, mask: 0 };
        // Every third is not stored.
        table.places = Places::Listed((0..chunks).filter(|n| n % 3 != 2).map(place).collect());
        table.files = vec![FileRef { name: String::new(), length: 1 << 40 }];
        table
    }

    fn request(table: &ChunkTable) -> Request {
        Request {
            grid: grid(&table.array).unwrap(),
            meaning: Meaning::of(table.array.dtype),
            selection: Selection::default(),
            expr: None,
            reduction: Reduction::new(Op::Sum),
        }
    }

    #[test]
    fn tables_of_many_pages_come_out_as_they_went_in() {
        for chunks in [0, 1, 100, 300_000] {
            let table = table(chunks);
            let spec = ArraySpec::new(&table, &request(&table)).unwrap();
            let text = serde_json::to_string(&spec).unwrap();
            let read: ArraySpec = serde_json::from_str(&text).unwrap();
            let (read_table, read_request) = read.decode().unwrap();
            assert!(read_table == table, "{chunks}");
            assert_eq!(read_request, request(&table));
        }
    }

    #[test]
    fn too_many_chunks_are_refused_before_they_are_sent() {
        let table = table(6_000_000);
        let error = ArraySpec::new(&table, &request(&table)).unwrap_err();
        assert!(matches!(error, WireError::TooLong { .. }), "{error}");
    }
}
