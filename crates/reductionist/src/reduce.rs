//! Reductions of one chunk.

use std::borrow::Cow;
use std::ops::Range;

use gristmill_format::{Array, Decoder, Edges, Filter as Codec};
use gristmill_kernel::ByteOrder;

use crate::cells::{Cells, Gathered};
use crate::element::Element;
use crate::missing::MissingValues;
use crate::request::{Compression, DataType, Endian, Order};
use crate::selection::Positions;
use crate::{Operation, Reduced, Request, RequestError};

/// Reduces the elements of a chunk from its stored bytes.
///
/// # Errors
/// The error is [`RequestError::Bytes`] if the bytes are not those of the chunk, and [`RequestError::Invalid`] if there is no shape and
/// the bytes are not whole elements.
pub fn reduce(request: &Request, operation: Operation, stored: &[u8]) -> Result<Reduced, RequestError> {
    let shape = request.shape(stored.len())?;
    let elements = decode(request, &shape, stored)?;
    match request.dtype() {
        DataType::Int32 => typed::<i32>(request, operation, &shape, &elements),
        DataType::Int64 => typed::<i64>(request, operation, &shape, &elements),
        DataType::Uint32 => typed::<u32>(request, operation, &shape, &elements),
        DataType::Uint64 => typed::<u64>(request, operation, &shape, &elements),
        DataType::Float32 => typed::<f32>(request, operation, &shape, &elements),
        DataType::Float64 => typed::<f64>(request, operation, &shape, &elements),
    }
}

/// Most elements of a row that are reduced at once. They stay in the caches of the processor.
const BLOCK: u64 = 4_096;

/// The elements of the chunk, little-endian, in their stored order.
fn decode<'a>(request: &Request, shape: &[u64], stored: &'a [u8]) -> Result<Cow<'a, [u8]>, RequestError> {
    let length = shape.iter().fold(1u64, |all, length| all.saturating_mul(*length));
    if length == 0 {
        return Ok(Cow::Borrowed(&[]));
    }
    let dtype = request.dtype().dtype();
    let is_plain = request.compression.is_none() && request.filters.iter().flatten().next().is_none();
    let is_little = request.byte_order.unwrap_or_default() == Endian::Little;
    if is_plain && is_little && length.checked_mul(dtype.size() as u64) == Some(stored.len() as u64) {
        return Ok(Cow::Borrowed(stored));
    }
    let shuffles =
        request.filters.iter().flatten().map(|filter| Codec::Shuffle { size: filter.element_size() });
    // The writer compressed last.
    let compression = request.compression.map(|compression| match compression {
        Compression::Blosc2 => Codec::Blosc2,
        Compression::Gzip => Codec::Gzip,
        Compression::Zlib => Codec::Zlib,
    });
    let array = Array {
        dtype,
        order: match request.byte_order.unwrap_or_default() {
            Endian::Big => ByteOrder::Big,
            Endian::Little => ByteOrder::Little,
        },
        shape: vec![length],
        stored: vec![length],
        chunk: vec![length],
        edges: Edges::Whole,
        filters: shuffles.chain(compression).collect(),
        fill: vec![0; dtype.size()],
    };
    let mut elements = Vec::new();
    Decoder::new(&array)?.decode(0, stored, 0, &mut elements)?;
    Ok(Cow::Owned(elements))
}

/// The selected elements of a chunk. `strides` are in elements.
struct Selected<'a, T> {
    bytes: &'a [u8],
    strides: Vec<usize>,
    positions: Vec<Positions>,
    row: Vec<T>,
}

impl<'a, T: Element> Selected<'a, T> {
    fn new(bytes: &'a [u8], shape: &[u64], order: Order, positions: Vec<Positions>) -> Selected<'a, T> {
        let mut strides = vec![0; shape.len()];
        let mut stride = 1usize;
        let mut set = |axis: usize| {
            strides[axis] = stride;
            // The whole chunk is in memory.
            stride = stride.saturating_mul(shape[axis] as usize);
        };
        match order {
            Order::C => (0..shape.len()).rev().for_each(&mut set),
            Order::F => (0..shape.len()).for_each(&mut set),
        }
        Selected { bytes, strides, positions, row: Vec::new() }
    }

    fn shape(&self) -> Vec<u64> {
        self.positions.iter().map(|positions| positions.count).collect()
    }

    /// Gives the elements along the `last` axis to `each`, for all places along the other axes, in the order of `axes`, with these places.
    /// There are at most `most` elements at once, so a row may come in several parts.
    fn rows(&mut self, axes: &[usize], last: usize, most: u64, mut each: impl FnMut(&[u64], &[T])) {
        if self.positions.iter().any(|positions| positions.count == 0) {
            return;
        }
        let mut at = vec![0u64; self.positions.len()];
        loop {
            let count = self.positions[last].count;
            let mut done = 0;
            while done < count {
                let end = count.min(done.saturating_add(most));
                self.fill_row(&at, last, done..end);
                each(&at, &self.row);
                done = end;
            }
            // Counts the places of all axes but the last one up, the latest of `axes` fastest.
            let mut next = axes.iter().rev().filter(|axis| **axis != last);
            loop {
                let Some(axis) = next.next() else { return };
                at[*axis] += 1;
                if at[*axis] < self.positions[*axis].count {
                    break;
                }
                at[*axis] = 0;
            }
        }
    }

    fn fill_row(&mut self, at: &[u64], last: usize, numbers: Range<u64>) {
        let size = size_of::<T>();
        let others =
            at.iter().zip(&self.positions).zip(&self.strides).enumerate().filter(|(axis, _)| *axis != last);
        let begin: usize =
            others.map(|(_, ((at, positions), stride))| positions.at(*at) as usize * stride).sum();
        let (along, stride) = (self.positions[last], self.strides[last]);
        let from = |number: u64| (begin + along.at(number) as usize * stride) * size;
        self.row.clear();
        if stride == 1 && along.step == 1 {
            let first = from(numbers.start);
            let row = self.bytes.get(first..first + (numbers.end - numbers.start) as usize * size);
            T::read_all(row.unwrap_or_default(), &mut self.row);
            return;
        }
        let element = |number: u64| self.bytes.get(from(number)..from(number) + size).and_then(T::read);
        self.row.reserve((numbers.end - numbers.start) as usize);
        self.row.extend(numbers.filter_map(element));
    }
}

fn typed<T: Element>(
    request: &Request,
    operation: Operation,
    shape: &[u64],
    elements: &[u8],
) -> Result<Reduced, RequestError> {
    let missing = request.missing::<T>()?;
    let mut selected = Selected::<T>::new(elements, shape, request.order(), request.positions(shape));
    let mut reduced = request.reduced();
    if operation == Operation::Select {
        return Ok(select(request, &mut selected, &missing));
    }
    // Without an axis to reduce, each element is a cell, in the stored order.
    let axes: Vec<usize> = match (&reduced, request.order()) {
        (Some(none), Order::F) if none.is_empty() => (0..shape.len()).rev().collect(),
        _ => (0..shape.len()).collect(),
    };
    let reduced_axes = reduced.take().unwrap_or_else(|| (0..shape.len()).collect());
    let lengths = selected.shape();
    let kept: Vec<usize> = axes.iter().copied().filter(|axis| !reduced_axes.contains(axis)).collect();
    // Distance of the cells of neighbours along each axis; 0 along a reduced one.
    let mut distances = vec![0usize; shape.len()];
    let cells = kept.iter().rev().fold(1usize, |cells, axis| {
        distances[*axis] = cells;
        cells.saturating_mul(lengths[*axis] as usize)
    });
    let gathered = match operation {
        Operation::Count | Operation::Select => Gathered::Nothing,
        Operation::Sum => Gathered::Sums(T::sums(cells)),
        Operation::Min => Gathered::Least(vec![T::BEYOND.1; cells]),
        Operation::Max => Gathered::Most(vec![T::BEYOND.0; cells]),
    };
    let mut all = Cells::new(gathered, cells, missing);
    let last = axes.last().copied().unwrap_or(0);
    let is_reduced = reduced_axes.contains(&last);
    // A row that is not reduced has a cell for each element.
    let most = if is_reduced { BLOCK } else { u64::MAX };
    if !(kept.is_empty() && lengths == shape && all.add_chunk(elements)) {
        selected.rows(&axes, last, most, |at, row| {
            let places = at.iter().zip(&distances).enumerate().filter(|(axis, _)| *axis != last);
            let cell = places.map(|(_, (at, distance))| *at as usize * distance).sum();
            if is_reduced { all.run(cell, row) } else { all.row(cell, row) }
        });
    }
    let (bytes, count) = all.finish();
    let dtype = if operation == Operation::Count { DataType::Int64 } else { request.dtype() };
    let mut kept_axes = kept;
    kept_axes.sort_unstable();
    let shape = kept_axes.into_iter().map(|axis| lengths[axis]).collect();
    Ok(Reduced::new(request, bytes, dtype, shape, count))
}

/// The selected elements, in the order in which they are stored.
fn select<T: Element>(
    request: &Request,
    selected: &mut Selected<'_, T>,
    missing: &MissingValues<T>,
) -> Reduced {
    let shape = selected.shape();
    let mut axes: Vec<usize> = (0..shape.len()).collect();
    if request.order() == Order::F {
        axes.reverse();
    }
    let (mut bytes, mut count) = (Vec::new(), 0);
    let last = axes.last().copied().unwrap_or(0);
    selected.rows(&axes, last, BLOCK, |_, row| {
        count += row.iter().filter(|element| !missing.has(**element)).count() as i64;
        row.iter().for_each(|element| element.write(&mut bytes));
    });
    Reduced::new(request, bytes, request.dtype(), shape, vec![count])
}
