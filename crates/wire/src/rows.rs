//! Encoding of batches of rows. Positions are encoded as differences, and sizes only if they differ, both in LEB128. So
//! a row of eight bytes takes nine or ten.

use gristmill_kernel::{Position, RowBatch};

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
    let starts = std::iter::once(0).chain(batch.ends().iter().copied());
    let sizes = starts.zip(batch.ends()).map(|(start, end)| end - start);
    let first = sizes.clone().next().unwrap_or(0);
    let same = sizes.clone().all(|size| size == first);
    let whole = batch.positions().iter().all(|at| at.part == 0);
    out.reserve(batch.bytes().len() + 4 * batch.len() + 2 * MAX_VARINT);
    out.push(if same { SAME_SIZE } else { 0 } | if whole { WHOLE_RECORDS } else { 0 });
    put_leb(out, batch.len() as u64);
    if same {
        put_leb(out, first as u64);
    }
    let mut last = 0u64;
    for at in batch.positions() {
        put_leb(out, at.record.wrapping_sub(last));
        last = at.record;
        if !whole {
            put_leb(out, at.part);
        }
    }
    if !same {
        sizes.for_each(|size| put_leb(out, size as u64));
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
    let mut positions = Vec::with_capacity(count);
    let mut last = 0u64;
    for _ in 0..count {
        last = last.wrapping_add(take_leb(&mut bytes)?);
        let part = if flags & WHOLE_RECORDS != 0 { 0 } else { take_leb(&mut bytes)? };
        positions.push(Position { record: last, part });
    }
    let mut ends = Vec::with_capacity(count);
    let mut end = 0usize;
    for _ in 0..count {
        let size = match same {
            Some(size) => size,
            None => usize::try_from(take_leb(&mut bytes)?).ok()?,
        };
        end = end.checked_add(size)?;
        ends.push(end);
    }
    RowBatch::from_parts(positions, ends, bytes.to_vec())
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
