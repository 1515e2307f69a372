//! Puts the bytes of records together from what their owner has and what it pulled.

use std::ops::Range;

use crate::RunError;
use crate::buffer::Buffer;
use crate::fetch::Sight;

/// Bytes of the owner: where they are and where they go.
struct Own<'a> {
    object: Option<&'a str>,
    offset: u64,
    place: usize,
    len: usize,
}

/// Fills `data` with these ranges of the file, one after the other.
pub(crate) fn gather(
    sight: &mut Sight<'_>,
    ranges: impl ExactSizeIterator<Item = Range<u64>>,
    data: &mut [u8],
    scratch: &mut Buffer,
) -> Result<(), RunError> {
    let file = sight.file;
    let mut own: Vec<Own<'_>> = Vec::with_capacity(ranges.len());
    let mut at = 0;
    for range in ranges {
        let mut covered = range.start;
        for extent in file.layout.extents(range.clone()) {
            let place = at + (extent.file.start - range.start) as usize;
            let len = (extent.file.end - extent.file.start) as usize;
            covered = extent.file.end;
            if extent.target != sight.owner {
                sight.others(&extent, &mut data[place..place + len])?;
                continue;
            }
            match own.last_mut() {
                // What follows on in the object and in `data` is one read.
                Some(last)
                    if last.object == extent.object
                        && last.offset + last.len as u64 == extent.object_offset
                        && last.place + last.len == place =>
                {
                    last.len += len;
                }
                _ => own.push(Own { object: extent.object, offset: extent.object_offset, place, len }),
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
    read_own(sight, &own, data, scratch)
}

/// Reads the owner's bytes: at once where they lie close together in the object, else piece by piece.
fn read_own(
    sight: &mut Sight<'_>,
    own: &[Own<'_>],
    data: &mut [u8],
    scratch: &mut Buffer,
) -> Result<(), RunError> {
    let part = sight.file.part(sight.owner)?;
    let wanted: usize = own.iter().map(|own| own.len).sum();
    let low = own.iter().map(|own| own.offset).min().unwrap_or(0);
    let high = own.iter().map(|own| own.offset + own.len as u64).max().unwrap_or(0);
    let one_object = own.windows(2).all(|pair| pair[0].object == pair[1].object);
    let close = own.len() > 1 && one_object && high - low <= 2 * wanted as u64;
    sight.tally.own(sight.owner, wanted as u64);
    if !close {
        for Own { object, offset, place, len } in own {
            part.read(*object, *offset, &mut data[*place..place + len])?;
        }
        return Ok(());
    }
    let span = scratch.get((high - low) as usize);
    part.read(own[0].object, low, span)?;
    for Own { offset, place, len, .. } in own {
        let from = (offset - low) as usize;
        data[*place..place + len].copy_from_slice(&span[from..from + len]);
    }
    Ok(())
}
