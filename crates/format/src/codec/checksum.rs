//! Checksums after the data. Each function checks one and returns the number of bytes before it.

use hdf5_reader::checksum::fletcher32 as fletcher;

use crate::FormatError;

fn split(from: &[u8]) -> Result<(&[u8], [u8; 4]), FormatError> {
    let (data, sum) =
        from.split_last_chunk::<4>().ok_or_else(|| FormatError::chunk("it is shorter than its checksum"))?;
    Ok((data, *sum))
}

fn wrong(name: &str) -> FormatError {
    FormatError::chunk(format!("its {name} checksum does not agree"))
}

/// HDF5's Fletcher32. Old versions of HDF5 swapped the bytes of both halves on some machines; both are accepted, as by
/// HDF5 itself.
pub fn fletcher32(from: &[u8]) -> Result<usize, FormatError> {
    let (data, [a, b, c, d]) = split(from)?;
    let sum = fletcher(data);
    if sum != u32::from_le_bytes([a, b, c, d]) && sum != u32::from_le_bytes([b, a, d, c]) {
        return Err(wrong("fletcher32"));
    }
    Ok(data.len())
}

/// CRC32C, little-endian.
pub fn crc32c(from: &[u8]) -> Result<usize, FormatError> {
    let (data, sum) = split(from)?;
    if ::crc32c::crc32c(data) != u32::from_le_bytes(sum) {
        return Err(wrong("crc32c"));
    }
    Ok(data.len())
}
