//! The receivers of the rows and bytes that a fold emits.

use crate::RowBatch;

/// Position of a row: its record in the input, then its number among the rows of that record.
///
/// Positions order the rows of all folds of a request. Two rows with the same position are the same row, so a fold may
/// emit the rows of a record again after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position {
    /// Position of the record: a record number, or a byte offset for lines.
    pub record: u64,
    /// Number of the row among the rows of its record.
    pub part: u64,
}

impl Position {
    /// The position of the only row of a record.
    pub const fn of_record(record: u64) -> Position {
        Position { record, part: 0 }
    }
}

/// The sink takes no more rows now. The fold answers [`crate::Step::Full`] and is called again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// A receiver of rows, in ascending order of position within one run of a fold, in the last pass only.
pub trait Sink {
    /// Takes a row, or refuses the whole row. A sink never refuses a row while folds are merged.
    ///
    /// # Errors
    /// The error is [`Full`] if the sink refuses the row.
    fn put(&mut self, at: Position, row: &[u8]) -> Result<(), Full>;

    /// Takes a row for each of `records`. All have the same size and follow each other in `rows`. `parts` is empty if all
    /// are part 0 of their records, and else has the part of each row. Returns how many rows it took: fewer than all if
    /// it is full. The result is the same as with `put` for each row, but this is faster.
    fn put_rows(&mut self, records: &[u64], parts: &[u64], rows: &[u8]) -> usize {
        let size = rows.len() / records.len().max(1);
        for (n, record) in records.iter().enumerate() {
            let at = Position { record: *record, part: parts.get(n).copied().unwrap_or(0) };
            if self.put(at, &rows[n * size..(n + 1) * size]).is_err() {
                return n;
            }
        }
        records.len()
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn put(&mut self, at: Position, row: &[u8]) -> Result<(), Full> {
        (**self).put(at, row)
    }

    fn put_rows(&mut self, records: &[u64], parts: &[u64], rows: &[u8]) -> usize {
        (**self).put_rows(records, parts, rows)
    }
}

/// A sink for kernels without rows. It refuses every row.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRows;

impl Sink for NoRows {
    fn put(&mut self, _: Position, _: &[u8]) -> Result<(), Full> {
        Err(Full)
    }
}

/// A sink that collects rows in memory, up to a number of bytes.
#[derive(Clone, Debug)]
pub struct RowBuffer {
    batch: RowBatch,
    limit: usize,
}

impl RowBuffer {
    /// Most bytes of memory that a row takes in addition to its own bytes.
    pub const ROW_OVERHEAD: usize = size_of::<Position>() + size_of::<usize>();

    /// A buffer that is full when it holds `limit` bytes. It takes at least one row of any size.
    pub fn new(limit: usize) -> RowBuffer {
        RowBuffer { batch: RowBatch::default(), limit }
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Removes and returns the rows, in the order in which they came.
    pub fn take(&mut self) -> RowBatch {
        // The next batch probably has about the same size.
        let next = RowBatch::with_room_of(&self.batch);
        std::mem::replace(&mut self.batch, next)
    }

    /// Bytes of memory that the rows take at most.
    fn cost(&self) -> usize {
        self.batch.bytes().len() + self.batch.len() * RowBuffer::ROW_OVERHEAD
    }
}

impl Sink for RowBuffer {
    fn put(&mut self, at: Position, row: &[u8]) -> Result<(), Full> {
        if self.cost() + row.len() + RowBuffer::ROW_OVERHEAD > self.limit && !self.batch.is_empty() {
            return Err(Full);
        }
        self.batch.push(at, row);
        Ok(())
    }

    fn put_rows(&mut self, records: &[u64], parts: &[u64], rows: &[u8]) -> usize {
        let size = rows.len() / records.len().max(1);
        let room = self.limit.saturating_sub(self.cost()) / (size + RowBuffer::ROW_OVERHEAD);
        let least = usize::from(self.batch.is_empty());
        let taken = room.max(least).min(records.len());
        self.batch.push_rows(&records[..taken], parts.get(..taken).unwrap_or(&[]), &rows[..taken * size]);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn put_rows_equals_put_for_each_row(
            sizes in prop::collection::vec(0usize..6, 1..8), limit in 1usize..400, size in 0usize..5,
            with_parts in any::<bool>(),
        ) {
            let (mut once, mut each) = (RowBuffer::new(limit), RowBuffer::new(limit));
            let mut record = 0;
            for count in sizes {
                let records: Vec<_> = (record..).take(count).collect();
                let parts: Vec<_> = records.iter().map(|record| record % 3).collect();
                let parts = if with_parts { parts } else { Vec::new() };
                record += count as u64;
                let rows: Vec<u8> = (0..count * size).map(|i| i as u8).collect();
                let taken = once.put_rows(&records, &parts, &rows);
                let expected = records.iter().enumerate().take_while(|(n, record)| {
                    let at = Position { record: **record, part: parts.get(*n).copied().unwrap_or(0) };
                    each.put(at, &rows[n * size..(n + 1) * size]).is_ok()
                });
                prop_assert_eq!(taken, expected.count());
            }
            prop_assert_eq!(once.take(), each.take());
        }
    }
}
