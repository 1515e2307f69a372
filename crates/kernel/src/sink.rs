//! The receivers of the rows and bytes that a fold emits.

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

    /// Takes rows of one size, which follow each other in `rows`. Returns how many it took: fewer than all if it is
    /// full. The result is the same as with `put` for each row, but this is faster.
    fn put_rows(&mut self, at: &[Position], rows: &[u8]) -> usize {
        let size = rows.len() / at.len().max(1);
        for (n, position) in at.iter().enumerate() {
            if self.put(*position, &rows[n * size..(n + 1) * size]).is_err() {
                return n;
            }
        }
        at.len()
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn put(&mut self, at: Position, row: &[u8]) -> Result<(), Full> {
        (**self).put(at, row)
    }

    fn put_rows(&mut self, at: &[Position], rows: &[u8]) -> usize {
        (**self).put_rows(at, rows)
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

/// Rows in the order in which they came, in three flat arrays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowBatch {
    positions: Vec<Position>,
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl RowBatch {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Appends a row.
    pub fn push(&mut self, at: Position, row: &[u8]) {
        self.positions.push(at);
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
    }

    /// Positions of the rows.
    pub fn positions(&self) -> &[Position] {
        &self.positions
    }

    /// A batch of rows at these positions. Row i is `bytes` from end i-1 to end i. `None` unless there are as many
    /// ends as positions, and the ends ascend to the end of `bytes`.
    pub fn from_parts(positions: Vec<Position>, ends: Vec<usize>, bytes: Vec<u8>) -> Option<RowBatch> {
        let fits = positions.len() == ends.len()
            && ends.is_sorted()
            && ends.last().copied().unwrap_or(0) == bytes.len();
        fits.then_some(RowBatch { positions, ends, bytes })
    }

    /// The end of each row in [`bytes`](Self::bytes).
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// The bytes of all rows, one after the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Each row and its position.
    pub fn iter(&self) -> impl Iterator<Item = (Position, &[u8])> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let rows = starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end]);
        self.positions.iter().copied().zip(rows)
    }

    fn cost(&self) -> usize {
        self.bytes.len() + self.positions.len() * RowBuffer::ROW_OVERHEAD
    }
}

/// A sink that collects rows in memory, up to a number of bytes.
#[derive(Clone, Debug)]
pub struct RowBuffer {
    batch: RowBatch,
    limit: usize,
}

impl RowBuffer {
    /// Bytes of memory that a row takes in addition to its own bytes.
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
        let next = RowBatch {
            positions: Vec::with_capacity(self.batch.positions.len()),
            ends: Vec::with_capacity(self.batch.ends.len()),
            bytes: Vec::with_capacity(self.batch.bytes.len()),
        };
        std::mem::replace(&mut self.batch, next)
    }
}

impl Sink for RowBuffer {
    fn put(&mut self, at: Position, row: &[u8]) -> Result<(), Full> {
        if self.batch.cost() + row.len() + RowBuffer::ROW_OVERHEAD > self.limit && !self.batch.is_empty() {
            return Err(Full);
        }
        self.batch.push(at, row);
        Ok(())
    }

    fn put_rows(&mut self, at: &[Position], rows: &[u8]) -> usize {
        let size = rows.len() / at.len().max(1);
        let room = self.limit.saturating_sub(self.batch.cost()) / (size + RowBuffer::ROW_OVERHEAD);
        let least = usize::from(self.batch.is_empty());
        let taken = room.max(least).min(at.len());
        let start = self.batch.bytes.len();
        self.batch.positions.extend_from_slice(&at[..taken]);
        self.batch.bytes.extend_from_slice(&rows[..taken * size]);
        self.batch.ends.extend((1..=taken).map(|n| start + n * size));
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
        ) {
            let (mut once, mut each) = (RowBuffer::new(limit), RowBuffer::new(limit));
            let mut record = 0;
            for count in sizes {
                let at: Vec<_> = (0..count as u64).map(|n| Position::of_record(record + n)).collect();
                record += count as u64;
                let rows: Vec<u8> = (0..count * size).map(|i| i as u8).collect();
                let taken = once.put_rows(&at, &rows);
                let expected = at.iter().enumerate().take_while(|(n, at)| {
                    each.put(**at, &rows[n * size..(n + 1) * size]).is_ok()
                });
                prop_assert_eq!(taken, expected.count());
            }
            prop_assert_eq!(once.take(), each.take());
        }
    }
}
