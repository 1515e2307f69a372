//! Tests of joined tables: all elements are those of the files, one file after the other.
#![allow(clippy::unwrap_used)]

use gristmill_kernel::{ByteOrder, DType};
use proptest::prelude::*;

use super::*;
use crate::{Decoder, Filter, open_raw};

/// The elements of a table in C order. `files` has the bytes of each joined file.
fn elements(table: &ChunkTable, files: &[Arc<Vec<u8>>]) -> Vec<u16> {
    table.check(&table.files.iter().map(|file| file.length).collect::<Vec<_>>()).unwrap();
    let mut decoder = Decoder::new(&table.array).unwrap();
    let sources = |file: u32| {
        let name: usize = table.files[file as usize].name.parse().unwrap();
        Ok(files[name].clone() as Arc<dyn Source>)
    };
    let mut out = vec![0; table.array.shape.iter().product::<u64>() as usize];
    let mut chunk = Vec::new();
    for number in 0..table.array.chunks() {
        table.read(number, &mut decoder, &sources, &mut chunk).unwrap();
        let extent = table.array.extent(number).unwrap();
        for (n, element) in chunk.chunks_exact(2).enumerate() {
            let (mut left, mut at, mut step, mut inside) = (n as u64, 0, 1, true);
            for axis in (0..extent.held.len()).rev() {
                let index = left % extent.held[axis];
                left /= extent.held[axis];
                inside &= index < extent.clipped[axis];
                at += (extent.origin[axis] + index) * step;
                step *= table.array.shape[axis];
            }
            if inside {
                out[at as usize] = u16::from_le_bytes([element[0], element[1]]);
            }
        }
    }
    out
}

/// The elements of arrays, joined along an axis.
fn concatenated(parts: &[(Vec<u64>, Vec<u16>)], axis: usize) -> Vec<u16> {
    let shape = &parts[0].0;
    let outer: u64 = shape[..axis].iter().product();
    let inner: u64 = shape[axis + 1..].iter().product();
    let mut out = Vec::new();
    for row in 0..outer {
        for (shape, values) in parts {
            let length = (shape[axis] * inner) as usize;
            out.extend_from_slice(&values[row as usize * length..][..length]);
        }
    }
    out
}

fn numbers(shape: &[u64], first: u16) -> Vec<u16> {
    (0..shape.iter().product::<u64>()).map(|n| first.wrapping_add(n as u16)).collect()
}

fn little(values: &[u16]) -> Arc<Vec<u8>> {
    Arc::new(values.iter().flat_map(|value| value.to_le_bytes()).collect())
}

/// A table of data without an index, and the file.
fn plain(shape: &[u64], values: &[u16]) -> (ChunkTable, Arc<Vec<u8>>) {
    let file = little(values);
    let table =
        open_raw(file.clone(), DType::U16, ByteOrder::Little, shape, 0).unwrap().table("data").unwrap();
    (table, file)
}

/// A table of chunks with an index, whole also at the ends, and the file. Chunks whose number is a multiple of `missing` are not
/// stored and read as 7.
fn indexed(shape: &[u64], chunk: &[u64], values: &mut [u16], missing: u64) -> (ChunkTable, Arc<Vec<u8>>) {
    let array = Array {
        dtype: DType::U16,
        order: ByteOrder::Little,
        shape: shape.to_vec(),
        stored: shape.to_vec(),
        chunk: chunk.to_vec(),
        edges: Edges::Whole,
        filters: Vec::<Filter>::new(),
        fill: vec![7, 0],
    };
    let (mut file, mut locations) = (Vec::new(), Vec::new());
    for number in 0..array.chunks() {
        let extent = array.extent(number).unwrap();
        let offset = file.len() as u64;
        let is_stored = number % missing != 0;
        for n in 0..extent.held.iter().product::<u64>() {
            let (mut left, mut at, mut step, mut inside) = (n, 0, 1, true);
            for axis in (0..shape.len()).rev() {
                let index = left % extent.held[axis];
                left /= extent.held[axis];
                inside &= index < extent.clipped[axis];
                at += (extent.origin[axis] + index) * step;
                step *= shape[axis];
            }
            if inside && !is_stored {
                values[at as usize] = 7;
            }
            let value = if inside { values[at as usize] } else { 0xffff };
            if is_stored {
                file.extend_from_slice(&value.to_le_bytes());
            }
        }
        if is_stored {
            let bytes = file.len() as u64 - offset;
            locations.push(ChunkLocation { chunk: number, file: 0, offset, bytes, mask: 0 });
        }
    }
    let files = vec![FileRef { name: String::new(), length: file.len() as u64 }];
    (ChunkTable { array, files, locations: ChunkLocations::Listed(locations) }, Arc::new(file))
}

proptest! {
    #[test]
    fn joined_data_without_an_index_is_what_numpy_concatenates(
        shape in prop::collection::vec(1u64..70, 1..4),
        axis in 0usize..3,
        lengths in prop::collection::vec(0u64..60, 1..5),
    ) {
        let axis = axis % shape.len();
        let mut parts = Vec::new();
        for length in &lengths {
            let mut of_part = shape.clone();
            of_part[axis] = *length;
            let values = numbers(&of_part, parts.len() as u16 * 10_000);
            parts.push((of_part, values));
        }
        let (tables, files): (Vec<_>, Vec<_>) = parts.iter().map(|(shape, values)| plain(shape, values)).unzip();
        match join_tables(&tables, axis) {
            Ok(joined) => prop_assert_eq!(elements(&joined, &files), concatenated(&parts, axis)),
            Err(FormatError::Table { why }) => prop_assert!(why.contains("good size"), "{}", why),
            Err(error) => prop_assert!(false, "{}", error),
        }
    }

    #[test]
    fn joined_chunks_are_what_numpy_concatenates(
        shape in prop::collection::vec(1u64..9, 1..4),
        chunk in prop::collection::vec(1u64..5, 3),
        axis in 0usize..3,
        chunks in prop::collection::vec(1u64..4, 1..4),
        over in 0u64..4,
        missing in 1u64..5,
    ) {
        let axis = axis % shape.len();
        let chunk = &chunk[..shape.len()];
        let mut parts = Vec::new();
        let (mut tables, mut files) = (Vec::new(), Vec::new());
        for (n, count) in chunks.iter().enumerate() {
            let mut of_part = shape.clone();
            // Only the last file may end within a chunk.
            of_part[axis] = count * chunk[axis] + if n + 1 == chunks.len() { over } else { 0 };
            let mut values = numbers(&of_part, n as u16 * 1000);
            let (table, file) = indexed(&of_part, chunk, &mut values, missing);
            parts.push((of_part, values));
            tables.push(table);
            files.push(file);
        }
        let joined = join_tables(&tables, axis).unwrap();
        prop_assert_eq!(elements(&joined, &files), concatenated(&parts, axis));
        prop_assert_eq!(joined.stored_bytes(), tables.iter().map(ChunkTable::stored_bytes).sum::<u64>());
    }
}

#[test]
fn months_of_days_have_chunks_of_days() {
    let months = [31, 28, 31, 30].map(|days| plain(&[days, 90, 180], &numbers(&[days, 90, 180], 0)).0);
    let joined = join_tables(&months, 0).unwrap();
    assert_eq!(
        (joined.array.shape.as_slice(), joined.array.chunk.as_slice()),
        ([120, 90, 180].as_slice(), [1, 90, 180].as_slice())
    );
    // Years of twelve months keep chunks of several months.
    let years = [12, 12, 7].map(|months| plain(&[months, 90, 180], &numbers(&[months, 90, 180], 0)).0);
    assert_eq!(join_tables(&years, 0).unwrap().array.chunk, [6, 90, 180]);
}

#[test]
fn tables_that_do_not_continue_one_another_are_refused() {
    let values = |shape: &[u64]| numbers(shape, 0);
    let why = |tables: &[ChunkTable], axis| match join_tables(tables, axis) {
        Err(FormatError::Table { why }) => why,
        other => format!("{other:?}"),
    };
    assert!(why(&[], 0).contains("no file"));
    let one = |shape: &[u64]| plain(shape, &values(shape)).0;
    assert!(why(&[one(&[2, 3])], 2).contains("no such axis"));
    assert!(why(&[one(&[2, 3]), one(&[2, 4])], 0).contains("different"));
    let of_order =
        open_raw(little(&values(&[6])), DType::U16, ByteOrder::Big, &[6], 0).unwrap().table("data").unwrap();
    assert!(why(&[one(&[6]), of_order], 0).contains("different"));
    // Series of 365 and 366 elements would have chunks of one element.
    assert!(why(&[one(&[365]), one(&[366]), one(&[365])], 0).contains("good size"));
    let chunked = |length: u64| indexed(&[length], &[4], &mut values(&[length]), 99).0;
    assert!(why(&[chunked(6), chunked(8)], 0).contains("no grid"));
    let mut short = chunked(8);
    short.array.stored = vec![4];
    assert!(why(&[short, chunked(8)], 0).contains("stores less"));
}
