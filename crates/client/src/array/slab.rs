//! The elements of a hyperslab, read and decoded by the client.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use gristmill_array::{Range, Selected, Selection};
use gristmill_format::{Array, ChunkTable, Dataset, Decoder, FoundChunk, MAX_CHUNKS};
use gristmill_runtime::Control;
use gristmill_wire::grid;

use super::axis_names;
use crate::ClientError;

/// Most bytes of a hyperslab.
pub const MAX_SLAB_BYTES: u64 = 16 << 30;

/// Chunks that are read at once. Over a network each chunk is a request and its answer.
const READERS: usize = 8;

/// A hyperslab of a variable.
pub struct Slab {
    /// The elements as stored, in C order, little-endian.
    pub bytes: Vec<u8>,
    /// Lengths of the axes, without axes that were given a single index.
    pub shape: Vec<u64>,
    /// Bytes of the stored chunks that were read.
    pub bytes_read: u64,
}

/// Reads a hyperslab. Each chunk with some of its elements is read once. `stop` shows the stored bytes that were read,
/// and their total. If it is stopped, the elements are not complete.
///
/// # Errors
/// Returns an error if the variable does not exist, if the selection does not fit it, if the hyperslab has more than
/// [`MAX_SLAB_BYTES`], or if a chunk cannot be read or decoded.
pub fn read_slab(
    dataset: &Dataset,
    variable: &str,
    selection: &Selection,
    stop: &Control,
) -> Result<Slab, ClientError> {
    let (of, table) = (dataset.variable(variable)?, dataset.table(variable)?);
    let grid = grid(&table.array).map_err(|error| ClientError::Usage(error.to_string()))?;
    let selected = selection.resolve(&grid).map_err(|error| axis_names::with_dimension(of, error))?;
    let size = table.array.dtype.size() as u64;
    let bytes = selected.axes.iter().try_fold(size, |all, range| all.checked_mul(range.count));
    let room = bytes.filter(|bytes| *bytes <= MAX_SLAB_BYTES).and_then(|bytes| usize::try_from(bytes).ok());
    let mut out = Vec::new();
    let Some(room) = room.filter(|room| out.try_reserve_exact(*room).is_ok()) else {
        return Err(ClientError::Usage(format!(
            "{} elements of {variable} do not fit into memory; select less, or reduce them where they are stored",
            selected.elements()
        )));
    };
    out.resize(room, 0);
    let numbers: Vec<u64> = selected.chunks(&grid).take(MAX_CHUNKS + 1).collect();
    if numbers.len() > MAX_CHUNKS {
        return Err(ClientError::Usage(format!(
            "more than {MAX_CHUNKS} chunks of {variable} are needed; select less"
        )));
    }
    let bytes_read = numbers.iter().map(|number| stored(&table, *number)).sum();
    stop.begin_pass(0, bytes_read);
    read_chunks(dataset, &table, &selected, &numbers, stop, &Mutex::new(&mut out))?;
    Ok(Slab { bytes: out, shape: selected.shape(), bytes_read })
}

fn stored(table: &ChunkTable, number: u64) -> u64 {
    match table.find(number) {
        Some(FoundChunk::At(place)) => place.bytes,
        Some(FoundChunk::Inline(bytes)) => bytes.len() as u64,
        _ => 0,
    }
}

/// Reads chunks, several at once, and copies the selected elements of each to their places.
fn read_chunks(
    dataset: &Dataset,
    table: &ChunkTable,
    selected: &Selected,
    numbers: &[u64],
    stop: &Control,
    out: &Mutex<&mut Vec<u8>>,
) -> Result<(), ClientError> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let reader = || -> Result<(), ClientError> {
        let (mut decoder, mut chunk) = (Decoder::new(&table.array)?, Vec::new());
        while !stop.stopped() && !failed.load(Ordering::Relaxed) {
            let Some(number) = numbers.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            dataset.read_chunk(table, *number, &mut decoder, &mut chunk)?;
            let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
            place(&table.array, selected, *number, &chunk, &mut out);
            stop.folded(stored(table, *number));
        }
        Ok(())
    };
    let reader = || reader().inspect_err(|_| failed.store(true, Ordering::Relaxed));
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..READERS.min(numbers.len())).map(|_| scope.spawn(reader)).collect();
        let mut result = reader();
        for other in others {
            let ended = other.join().unwrap_or_else(|_| Err(ClientError::Usage("a reader panicked".into())));
            result = result.and(ended);
        }
        result
    })
}

/// The selected elements of a chunk along an axis: the first in the chunk, their distance in it, the first in the slab,
/// and their number.
struct Span {
    from: usize,
    step: usize,
    to: usize,
    count: usize,
}

/// Copies the selected elements of a chunk, row by row along the last axis.
fn place(array: &Array, selected: &Selected, number: u64, chunk: &[u8], out: &mut [u8]) {
    let Some(extent) = array.extent(number) else { return };
    let size = array.dtype.size();
    let span = |(range, at): (&Range, usize)| {
        let (to, from, count) = range.within(extent.origin[at], extent.clipped[at]);
        Span { from: from as usize, step: range.step as usize, to: to as usize, count: count as usize }
    };
    let mut spans: Vec<Span> = selected.axes.iter().zip(0..).map(span).collect();
    let held: Vec<usize> = extent.held.iter().map(|length| *length as usize).collect();
    let shape: Vec<usize> = selected.axes.iter().map(|range| range.count as usize).collect();
    if spans.iter().any(|span| span.count == 0) {
        return;
    }
    let last = spans.pop().unwrap_or(Span { from: 0, step: 1, to: 0, count: 1 });
    let (held_row, row) = (held.last().copied().unwrap_or(1), shape.last().copied().unwrap_or(1));
    let mut at = vec![0usize; spans.len()];
    loop {
        let (mut from, mut to) = (0, 0);
        for (axis, span) in spans.iter().enumerate() {
            from = from * held[axis] + span.from + at[axis] * span.step;
            to = to * shape[axis] + span.to + at[axis];
        }
        let (from, to) = (from * held_row + last.from, to * row + last.to);
        copy_row(chunk, from, last.step, out, to, last.count, size);
        let turned = (0..at.len()).rev().find(|axis| {
            at[*axis] += 1;
            let more = at[*axis] < spans[*axis].count;
            if !more {
                at[*axis] = 0;
            }
            more
        });
        if turned.is_none() {
            break;
        }
    }
}

/// Copies elements that are `step` apart to contiguous elements.
fn copy_row(chunk: &[u8], from: usize, step: usize, out: &mut [u8], to: usize, count: usize, size: usize) {
    let Some(row) = out.get_mut(to * size..(to + count) * size) else { return };
    if step == 1 {
        if let Some(taken) = chunk.get(from * size..(from + count) * size) {
            row.copy_from_slice(taken);
        }
        return;
    }
    for (i, element) in row.chunks_exact_mut(size).enumerate() {
        let at = (from + i * step) * size;
        if let Some(taken) = chunk.get(at..at + size) {
            element.copy_from_slice(taken);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use gristmill_format::open_path;

    use super::*;

    fn npy(dir: &std::path::Path, shape: &[u64]) -> std::path::PathBuf {
        let dims: String = shape.iter().map(|n| format!("{n}, ")).collect();
        let mut head = format!("{{'descr': '<i4', 'fortran_order': False, 'shape': ({dims}), }}");
        let whole = (10 + head.len() + 1).next_multiple_of(64);
        head.push_str(&" ".repeat(whole - 11 - head.len()));
        head.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend_from_slice(&(head.len() as u16).to_le_bytes());
        bytes.extend_from_slice(head.as_bytes());
        let elements: u64 = shape.iter().product();
        bytes.extend((0..elements as i32).flat_map(i32::to_le_bytes));
        let path = dir.join("data.npy");
        std::fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn a_hyperslab_has_the_elements_that_python_takes() {
        let dir = tempfile::tempdir().unwrap();
        // More than one chunk of a MiB.
        let (rows, columns, depth) = (700i32, 30i32, 40i32);
        let dataset = open_path(&npy(dir.path(), &[700, 30, 40])).unwrap();
        let name = dataset.variables[0].path.clone();
        let read = |text: &str| {
            let slab = read_slab(&dataset, &name, &text.parse().unwrap(), &Control::new()).unwrap();
            let values: Vec<i32> =
                slab.bytes.chunks_exact(4).map(|one| i32::from_le_bytes(one.try_into().unwrap())).collect();
            (slab.shape, values)
        };
        let (shape, values) = read("5:690:171,3:9:2,-1");
        assert_eq!(shape, [5, 3]);
        let wanted: Vec<i32> = (5..690)
            .step_by(171)
            .flat_map(|t| (3..9).step_by(2).map(move |y| (t * columns + y) * depth + depth - 1))
            .collect();
        assert_eq!(values, wanted);
        let (shape, values) = read("");
        assert_eq!((shape, values), (vec![700, 30, 40], (0..rows * columns * depth).collect()));
        assert_eq!(read("3:3"), (vec![0, 30, 40], vec![]));
    }
}
