//! Encoding of arrays.

use gristmill_kernel::{ByteOrder, DType};

use super::number::{Reader, bad, put, put_bytes};
use crate::array::{Array, Edges};
use crate::filter::{Column, Filter};
use crate::{FormatError, MAX_DIMENSIONS, MAX_FILTER_PARAMETERS, MAX_FILTERS};

pub fn put_array(out: &mut Vec<u8>, array: &Array) {
    let dtype = DType::ALL.iter().position(|dtype| *dtype == array.dtype).unwrap_or(usize::MAX);
    out.push(dtype as u8);
    out.push(u8::from(array.order == ByteOrder::Big));
    out.push(u8::from(array.edges == Edges::Clipped));
    put(out, array.shape.len() as u64);
    for lengths in [&array.shape, &array.chunk, &array.stored] {
        lengths.iter().for_each(|length| put(out, *length));
    }
    put(out, array.filters.len() as u64);
    array.filters.iter().for_each(|filter| put_filter(out, filter));
    out.extend_from_slice(&array.fill);
}

pub fn array(from: &mut Reader<'_>) -> Result<Array, FormatError> {
    let dtype = *DType::ALL.get(usize::from(from.u8()?)).ok_or_else(|| bad("it has an unknown type"))?;
    let order = if flag(from)? { ByteOrder::Big } else { ByteOrder::Little };
    let edges = if flag(from)? { Edges::Clipped } else { Edges::Whole };
    let axes = from.count(3)?;
    FormatError::limit("dimensions", axes as u64, MAX_DIMENSIONS as u64)?;
    let mut lengths = || (0..axes).map(|_| from.number()).collect::<Result<Vec<u64>, FormatError>>();
    let (shape, chunk, stored) = (lengths()?, lengths()?, lengths()?);
    let filters = from.count(1)?;
    FormatError::limit("filters", filters as u64, MAX_FILTERS as u64)?;
    let filters = (0..filters).map(|_| filter(from)).collect::<Result<_, _>>()?;
    let fill = from.exactly(dtype.size())?.to_vec();
    let array = Array { dtype, order, shape, stored, chunk, edges, filters, fill };
    array.check()?;
    Ok(array)
}

fn flag(from: &mut Reader<'_>) -> Result<bool, FormatError> {
    match from.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(bad("it has an unknown flag")),
    }
}

fn put_filter(out: &mut Vec<u8>, filter: &Filter) {
    match filter {
        Filter::Zlib => out.push(0),
        Filter::Gzip => out.push(1),
        Filter::Zstd => out.push(2),
        Filter::Lz4Hdf5 => out.push(3),
        Filter::Lz4Numcodecs => out.push(4),
        Filter::Lzf => out.push(5),
        Filter::Blosc => out.push(6),
        Filter::Fletcher32 => out.push(7),
        Filter::Crc32c => out.push(8),
        Filter::Shuffle { size } => {
            out.push(9);
            put(out, u64::from(*size));
        }
        Filter::Transpose(axes) => {
            out.push(10);
            put_bytes(out, axes);
        }
        Filter::Szip(parameters) => {
            out.push(11);
            put(out, parameters.len() as u64);
            parameters.iter().for_each(|parameter| put(out, u64::from(*parameter)));
        }
        Filter::Blosc2 => out.push(13),
        Filter::Column(column) => {
            out.extend_from_slice(&[12, column.delimiter]);
            put(out, u64::from(column.index));
        }
    }
}

fn filter(from: &mut Reader<'_>) -> Result<Filter, FormatError> {
    Ok(match from.u8()? {
        0 => Filter::Zlib,
        1 => Filter::Gzip,
        2 => Filter::Zstd,
        3 => Filter::Lz4Hdf5,
        4 => Filter::Lz4Numcodecs,
        5 => Filter::Lzf,
        6 => Filter::Blosc,
        7 => Filter::Fletcher32,
        8 => Filter::Crc32c,
        9 => Filter::Shuffle { size: from.u32()? },
        10 => Filter::Transpose(from.bytes()?.to_vec()),
        11 => {
            let count = from.count(1)?;
            FormatError::limit("parameters of a filter", count as u64, MAX_FILTER_PARAMETERS as u64)?;
            Filter::Szip((0..count).map(|_| from.u32()).collect::<Result<_, _>>()?)
        }
        12 => Filter::Column(Column { delimiter: from.u8()?, index: from.u32()? }),
        13 => Filter::Blosc2,
        _ => return Err(bad("it has an unknown filter")),
    })
}
