//! zlib streams (RFC 1950) and gzip members (RFC 1952).

use std::io::Read;

use flate2::{Decompress, FlushDecompress, Status};

use super::too_much;
use crate::FormatError;

/// Decodes one zlib stream. Bytes after its end are ignored, as in HDF5.
pub fn zlib(from: &[u8], room: usize, out: &mut Vec<u8>) -> Result<(), FormatError> {
    // One byte more than allowed, so that too many bytes are noticed.
    out.reserve(room.saturating_add(1));
    let mut stream = Decompress::new(true);
    loop {
        let used = usize::try_from(stream.total_in()).unwrap_or(usize::MAX);
        let before = (stream.total_in(), out.len());
        let rest = from.get(used..).unwrap_or_default();
        let status = stream.decompress_vec(rest, out, FlushDecompress::Finish);
        let status = status.map_err(|error| FormatError::chunk(format!("no zlib stream: {error}")))?;
        if out.len() > room {
            return Err(too_much("zlib", room));
        }
        if status == Status::StreamEnd {
            return Ok(());
        }
        if before == (stream.total_in(), out.len()) {
            return Err(FormatError::chunk("the zlib stream ends before its end"));
        }
    }
}

/// Decodes gzip members, one after the other.
pub fn gzip(from: &[u8], room: usize, out: &mut Vec<u8>) -> Result<(), FormatError> {
    let mut members = flate2::bufread::MultiGzDecoder::new(from).take(room as u64 + 1);
    members.read_to_end(out).map_err(|error| FormatError::chunk(format!("no gzip data: {error}")))?;
    if out.len() > room {
        return Err(too_much("gzip", room));
    }
    Ok(())
}
