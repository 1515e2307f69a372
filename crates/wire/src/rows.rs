//! Encoding of batches of rows. Positions are encoded as differences, and sizes only if they differ, both in LEB128. So
//! a row of eight bytes takes nine or ten.

use gristmill_kernel::{RowBatch, RowEnds};

/// All rows have the same size.
const SAME_SIZE: u8 = 1;
/// All rows are part 0 of their records.
const WHOLE_RECORDS: u8 = 2;

/// Most rows of a batch that is read. An empty row takes one byte here and 24 in memory, so the length of a frame alone
/// is not a sufficient bound. Nodes send far fewer, because they buffer only a fraction of a megabyte.
pub(crate) const MAX_ROWS: usize = 1 << 20;

/// Longest LEB128 of a u64.
const MAX_VARINT: usize = 10;

/// Appends a batch: flags, count, size of all rows (or 0), the differences of the records, parts, sizes, bytes.
pub(crate) fn encode(batch: &RowBatch, out: &mut Vec<u8>) {
    let whole = batch.parts().is_empty();
    let same = batch.row_size();
    out.reserve(batch.bytes().len() + 4 * batch.len() + 2 * MAX_VARINT);
    out.push(if same.is_some() { SAME_SIZE } else { 0 } | if whole { WHOLE_RECORDS } else { 0 });
    put_leb(out, batch.len() as u64);
    if let Some(size) = same {
        put_leb(out, size as u64);
    }
    let mut last = 0u64;
    for at in batch.positions() {
        put_leb(out, at.record.wrapping_sub(last));
        last = at.record;
        if !whole {
            put_leb(out, at.part);
        }
    }
    if same.is_none() {
        let mut start = 0;
        batch.ends().for_each(|end| put_leb(out, (end - std::mem::replace(&mut start, end)) as u64));
    }
    out.extend_from_slice(batch.bytes());
}

/// Decodes the output of [`encode`]. Returns `None` for other bytes and for more than [`MAX_ROWS`] rows. Allocates at
/// most a few times the number of the bytes, and 24 bytes for each row.
pub(crate) fn decode(mut bytes: &[u8]) -> Option<RowBatch> {
    let flags = *bytes.first()?;
    bytes = bytes.get(1..)?;
    let count = usize::try_from(take_leb(&mut bytes)?).ok()?;
    // Every row has at least one byte of position.
    if count > bytes.len().min(MAX_ROWS) || flags & !(SAME_SIZE | WHOLE_RECORDS) != 0 {
        return None;
    }
    let same = if flags & SAME_SIZE != 0 { Some(usize::try_from(take_leb(&mut bytes)?).ok()?) } else { None };
    let whole = flags & WHOLE_RECORDS != 0;
    let mut records = Vec::with_capacity(count);
    let mut parts = Vec::with_capacity(if whole { 0 } else { count });
    let mut last = 0u64;
    for _ in 0..count {
        last = last.wrapping_add(take_leb(&mut bytes)?);
        records.push(last);
        if !whole {
            parts.push(take_leb(&mut bytes)?);
        }
    }
    let ends = match same {
        Some(size) => RowEnds::Every(size),
        None => {
            let mut end = 0usize;
            let mut ends = Vec::with_capacity(count);
            for _ in 0..count {
                end = end.checked_add(usize::try_from(take_leb(&mut bytes)?).ok()?)?;
                ends.push(end);
            }
            RowEnds::At(ends)
        }
    };
    RowBatch::from_parts(records, parts, ends, bytes.to_vec())
}

fn put_leb(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn take_leb(bytes: &mut &[u8]) -> Option<u64> {
    let mut n = 0u64;
    for (i, byte) in bytes.iter().take(MAX_VARINT).enumerate() {
        let bits = u64::from(byte & 0x7f);
        if i == MAX_VARINT - 1 && bits > 1 {
            return None;
        }
        n |= bits << (7 * i);
        if byte & 0x80 == 0 {
            *bytes = bytes.get(i + 1..)?;
            return Some(n);
        }
    }
    None
}
