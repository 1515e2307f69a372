//! Zstandard frames (RFC 8878).

use std::io::Read;

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::too_much;
use crate::FormatError;

/// Bytes that are decoded at a time.
const STEP: usize = 1 << 17;

/// Largest window in bytes that is accepted for a chunk of any size: the largest of zstd's usual levels.
const LEAST_WINDOW: u64 = 8 << 20;

/// Decodes frames, one after the other, and checks their checksums if they have any.
pub fn frames(mut from: &[u8], room: usize, out: &mut Vec<u8>) -> Result<(), FormatError> {
    let bad = |why: &dyn std::fmt::Display| FormatError::chunk(format!("no zstd frame: {why}"));
    let mut frame = FrameDecoder::new();
    frame.set_max_window_size((room as u64).saturating_mul(2).max(LEAST_WINDOW));
    while !from.is_empty() {
        match frame.init(&mut from) {
            Ok(()) => {}
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length, ..
            })) => {
                let behind = usize::try_from(length).ok().and_then(|length| from.get(length..));
                from = behind.ok_or_else(|| bad(&"it is cut off"))?;
                continue;
            }
            Err(error) => return Err(bad(&error)),
        }
        if frame.content_size() > room as u64 {
            return Err(too_much("zstd", room));
        }
        while !frame.is_finished() {
            frame
                .decode_blocks(&mut from, BlockDecodingStrategy::UptoBytes(STEP))
                .map_err(|error| bad(&error))?;
            take(&mut frame, room, out)?;
        }
        take(&mut frame, room, out)?;
        let expected = frame.get_checksum_from_data();
        if expected.is_some() && expected != frame.get_calculated_checksum() {
            return Err(bad(&"its checksum does not agree"));
        }
    }
    Ok(())
}

/// Moves decoded bytes to `out`.
fn take(frame: &mut FrameDecoder, room: usize, out: &mut Vec<u8>) -> Result<(), FormatError> {
    let left = room.saturating_sub(out.len());
    if frame.can_collect() > left {
        return Err(too_much("zstd", room));
    }
    let taken = frame.by_ref().take(left as u64).read_to_end(out);
    taken.map(|_| ()).map_err(|error| FormatError::chunk(format!("no zstd frame: {error}")))
}
