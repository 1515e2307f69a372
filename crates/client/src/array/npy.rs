//! Arrays as NumPy's `.npy` files, version 1.0.

use gristmill_kernel::{Array, ArrayType, DType};

/// Returns the bytes of the file.
pub(super) fn file(array: &Array) -> Vec<u8> {
    let mut out = header(array.dtype, &array.shape);
    out.extend_from_slice(&array.data);
    out
}

/// Returns the header of the file. The elements after it are little-endian and in C order.
pub(super) fn header(dtype: ArrayType, shape: &[u64]) -> Vec<u8> {
    let descr = match dtype {
        ArrayType::Bool => "|b1",
        ArrayType::Number(dtype) => descr(dtype),
    };
    let lengths: Vec<String> = shape.iter().map(u64::to_string).collect();
    // A tuple of one has a comma.
    let shape = if lengths.len() == 1 { format!("{},", lengths[0]) } else { lengths.join(", ") };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    // Magic, version and length are 10 bytes. The whole header is a multiple of 64 bytes and ends with a newline.
    let padded = (10 + header.len() + 1).next_multiple_of(64) - 10;
    header.push_str(&" ".repeat(padded - header.len() - 1));
    header.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    // The header of 32 axes has some hundred bytes, so its length fits.
    out.extend_from_slice(&(header.len() as u16).to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out
}

const fn descr(dtype: DType) -> &'static str {
    match dtype {
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
    }
}
