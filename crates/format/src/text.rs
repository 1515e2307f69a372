//! Delimited text: each column of numbers is a variable.
//!
//! Every line is a row, except blank lines and lines that begin with `#`. The first row names the columns if none of
//! its fields is a number. The whole file is read once when it is opened. A column of integers is i64. A column of
//! numbers is f64, and an empty field, `NA` or `nan` in it is NaN. Any other column is text. The same pass notes the
//! offset of every [`ROWS`]th row, so that a chunk is a range of bytes.

use std::sync::Arc;

use gristmill_kernel::{ByteOrder, DType};

use crate::array::{Array, Edges};
use crate::codec::column::{fields, float, has_data, integer, is_missing};
use crate::dataset::{Dataset, Dimension, Format, Kind, Storage, Tables, Variable};
use crate::filter::{Column, Filter};
use crate::source::{self, Source};
use crate::table::{ChunkLocation, ChunkLocations, ChunkTable, FileRef};
use crate::{FormatError, MAX_STORED_BYTES};

/// Rows of a chunk.
pub const ROWS: u64 = 8192;

/// Most bytes of a line, so that no chunk is too long.
const MAX_LINE: usize = (MAX_STORED_BYTES / ROWS) as usize;

/// Most columns.
const MAX_COLUMNS: usize = 4096;

/// Bytes read at once.
const STEP: u64 = 1 << 20;

/// Returns whether the ending of a file's name means delimited text.
pub fn is_text(name: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    ["csv", "tsv"].iter().any(|known| known.eq_ignore_ascii_case(extension))
}

/// Opens a file of text.
pub fn open(source: Arc<dyn Source>, name: &str) -> Result<Dataset, FormatError> {
    let tabs = name.to_ascii_lowercase().ends_with(".tsv");
    let mut scan = Scan { delimiter: tabs.then_some(b'\t'), ..Scan::default() };
    scan.all(&*source)?;
    let delimiter = scan.delimiter.unwrap_or(b',');
    let variables: Vec<Variable> = scan.columns.iter().map(|column| column.variable(scan.rows)).collect();
    Ok(Dataset {
        format: Format::Text,
        groups: Vec::new(),
        dimensions: vec![Dimension { name: "row".to_owned(), length: scan.rows, unlimited: false }],
        attributes: Vec::new(),
        variables,
        tables: Box::new(TextTables {
            source,
            delimiter,
            rows: scan.rows,
            starts: scan.starts,
            end: scan.at,
        }),
    })
}

/// A column while the file is scanned, with the kinds of fields that it has.
#[derive(Default)]
struct ScannedColumn {
    name: String,
    missing: bool,
    numbers: bool,
    fractions: bool,
    text: bool,
}

impl ScannedColumn {
    fn scan(&mut self, field: &[u8]) {
        if is_missing(field) {
            self.missing = true;
        } else if integer(field).is_some() {
            self.numbers = true;
        } else if float(field).is_some() {
            (self.numbers, self.fractions) = (true, true);
        } else {
            self.text = true;
        }
    }

    fn variable(&self, rows: u64) -> Variable {
        let kind = match (self.text, self.numbers, self.missing || self.fractions) {
            (true, _, _) | (_, false, _) => Kind::Other("text".to_owned()),
            (_, _, false) => Kind::Number(DType::I64),
            (_, _, true) => Kind::Number(DType::F64),
        };
        let fill = matches!(kind, Kind::Number(_)).then(|| vec![0; 8]);
        Variable {
            path: self.name.clone(),
            dimensions: vec!["row".to_owned()],
            kind,
            order: ByteOrder::Little,
            shape: vec![rows],
            chunk: Some(vec![ROWS]),
            storage: Storage::Lines,
            filters: Vec::new(),
            fill,
            attributes: Vec::new(),
        }
    }
}

/// The scan of the file.
#[derive(Default)]
struct Scan {
    delimiter: Option<u8>,
    columns: Vec<ScannedColumn>,
    rows: u64,
    /// Offset of the first row of each chunk.
    starts: Vec<u64>,
    /// Offset after the last line.
    at: u64,
    line: u64,
    begun: bool,
}

/// Mark that some programs put before UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Scan {
    fn all(&mut self, source: &dyn Source) -> Result<(), FormatError> {
        let mut held: Vec<u8> = Vec::new();
        let mut read = 0;
        while read < source.len() {
            let more = source::read(source, read, STEP.min(source.len() - read), STEP)?;
            read += more.len() as u64;
            held.extend_from_slice(&more);
            if self.at == 0 && self.line == 0 && held.starts_with(BYTE_ORDER_MARK) {
                held.drain(..BYTE_ORDER_MARK.len());
                self.at = BYTE_ORDER_MARK.len() as u64;
            }
            let mut done = 0;
            while let Some(end) = memchr::memchr(b'\n', held.get(done..).unwrap_or_default()) {
                let line = held.get(done..done + end).unwrap_or_default();
                self.line(line, end as u64 + 1)?;
                done += end + 1;
            }
            held.drain(..done);
            FormatError::limit("bytes of a line", held.len() as u64, MAX_LINE as u64)?;
        }
        let bytes = held.len() as u64;
        self.line(&held, bytes)
    }

    fn line(&mut self, line: &[u8], bytes: u64) -> Result<(), FormatError> {
        let start = self.at;
        self.at += bytes;
        self.line += 1;
        FormatError::limit("bytes of a line", line.len() as u64, MAX_LINE as u64)?;
        if !has_data(line) {
            return Ok(());
        }
        let delimiter = *self.delimiter.get_or_insert_with(|| delimiter_of(line));
        if !self.begun {
            self.begun = true;
            if self.head(line, delimiter)? {
                return Ok(());
            }
        }
        if self.rows.is_multiple_of(ROWS) {
            self.starts.push(start);
        }
        self.rows += 1;
        let mut left = self.columns.iter_mut();
        for field in fields(line, delimiter) {
            let Some(column) = left.next() else {
                let why = format!("line {} has more fields than the first", self.line);
                return Err(FormatError::damaged("text", why));
            };
            column.scan(field);
        }
        left.for_each(|column| column.missing = true);
        Ok(())
    }

    /// Takes the columns from the first row. Returns whether the row has their names.
    fn head(&mut self, line: &[u8], delimiter: u8) -> Result<bool, FormatError> {
        let names: Vec<&[u8]> = fields(line, delimiter).take(MAX_COLUMNS + 1).collect();
        FormatError::limit("columns", names.len() as u64, MAX_COLUMNS as u64)?;
        let named = !names.iter().any(|name| float(name).is_some());
        for (number, name) in names.iter().enumerate() {
            let name = String::from_utf8_lossy(name).into_owned();
            let taken = self.columns.iter().any(|column| column.name == name);
            let name = if named && !name.is_empty() && !taken { name } else { format!("column{number}") };
            self.columns.push(ScannedColumn { name, ..ScannedColumn::default() });
        }
        Ok(named)
    }
}

/// Returns the delimiter of a line: a tab, a comma or a semicolon if the line has one, else white space.
fn delimiter_of(line: &[u8]) -> u8 {
    *[b'\t', b',', b';'].iter().find(|delimiter| line.contains(delimiter)).unwrap_or(&b' ')
}

/// The chunk tables of a text file.
struct TextTables {
    source: Arc<dyn Source>,
    delimiter: u8,
    rows: u64,
    starts: Vec<u64>,
    end: u64,
}

impl Tables for TextTables {
    fn table(&self, index: usize, variable: &Variable) -> Result<ChunkTable, FormatError> {
        let dtype = variable.dtype()?;
        let index = u32::try_from(index).map_err(|_| FormatError::table("there is no such column"))?;
        let ends = self.starts.iter().skip(1).chain([&self.end]);
        let locations = (0u64..).zip(self.starts.iter().zip(ends)).map(|(chunk, (start, end))| {
            ChunkLocation { chunk, file: 0, offset: *start, bytes: end.saturating_sub(*start), mask: 0 }
        });
        let array = Array {
            dtype,
            order: ByteOrder::Little,
            shape: vec![self.rows],
            stored: vec![self.rows],
            chunk: vec![ROWS],
            edges: Edges::Clipped,
            filters: vec![Filter::Column(Column { index, delimiter: self.delimiter })],
            fill: vec![0; dtype.size()],
        };
        let files = vec![FileRef { name: String::new(), length: self.source.len() }];
        Ok(ChunkTable { array, files, locations: ChunkLocations::Listed(locations.collect()) })
    }

    fn source(&self, _: &ChunkTable, _: u32) -> Result<Arc<dyn Source>, FormatError> {
        Ok(Arc::clone(&self.source))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Decoder;

    fn column(dataset: &Dataset, name: &str) -> Vec<u64> {
        let table = dataset.table(name).unwrap();
        let (mut decoder, mut all, mut out) = (Decoder::new(&table.array).unwrap(), Vec::new(), Vec::new());
        for number in 0..table.array.chunks() {
            dataset.read_chunk(&table, number, &mut decoder, &mut out).unwrap();
            all.extend(out.as_chunks::<8>().0.iter().map(|x| u64::from_le_bytes(*x)));
        }
        all
    }

    #[test]
    fn columns_have_names_and_types() {
        let text = b"# made by hand\nname,n,x\n\na,1,2.5\nb,2,\n\"c,d\",3,1e3\n".to_vec();
        let dataset = open(Arc::new(text), "a.csv").unwrap();
        let kinds: Vec<_> =
            dataset.variables.iter().map(|v| (v.path.as_str(), v.kind.to_string(), v.shape[0])).collect();
        let wanted = [("name", "text", 3), ("n", "i64", 3), ("x", "f64", 3)];
        assert_eq!(kinds, wanted.map(|(name, kind, rows)| (name, kind.to_owned(), rows)));
        assert_eq!(column(&dataset, "n"), [1, 2, 3]);
        assert_eq!(column(&dataset, "x"), [2.5f64.to_bits(), 0x7ff8 << 48, 1e3f64.to_bits()]);
        assert!(matches!(dataset.table("name"), Err(FormatError::Unsupported { .. })));
    }

    #[test]
    fn a_file_without_names_and_one_with_ragged_lines() {
        let dataset = open(Arc::new(b"1 2\n3 4".to_vec()), "a.txt").unwrap();
        assert_eq!(column(&dataset, "column1"), [2, 4]);
        assert!(open(Arc::new(b"1 2\n3 4 5\n".to_vec()), "a.txt").is_err());
        assert!(open(Arc::new(Vec::new()), "a.csv").unwrap().variables.is_empty());
    }

    proptest! {
        /// Any number of rows, with blank lines in between.
        #[test]
        fn rows_come_back(numbers in prop::collection::vec(any::<i64>(), 0..400), repeat in 1usize..60) {
            let all: Vec<i64> = numbers.iter().cycle().take(numbers.len() * repeat).copied().collect();
            let mut text = "n;m\n".to_owned();
            for (row, n) in all.iter().enumerate() {
                text.push_str(&format!("{n};{row}\n{}", if row % 7 == 0 { "\n" } else { "" }));
            }
            let dataset = open(Arc::new(text.into_bytes()), "a.csv").unwrap();
            if !all.is_empty() {
                prop_assert_eq!(column(&dataset, "n"), all.iter().map(|n| *n as u64).collect::<Vec<_>>());
            }
        }

        #[test]
        fn junk_is_refused_and_nothing_worse(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(dataset) = open(Arc::new(bytes), "a.csv") {
                for variable in &dataset.variables {
                    let _ = dataset.table(&variable.path);
                }
            }
        }
    }
}
