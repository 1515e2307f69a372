//! A whole variable as `.npy`.

use std::io::{self, Write};

use gristmill_format::{Array, Dataset, Decoder, FormatError};
use gristmill_kernel::ArrayType;
use gristmill_runtime::Control;

use super::npy;

/// Most bytes of a slab: the chunks that have the same index along the first axis.
const MAX_SLAB: u64 = 4 << 30;

/// Why a variable was not written.
#[derive(Debug, thiserror::Error)]
pub enum VariableError {
    /// The variable does not exist, or cannot be read.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// The request was stopped.
    #[error("stopped before the variable was whole")]
    Stopped,
}

/// Writes a variable as `.npy`. Elements are as stored, in C order and little-endian. The chunks of one slab of the
/// array are decoded into memory, then the slab is written.
///
/// # Errors
/// Returns [`VariableError::Format`] if the variable does not exist, cannot be read, or has slabs of more than 4 GiB,
/// [`VariableError::Write`] if `out` fails, and [`VariableError::Stopped`] if the request was stopped.
pub fn write_variable(
    dataset: &Dataset,
    name: &str,
    stop: &Control,
    out: &mut dyn Write,
) -> Result<(), VariableError> {
    let table = &dataset.table(name)?;
    let array = &table.array;
    out.write_all(&npy::header(ArrayType::Number(array.dtype), &array.shape))?;
    let size = array.dtype.size() as u64;
    let inner = array.shape.iter().skip(1).fold(size, |all, length| all.saturating_mul(*length));
    let rows = array.chunk.first().copied().unwrap_or(1);
    let all_rows = array.shape.first().copied().unwrap_or(1);
    let in_slab: u64 = array.grid().iter().skip(1).product();
    let bytes = rows.min(all_rows).saturating_mul(inner);
    if bytes > MAX_SLAB {
        let what = "bytes of the chunks along the first axis".to_owned();
        return Err(FormatError::Limit { what, found: bytes, max: MAX_SLAB }.into());
    }
    let mut decoder = Decoder::new(array)?;
    let (mut slab, mut chunk) = (Vec::new(), Vec::new());
    for number in 0..array.chunks() {
        if stop.stopped() {
            return Err(VariableError::Stopped);
        }
        let Some(extent) = array.extent(number) else { break };
        if number.is_multiple_of(in_slab) {
            let rows = extent.clipped.first().copied().unwrap_or(1);
            slab.clear();
            slab.resize(usize::try_from(rows * inner).unwrap_or(usize::MAX), 0);
        }
        dataset.read_chunk(table, number, &mut decoder, &mut chunk)?;
        place(array, &extent, &chunk, &mut slab);
        if (number + 1).is_multiple_of(in_slab) {
            out.write_all(&slab)?;
        }
    }
    Ok(())
}

/// Copies the part of a chunk that is inside the array, one run along the last axis after the other.
fn place(array: &Array, extent: &gristmill_format::Extent, chunk: &[u8], slab: &mut [u8]) {
    let size = array.dtype.size();
    let axes = array.shape.len();
    let lengths = |all: &[u64]| all.iter().map(|length| *length as usize).collect::<Vec<usize>>();
    let (clipped, held, shape) = (lengths(&extent.clipped), lengths(&extent.held), lengths(&array.shape));
    let mut origin = lengths(&extent.origin);
    // The slab begins where its chunks do.
    origin.iter_mut().take(1).for_each(|start| *start = 0);
    let run = clipped.last().copied().unwrap_or(1) * size;
    let runs: usize = clipped.iter().take(axes.saturating_sub(1)).product();
    let mut at = vec![0usize; axes];
    for _ in 0..runs {
        let (mut from, mut to) = (0, 0);
        for axis in 0..axes {
            from = from * held[axis] + at[axis];
            to = to * shape[axis] + at[axis] + origin[axis];
        }
        let (from, to) = (from * size, to * size);
        if let (Some(from), Some(to)) = (chunk.get(from..from + run), slab.get_mut(to..to + run)) {
            to.copy_from_slice(from);
        }
        for axis in (0..axes.saturating_sub(1)).rev() {
            at[axis] += 1;
            if at[axis] < clipped[axis] {
                break;
            }
            at[axis] = 0;
        }
    }
}
