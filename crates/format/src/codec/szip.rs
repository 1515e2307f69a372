//! Szip (CCSDS 121.0-B), by the HDF5 reader.

use crate::FormatError;

/// Decodes one stream with the parameters of HDF5's filter message.
pub fn stream(from: &[u8], parameters: &[u32], room: usize, out: &mut Vec<u8>) -> Result<(), FormatError> {
    let made = hdf5_reader::filters::szip::decompress_with_limit(from, parameters, room);
    *out = made.map_err(|error| FormatError::chunk(error.to_string()))?;
    Ok(())
}
