//! `gristmill get --var`: one variable of a scientific file as `.npy`.

use std::io::{self, Write};
use std::path::Path;

use gristmill_client::{ClientError, write_whole};
use gristmill_format::{Array, ChunkTable, Dataset, Decoder, FormatError, open_path};
use gristmill_kernel::DType;
use gristmill_runtime::Control;

use crate::commands::DASH;
use crate::commands::variables::failed;
use crate::error::CliError;

/// Most bytes that are held at once: all chunks along the first axis that begin at the same place.
const MAX_SLAB: u64 = 4 << 30;

/// Permission bits of the file that is made, before the process's mask is taken off.
const MODE: u32 = 0o644;

/// Writes a variable of a file.
pub fn get(path: &Path, name: &str, destination: &Path, stop: &Control) -> Result<(), CliError> {
    let dataset = open_path(path).map_err(failed(path))?;
    let table = dataset.table(name).map_err(failed(path))?;
    if destination == Path::new(DASH) {
        let mut out = io::stdout().lock();
        write(&dataset, &table, stop, &mut out).map_err(|error| told(error, path, destination))?;
        return out.flush().map_err(CliError::Output);
    }
    let mut failure = None;
    let done = write_whole(destination, MODE, stop, &mut |file| {
        let mut out = io::BufWriter::new(file);
        let written =
            write(&dataset, &table, stop, &mut out).and_then(|()| out.flush().map_err(Failure::Write));
        written.map_err(|error| {
            let stopped = ClientError::Stopped { path: destination.to_owned() };
            failure = Some(error);
            stopped
        })
    });
    match failure {
        Some(error) => Err(told(error, path, destination)),
        None => Ok(done?),
    }
}

enum Failure {
    Format(FormatError),
    Write(io::Error),
    Stopped,
}

fn told(failure: Failure, path: &Path, destination: &Path) -> CliError {
    match failure {
        Failure::Format(error) => failed(path)(error),
        Failure::Write(error) if destination == Path::new(DASH) => CliError::Output(error),
        Failure::Write(source) => CliError::File { verb: "write", path: destination.to_owned(), source },
        Failure::Stopped => ClientError::Stopped { path: destination.to_owned() }.into(),
    }
}

/// Writes all elements in C order, little-endian: chunk after chunk into a slab of the array, then the slab.
fn write(dataset: &Dataset, table: &ChunkTable, stop: &Control, out: &mut dyn Write) -> Result<(), Failure> {
    let array = &table.array;
    out.write_all(&header(array)).map_err(Failure::Write)?;
    let size = array.dtype.size() as u64;
    let inner = array.shape.iter().skip(1).fold(size, |all, length| all.saturating_mul(*length));
    let rows = array.chunk.first().copied().unwrap_or(1);
    let all_rows = array.shape.first().copied().unwrap_or(1);
    let in_slab: u64 = array.grid().iter().skip(1).product();
    let bytes = rows.min(all_rows).saturating_mul(inner);
    if bytes > MAX_SLAB {
        let what = "bytes of the chunks along the first axis".to_owned();
        return Err(Failure::Format(FormatError::Limit { what, found: bytes, max: MAX_SLAB }));
    }
    let mut decoder = Decoder::new(array).map_err(Failure::Format)?;
    let (mut slab, mut chunk) = (Vec::new(), Vec::new());
    for number in 0..array.chunks() {
        if stop.stopped() {
            return Err(Failure::Stopped);
        }
        let Some(extent) = array.extent(number) else { break };
        if number.is_multiple_of(in_slab) {
            let rows = extent.clipped.first().copied().unwrap_or(1);
            slab.clear();
            slab.resize(usize::try_from(rows * inner).unwrap_or(usize::MAX), 0);
        }
        dataset.read_chunk(table, number, &mut decoder, &mut chunk).map_err(Failure::Format)?;
        place(array, &extent, &chunk, &mut slab);
        if (number + 1).is_multiple_of(in_slab) {
            out.write_all(&slab).map_err(Failure::Write)?;
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

/// NumPy's header, version 1, which ends at a multiple of 64 bytes.
fn header(array: &Array) -> Vec<u8> {
    let descr = match array.dtype {
        DType::I8 => "|i1",
        DType::U8 => "|u1",
        DType::I16 => "<i2",
        DType::U16 => "<u2",
        DType::I32 => "<i4",
        DType::U32 => "<u4",
        DType::I64 => "<i8",
        DType::U64 => "<u8",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
    };
    let shape: String = array.shape.iter().map(|length| format!("{length}, ")).collect();
    let mut text =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}", shape.trim_end());
    let whole = (10 + text.len() + 1).next_multiple_of(64);
    text.push_str(&" ".repeat(whole - 11 - text.len()));
    text.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out
}
