//! The encoding of a request over an array: its chunk tables and the request.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use gristmill_array::{EdgeChunks, EncodedRequest, Grid, Request};
use gristmill_format::wire::{Head, Page, head, page};
use gristmill_format::{Array, ChunkTable, Edges, FormatError};
use serde::{Deserialize, Serialize};

use crate::bounded::at_most;
use crate::{MAX_ARRAY_SPEC_BYTES, WireError};

/// Most pages of a table.
const MAX_PAGES: usize = 1024;

/// Most variables of a request: the inputs of an expression.
const MAX_TABLES: usize = gristmill_array::MAX_INPUTS;

/// A request over an array, in base64: the chunk tables of the array and of the other variables of the expression, as
/// head and pages ([`gristmill_format::wire`]), and the request ([`EncodedRequest`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArraySpec {
    /// The table of the leading variable is the first.
    #[serde(deserialize_with = "at_most::<_, _, MAX_TABLES>")]
    tables: Vec<TableSpec>,
    asked: String,
}

/// A chunk table in base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableSpec {
    table: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "at_most::<_, _, MAX_PAGES>")]
    pages: Vec<String>,
}

/// The grid of the chunks of an array.
///
/// # Errors
/// The error is [`WireError::Malformed`] if shape and chunks make no grid.
pub fn grid(array: &Array) -> Result<Grid, WireError> {
    let edges = match array.edges {
        Edges::Whole => EdgeChunks::Whole,
        Edges::Clipped => EdgeChunks::Clipped,
    };
    Grid::new(array.shape.clone(), array.chunk.clone(), edges).map_err(malformed)
}

impl TableSpec {
    /// Encodes a table in at most `room` bytes of text.
    fn new(table: &ChunkTable, room: usize) -> Result<TableSpec, WireError> {
        let encoded = head(table);
        let decoded_head = Head::decode(&encoded).map_err(malformed)?;
        let (mut pages, mut next, mut bytes) = (Vec::new(), 0, 0);
        let head_text = to_base64(&encoded);
        bytes += head_text.len();
        while next < decoded_head.pages_end() {
            let encoded = page(table, next).map_err(malformed)?;
            // The next page begins where this page ends.
            next = Page::decode(&decoded_head, &encoded).map_err(malformed)?.chunks.end;
            let encoded = to_base64(&encoded);
            bytes += encoded.len();
            if bytes > room {
                return Err(too_long(bytes + (MAX_ARRAY_SPEC_BYTES - room)));
            }
            pages.push(encoded);
        }
        Ok(TableSpec { table: head_text, pages })
    }

    fn decode(&self) -> Result<ChunkTable, WireError> {
        if self.pages.len() > MAX_PAGES {
            return Err(malformed(format!("a table has {} pages, which are too many", self.pages.len())));
        }
        let head = Head::decode(&from_base64(&self.table)?).map_err(malformed)?;
        let page = |text| Page::decode(&head, &from_base64(text)?).map_err(malformed);
        let pages = self.pages.iter().map(page).collect::<Result<Vec<Page>, WireError>>()?;
        head.table(pages).map_err(|error: FormatError| malformed(error))
    }

    fn bytes(&self) -> usize {
        self.table.len() + self.pages.iter().map(String::len).sum::<usize>()
    }
}

impl ArraySpec {
    /// Encodes a request over the array with this table. `others`: the tables of the other variables, in the order in
    /// which the request names them.
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] if the text has more than [`MAX_ARRAY_SPEC_BYTES`] (some two
    /// million chunks), and [`WireError::Malformed`] if the request or a table cannot be encoded.
    pub fn new<'t>(
        table: &'t ChunkTable,
        others: impl Iterator<Item = &'t ChunkTable>,
        request: &Request,
    ) -> Result<ArraySpec, WireError> {
        let asked = to_base64(&EncodedRequest::new(request).encode().map_err(malformed)?);
        let mut room = MAX_ARRAY_SPEC_BYTES.checked_sub(asked.len()).ok_or_else(|| too_long(asked.len()))?;
        let spec = |table: &ChunkTable| {
            let spec = TableSpec::new(table, room)?;
            room = room
                .checked_sub(spec.bytes())
                .ok_or_else(|| too_long(MAX_ARRAY_SPEC_BYTES - room + spec.bytes()))?;
            Ok::<TableSpec, WireError>(spec)
        };
        let tables = [table].into_iter().chain(others).map(spec).collect::<Result<_, _>>()?;
        Ok(ArraySpec { tables, asked })
    }

    /// The table of the leading variable, the tables of the others, and the request. The caller must check the tables
    /// against their files ([`ChunkTable::check`]).
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] if the text has more than [`MAX_ARRAY_SPEC_BYTES`], and
    /// [`WireError::Malformed`] if it is not an output of [`new`](ArraySpec::new).
    pub fn decode(&self) -> Result<(ChunkTable, Vec<ChunkTable>, Request), WireError> {
        if self.bytes() > MAX_ARRAY_SPEC_BYTES {
            return Err(too_long(self.bytes()));
        }
        let Some((lead, others)) = self.tables.split_first().filter(|_| self.tables.len() <= MAX_TABLES)
        else {
            return Err(malformed(format!(
                "it has {} variables; 1 to {MAX_TABLES} are possible",
                self.tables.len()
            )));
        };
        let table = lead.decode()?;
        let others = others.iter().map(TableSpec::decode).collect::<Result<Vec<ChunkTable>, _>>()?;
        let encoded = EncodedRequest::decode(&from_base64(&self.asked)?).map_err(malformed)?;
        let types: Vec<_> = [&table].into_iter().chain(&others).map(|table| table.array.dtype).collect();
        let request = encoded.request(grid(&table.array)?, &types).map_err(malformed)?;
        Ok((table, others, request))
    }

    fn bytes(&self) -> usize {
        self.tables.iter().map(TableSpec::bytes).sum::<usize>() + self.asked.len()
    }
}

fn from_base64(text: &String) -> Result<Vec<u8>, WireError> {
    STANDARD_NO_PAD.decode(text).map_err(malformed)
}

fn to_base64(bytes: &[u8]) -> String {
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
    use gristmill_format::{ChunkLocation, ChunkLocations, FileRef, open_raw};
    use gristmill_kernel::{ByteOrder, DType};

    use super::*;

    fn table(chunks: u64) -> ChunkTable {
        let source = Arc::new(vec![0u8; 8]);
        let mut table =
            open_raw(source, DType::F64, ByteOrder::Little, &[1], 0).unwrap().table("data").unwrap();
        table.array.shape = vec![chunks * 10];
        table.array.stored = vec![chunks * 10];
        table.array.chunk = vec![10];
        let location =
            |chunk: u64| ChunkLocation { chunk, file: 0, offset: chunk * 7919 % 99_991, bytes: 80, mask: 0 };
        // Every third chunk is not stored.
        table.locations = ChunkLocations::Listed((0..chunks).filter(|n| n % 3 != 2).map(location).collect());
        table.files = vec![FileRef { name: String::new(), length: 1 << 40 }];
        table
    }

    fn request(table: &ChunkTable) -> Request {
        Request {
            grid: grid(&table.array).unwrap(),
            meaning: Meaning::plain(table.array.dtype),
            others: Vec::new(),
            constants: Vec::new(),
            selection: Selection::default(),
            expr: None,
            reduction: Reduction::new(Op::Sum),
        }
    }

    #[test]
    fn tables_of_many_pages_round_trip() {
        for chunks in [0, 1, 100, 300_000] {
            let table = table(chunks);
            let spec = ArraySpec::new(&table, std::iter::empty(), &request(&table)).unwrap();
            let text = serde_json::to_string(&spec).unwrap();
            let read: ArraySpec = serde_json::from_str(&text).unwrap();
            let (read_table, others, read_request) = read.decode().unwrap();
            assert!(read_table == table && others.is_empty(), "{chunks}");
            assert_eq!(read_request, request(&table));
        }
    }

    #[test]
    fn too_many_chunks_are_refused_before_they_are_sent() {
        let table = table(6_000_000);
        let error = ArraySpec::new(&table, std::iter::empty(), &request(&table)).unwrap_err();
        assert!(matches!(error, WireError::TooLong { .. }), "{error}");
    }

    /// A request over two variables, with their tables.
    fn request_over_two() -> (ChunkTable, ChunkTable, Request) {
        let (lead, mut other) = (table(20), table(20));
        other.array.dtype = DType::I16;
        other.array.fill = vec![0; 2];
        let mut request = request(&lead);
        request.others = vec![Meaning::plain(DType::I16)];
        request.expr = Some(gristmill_array::Expr::parse("x * y", &["x", "y"]).unwrap());
        (lead, other, request)
    }

    #[test]
    fn tables_of_other_variables_round_trip() {
        let (lead, other, request) = request_over_two();
        let spec = ArraySpec::new(&lead, [&other].into_iter(), &request).unwrap();
        let text = serde_json::to_string(&spec).unwrap();
        let read: ArraySpec = serde_json::from_str(&text).unwrap();
        assert_eq!(read.decode().unwrap(), (lead, vec![other], request));
        assert!(serde_json::from_str::<ArraySpec>(&text.replace("\"tables\"", "\"more\"")).is_err());
    }

    #[test]
    fn more_or_fewer_tables_than_the_request_names_are_refused() {
        let (lead, other, request) = request_over_two();
        for others in [0, 2, MAX_TABLES + 1] {
            let spec = ArraySpec::new(&lead, std::iter::repeat_n(&other, others), &request).unwrap();
            let error = spec.decode().unwrap_err();
            assert!(matches!(error, WireError::Malformed { .. }), "{error}");
        }
    }

    #[test]
    fn tables_that_are_too_long_together_are_refused_before_they_are_sent() {
        let table = table(2_000_000);
        let one = |others| ArraySpec::new(&table, std::iter::repeat_n(&table, others), &request(&table));
        assert!(one(0).is_ok());
        let error = one(2).unwrap_err();
        assert!(matches!(error, WireError::TooLong { .. }), "{error}");
    }
}
