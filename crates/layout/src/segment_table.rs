//! The table at the end of each object of a segments file, and the layout that the tables of all targets give.
//!
//! An object of a segments file is the bytes that one target made, in the order of the input, then the table, then a
//! footer of [`SEGMENT_FOOTER`] bytes. All numbers are unsigned, 8 bytes, little-endian.
//!
//! | part | what |
//! |---|---|
//! | data | the bytes of the file that this target holds |
//! | table | for each piece: the first record of the input that it was made of, and its bytes |
//! | footer | `gristseg`, the version (1), number of pieces, bytes of data, FNV-1a of the table |
//!
//! Where a piece lies in the file follows from the tables of all targets: pieces are in the order of the records they
//! were made of. So nobody has to count what the others made while it is made.

use std::ops::Range;

use crate::{LayoutError, MAX_FILE_BYTES, MAX_SEGMENTS, Segment, Segments, TargetIndex};

/// Bytes of the footer.
pub const SEGMENT_FOOTER: usize = 40;

const MAGIC: [u8; 8] = *b"gristseg";
const VERSION: u64 = 1;
const ENTRY: u64 = 16;

/// One piece on one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    /// The first record of the input.
    first: u64,
    bytes: u64,
}

/// What one target holds of a segments file, in the order of the input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentTable {
    entries: Vec<Entry>,
    /// The record behind all that were pushed.
    end: u64,
    /// The last entry was made of the records up to there.
    open: bool,
    data: u64,
}

impl SegmentTable {
    /// Appends the bytes that were made of these records, which lie behind those of all entries before. What goes on
    /// where the last entry ended is one piece with it; what is empty is none.
    ///
    /// # Errors
    /// [`LayoutError::SegmentTable`] for records that do not lie behind the last, and
    /// [`LayoutError::TooManySegments`].
    pub fn push(&mut self, records: Range<u64>, bytes: u64) -> Result<(), LayoutError> {
        if records.is_empty() || records.start < self.end {
            return Err(bad("its pieces are not in the order of the input"));
        }
        let goes_on = self.open && self.end == records.start;
        (self.end, self.open) = (records.end, goes_on || bytes > 0);
        self.data = self.data.checked_add(bytes).filter(|all| *all <= MAX_FILE_BYTES).ok_or_else(too_long)?;
        let full = self.entries.len() == MAX_SEGMENTS;
        match self.entries.last_mut() {
            Some(last) if goes_on => last.bytes += bytes,
            _ if bytes == 0 => {}
            _ if full => return Err(LayoutError::TooManySegments),
            _ => self.entries.push(Entry { first: records.start, bytes }),
        }
        Ok(())
    }

    /// Bytes of the file in this object.
    pub const fn data(&self) -> u64 {
        self.data
    }

    /// The table and the footer, as they follow the data.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.entries.len() * ENTRY as usize + SEGMENT_FOOTER);
        for entry in &self.entries {
            out.extend_from_slice(&entry.first.to_le_bytes());
            out.extend_from_slice(&entry.bytes.to_le_bytes());
        }
        let sum = fnv1a(&out);
        out.extend_from_slice(&MAGIC);
        for number in [VERSION, self.entries.len() as u64, self.data, sum] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out
    }

    /// Reads a table that lies where `footer` says.
    ///
    /// # Errors
    /// [`LayoutError::SegmentTable`] for whatever [`encode`](Self::encode) did not write.
    pub fn decode(footer: &SegmentFooter, table: &[u8]) -> Result<SegmentTable, LayoutError> {
        let (words, rest) = table.as_chunks::<8>();
        let (pairs, odd) = words.as_chunks::<2>();
        if !rest.is_empty() || !odd.is_empty() || pairs.len() as u64 != footer.entries {
            return Err(bad("it is not as long as its footer says"));
        }
        if fnv1a(table) != footer.sum {
            return Err(bad("its sum does not agree"));
        }
        let mut all = SegmentTable::default();
        let mut last = None;
        for [first, bytes] in pairs {
            let (first, bytes) = (u64::from_le_bytes(*first), u64::from_le_bytes(*bytes));
            if last.is_some_and(|last| first <= last) || bytes == 0 {
                return Err(bad("its pieces are not in the order of the input, or empty"));
            }
            last = Some(first);
            all.data = all.data.checked_add(bytes).ok_or_else(too_long)?;
            all.entries.push(Entry { first, bytes });
        }
        if all.data != footer.data {
            return Err(bad("its pieces are not as long as its footer says"));
        }
        Ok(all)
    }
}

/// The end of an object: where its table lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentFooter {
    entries: u64,
    data: u64,
    sum: u64,
}

impl SegmentFooter {
    /// Reads the last [`SEGMENT_FOOTER`] bytes of an object.
    ///
    /// # Errors
    /// [`LayoutError::SegmentTable`] for anything but a footer of this version.
    pub fn decode(bytes: &[u8]) -> Result<SegmentFooter, LayoutError> {
        let (words, rest) = bytes.as_chunks::<8>();
        let [magic, version, entries, data, sum] = words else {
            return Err(bad("it has no footer"));
        };
        let [version, entries, data, sum] =
            [version, entries, data, sum].map(|word| u64::from_le_bytes(*word));
        if *magic != MAGIC || !rest.is_empty() {
            return Err(bad("it has no footer"));
        }
        if version != VERSION {
            return Err(bad("it is of another version of Gristmill"));
        }
        if entries > MAX_SEGMENTS as u64 || data > MAX_FILE_BYTES - ENTRY * MAX_SEGMENTS as u64 {
            return Err(bad("it is longer than can be"));
        }
        Ok(SegmentFooter { entries, data, sum })
    }

    /// Where in the object the table lies, in bytes.
    pub const fn table(&self) -> Range<u64> {
        self.data..self.data + ENTRY * self.entries
    }
}

impl Segments {
    /// The layout of a file from the tables of its targets, in their order; `None` for a target that has no object. The
    /// object has this name on every target.
    ///
    /// # Errors
    /// [`LayoutError::SegmentTable`] if two pieces were made of the same record, [`LayoutError::TooManySegments`], or
    /// what [`Segments::new`] refuses.
    pub fn of_tables(object: &str, tables: &[Option<SegmentTable>]) -> Result<Segments, LayoutError> {
        let count = tables.iter().flatten().map(|table| table.entries.len()).sum::<usize>();
        if count > MAX_SEGMENTS {
            return Err(LayoutError::TooManySegments);
        }
        let mut pieces: Vec<(u64, TargetIndex, u64, u64)> = Vec::with_capacity(count);
        for (target, table) in (0..).zip(tables) {
            let mut offset = 0;
            for entry in table.iter().flat_map(|table| &table.entries) {
                pieces.push((entry.first, target, offset, entry.bytes));
                offset += entry.bytes;
            }
        }
        pieces.sort_unstable();
        if pieces.iter().zip(pieces.iter().skip(1)).any(|(a, b)| a.0 == b.0) {
            return Err(bad("two pieces were made of the same record"));
        }
        let mut at = 0u64;
        let mut lines = Vec::with_capacity(pieces.len());
        for (_, target, object_offset, bytes) in pieces {
            let end = at.checked_add(bytes).filter(|end| *end <= MAX_FILE_BYTES).ok_or_else(too_long)?;
            lines.push((at..end, target, object_offset));
            at = end;
        }
        let targets = u32::try_from(tables.len()).unwrap_or(u32::MAX);
        let line = |(file, target, object_offset)| Segment {
            file,
            target,
            object: object.to_owned(),
            object_offset,
        };
        Segments::new(targets, lines.into_iter().map(line))
    }
}

fn fnv1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

fn bad(why: &'static str) -> LayoutError {
    LayoutError::SegmentTable { why }
}

fn too_long() -> LayoutError {
    bad("its pieces are longer together than a file can be")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;
    use crate::Layout;

    fn read(object: &[u8]) -> Result<SegmentTable, LayoutError> {
        let end = object.len().saturating_sub(SEGMENT_FOOTER);
        let footer = SegmentFooter::decode(object.get(end..).unwrap_or_default())?;
        let table = footer.table();
        let range = usize::try_from(table.start).unwrap()..usize::try_from(table.end).unwrap();
        SegmentTable::decode(&footer, object.get(range).ok_or_else(|| bad("cut"))?)
    }

    proptest! {
        /// Runs of records dealt to targets, each giving some bytes: the file is the bytes in the order of the runs.
        #[test]
        fn the_file_is_what_was_made_in_the_order_of_the_input(
            runs in prop::collection::vec((0usize..4, 1u64..5, 0u64..40), 0..40),
        ) {
            let (mut tables, mut objects) = (vec![SegmentTable::default(); 4], vec![Vec::new(); 4]);
            let (mut file, mut record) = (Vec::new(), 7);
            for (target, records, bytes) in runs {
                let made: Vec<u8> = (0..bytes).map(|_| (file.len() % 251) as u8).collect();
                file.extend_from_slice(&made);
                objects[target].extend_from_slice(&made);
                tables[target].push(record..record + records, bytes).unwrap();
                record += records;
            }
            for (object, table) in objects.iter_mut().zip(&tables) {
                prop_assert_eq!(table.data(), object.len() as u64);
                object.extend_from_slice(&table.encode());
            }
            let tables: Vec<_> = objects.iter().map(|object| Some(read(object).unwrap())).collect();
            let segments = Segments::of_tables("o", &tables).unwrap();
            prop_assert_eq!(segments.len(), file.len() as u64);
            let mut seen = Vec::new();
            for extent in Layout::from(segments).extents(0..u64::MAX) {
                let start = extent.object_offset as usize;
                let len = (extent.file.end - extent.file.start) as usize;
                seen.extend_from_slice(&objects[extent.target as usize][start..start + len]);
            }
            prop_assert_eq!(seen, file);
        }

        #[test]
        fn any_change_is_seen(cut in 0usize..90, at in 0usize..88, to in any::<u8>()) {
            let mut table = SegmentTable::default();
            for n in 0..3 {
                table.push(10 * n..10 * n + 5, n + 1).unwrap();
            }
            let mut object = vec![0; 6];
            object.extend_from_slice(&table.encode());
            prop_assert_eq!(object.len(), 94);
            prop_assert!(read(&object[..cut]).is_err());
            let at = at + 6;
            if object[at] != to {
                object[at] = to;
                prop_assert!(read(&object).is_err(), "byte {}", at);
            }
        }

        #[test]
        fn junk_is_refused_and_nothing_worse(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(read(&bytes).is_err());
            let mut forged = bytes;
            forged.extend_from_slice(&MAGIC);
            forged.extend_from_slice(&VERSION.to_le_bytes());
            forged.extend_from_slice(&[255; 24]);
            prop_assert!(read(&forged).is_err());
        }
    }

    #[test]
    fn pieces_out_of_order_or_made_twice_are_refused() {
        let mut table = SegmentTable::default();
        table.push(5..8, 3).unwrap();
        assert!(table.push(7..9, 1).is_err());
        assert!(table.push(9..9, 1).is_err());
        let twice = [Some(table.clone()), None, Some(table)];
        assert!(matches!(Segments::of_tables("o", &twice), Err(LayoutError::SegmentTable { .. })));
    }
}
