//! Gathers the bytes of records: those that their owner has, and those that it pulled.

use std::ops::Range;

use crate::RunError;
use crate::buffer::Buffer;
use crate::fetch::OwnerView;

/// Bytes of the owner: their place in the object, and their place in the buffer.
struct OwnBytes<'a> {
    object: Option<&'a str>,
    offset: u64,
    place: usize,
    len: usize,
}

/// Fills `data` with these ranges of the file, one after the other.
pub(crate) fn gather(
    view: &mut OwnerView<'_>,
    ranges: impl ExactSizeIterator<Item = Range<u64>>,
    data: &mut [u8],
    scratch: &mut Buffer,
) -> Result<(), RunError> {
    let file = view.file;
    let mut own: Vec<OwnBytes<'_>> = Vec::with_capacity(ranges.len());
    let mut at = 0;
    for range in ranges {
        let mut covered = range.start;
        for extent in file.layout.extents_for(view.owner, range.clone()) {
            let place = at + (extent.file.start - range.start) as usize;
            let len = (extent.file.end - extent.file.start) as usize;
            covered = extent.file.end;
            if extent.target != view.owner {
                view.read_other(&extent, &mut data[place..place + len])?;
                continue;
            }
            match own.last_mut() {
                // Bytes that continue the last in the object and in `data` are one read.
                Some(last)
                    if last.object == extent.object
                        && last.offset + last.len as u64 == extent.object_offset
                        && last.place + last.len == place =>
                {
                    last.len += len;
                }
                _ => own.push(OwnBytes { object: extent.object, offset: extent.object_offset, place, len }),
            }
        }
        if covered < range.end {
            return Err(RunError::Truncated {
                name: file.name.clone(),
                offset: covered,
                length: file.length,
            });
        }
        at += (range.end - range.start) as usize;
    }
    read_own(view, &own, data, scratch)
}

/// Reads the owner's bytes: with one read if they lie close together in the object, otherwise piece by piece.
fn read_own(
    view: &mut OwnerView<'_>,
    own: &[OwnBytes<'_>],
    data: &mut [u8],
    scratch: &mut Buffer,
) -> Result<(), RunError> {
    let part = view.file.part(view.owner)?;
    let wanted: usize = own.iter().map(|own| own.len).sum();
    let low = own.iter().map(|own| own.offset).min().unwrap_or(0);
    let high = own.iter().map(|own| own.offset + own.len as u64).max().unwrap_or(0);
    let one_object = own.windows(2).all(|pair| pair[0].object == pair[1].object);
    let close = own.len() > 1 && one_object && high - low <= 2 * wanted as u64;
    view.tally.count_own(view.owner, wanted as u64);
    if !close {
        for OwnBytes { object, offset, place, len } in own {
            part.read(*object, *offset, &mut data[*place..place + len])?;
        }
        return Ok(());
    }
    let span = scratch.get((high - low) as usize);
    part.read(own[0].object, low, span)?;
    for OwnBytes { offset, place, len, .. } in own {
        let from = (offset - low) as usize;
        data[*place..place + len].copy_from_slice(&span[from..from + len]);
    }
    Ok(())
}
