//! Rows in flat arrays, without what is the same for all rows.

use crate::Position;

/// Where the rows of a batch end in its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowEnds {
    /// Each row has this number of bytes.
    Every(usize),
    /// The end of each row.
    At(Vec<usize>),
}

impl Default for RowEnds {
    fn default() -> RowEnds {
        RowEnds::Every(0)
    }
}

/// Rows in the order in which they came.
///
/// Most rows are elements: they have one size, and each is the only row of its record. Then a row takes its own bytes and
/// 8 bytes for its record.
///
/// ```
/// use gristmill_kernel::{Position, RowBatch};
///
/// let mut batch = RowBatch::default();
/// batch.push(Position::of_record(3), b"three");
/// batch.push(Position::of_record(9), b"nine");
/// let rows: Vec<(u64, &[u8])> = batch.iter().map(|(at, row)| (at.record, row)).collect();
/// assert_eq!(rows, [(3, b"three".as_slice()), (9, b"nine")]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowBatch {
    /// The record of each row.
    records: Vec<u64>,
    /// The part of each row. It is empty if all parts are 0, and only then.
    parts: Vec<u64>,
    /// It is [`RowEnds::At`] if two rows have different sizes, and only then. So equal batches have equal fields.
    ends: RowEnds,
    bytes: Vec<u8>,
}

impl RowBatch {
    /// A batch without rows, with room for as many rows and bytes as `other` has.
    pub(crate) fn with_room_of(other: &RowBatch) -> RowBatch {
        RowBatch {
            records: Vec::with_capacity(other.records.len()),
            bytes: Vec::with_capacity(other.bytes.len()),
            ..RowBatch::default()
        }
    }

    /// A batch of rows of these records. `parts` is empty if all rows are part 0 of their records. Returns `None` unless
    /// there are as many records, parts and ends, and the ends ascend to the end of `bytes`.
    pub fn from_parts(records: Vec<u64>, parts: Vec<u64>, ends: RowEnds, bytes: Vec<u8>) -> Option<RowBatch> {
        let fits = match &ends {
            RowEnds::Every(size) => records.len().checked_mul(*size) == Some(bytes.len()),
            RowEnds::At(ends) => {
                ends.len() == records.len()
                    && ends.is_sorted()
                    && ends.last().copied().unwrap_or(0) == bytes.len()
            }
        };
        if !fits || !(parts.is_empty() || parts.len() == records.len()) {
            return None;
        }
        let parts = if parts.iter().all(|part| *part == 0) { Vec::new() } else { parts };
        let ends = match ends {
            RowEnds::Every(_) if records.is_empty() => RowEnds::Every(0),
            RowEnds::At(ends) => same_size(&ends).map_or(RowEnds::At(ends), RowEnds::Every),
            every => every,
        };
        Some(RowBatch { records, parts, ends, bytes })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Appends a row.
    pub fn push(&mut self, at: Position, row: &[u8]) {
        let parts = [at.part];
        self.push_rows(&[at.record], if at.part == 0 { &[] } else { &parts }, row);
    }

    /// Appends a row for each of `records`. All have the same size and follow each other in `rows`. `parts` is empty if
    /// all are part 0 of their records, and else has the part of each row.
    pub(crate) fn push_rows(&mut self, records: &[u64], parts: &[u64], rows: &[u8]) {
        if records.is_empty() {
            return;
        }
        self.push_ends(records.len(), rows.len() / records.len());
        if parts.iter().any(|part| *part != 0) {
            self.parts.resize(self.records.len(), 0);
            self.parts.extend_from_slice(parts);
        } else if !self.parts.is_empty() {
            self.parts.resize(self.records.len() + records.len(), 0);
        }
        self.records.extend_from_slice(records);
        self.bytes.extend_from_slice(rows);
    }

    /// Appends the ends of `count` rows of `size` bytes.
    fn push_ends(&mut self, count: usize, size: usize) {
        if self.records.is_empty() {
            self.ends = RowEnds::Every(size);
        }
        if let RowEnds::Every(every) = self.ends {
            if every == size {
                return;
            }
            self.ends = RowEnds::At((1..=self.records.len()).map(|n| n * every).collect());
        }
        let start = self.bytes.len();
        if let RowEnds::At(ends) = &mut self.ends {
            ends.extend((1..=count).map(|n| start + n * size));
        }
    }

    /// The record of each row.
    pub fn records(&self) -> &[u64] {
        &self.records
    }

    /// The part of each row; empty if all rows are part 0 of their records.
    pub fn parts(&self) -> &[u64] {
        &self.parts
    }

    /// Positions of the rows.
    pub fn positions(&self) -> impl Iterator<Item = Position> + Clone {
        let parts = self.parts.iter().copied().chain(std::iter::repeat(0));
        self.records.iter().zip(parts).map(|(record, part)| Position { record: *record, part })
    }

    /// Position of the first row.
    pub fn first(&self) -> Option<Position> {
        self.positions().next()
    }

    /// Position of the last row.
    pub fn last(&self) -> Option<Position> {
        let part = self.parts.last().copied().unwrap_or(0);
        self.records.last().map(|record| Position { record: *record, part })
    }

    /// Whether each position is larger than the one before.
    pub fn ascends(&self) -> bool {
        if self.parts.is_empty() {
            // Without an early end, so that it vectorises.
            let pairs = self.records.iter().zip(self.records.iter().skip(1));
            pairs.fold(true, |ascends, (a, b)| ascends & (a < b))
        } else {
            self.positions().zip(self.positions().skip(1)).all(|(a, b)| a < b)
        }
    }

    /// The bytes of each row, if all rows have the same number.
    pub fn row_size(&self) -> Option<usize> {
        match self.ends {
            RowEnds::Every(size) => Some(size),
            RowEnds::At(_) => None,
        }
    }

    /// The end of each row in [`bytes`](Self::bytes).
    pub fn ends(&self) -> impl Iterator<Item = usize> + Clone {
        let (size, ends) = match &self.ends {
            RowEnds::Every(size) => (*size, None),
            RowEnds::At(ends) => (0, Some(ends)),
        };
        (0..self.len()).map(move |n| ends.map_or((n + 1) * size, |ends| ends[n]))
    }

    /// The bytes of all rows, one after the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Each row and its position.
    pub fn iter(&self) -> impl Iterator<Item = (Position, &[u8])> {
        let mut start = 0;
        let rows = self.ends().map(move |end| &self.bytes[std::mem::replace(&mut start, end)..end]);
        self.positions().zip(rows)
    }
}

/// The size of all rows that end there, if they have the same size.
fn same_size(ends: &[usize]) -> Option<usize> {
    let size = ends.first().copied().unwrap_or(0);
    let same = (1..).zip(ends).all(|(n, end)| size.checked_mul(n) == Some(*end));
    same.then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows() -> impl Strategy<Value = Vec<(Position, Vec<u8>)>> {
        let same = (0usize..4).prop_map(|size| size..=size);
        let size = prop_oneof![same, Just(0..=3usize)];
        size.prop_flat_map(|size| {
            let position = (0u64..9, prop_oneof![4 => Just(0), 1 => 0u64..3])
                .prop_map(|(record, part)| Position { record, part });
            prop::collection::vec((position, prop::collection::vec(any::<u8>(), size)), 0..9)
        })
    }

    fn batch(rows: &[(Position, Vec<u8>)]) -> RowBatch {
        let mut batch = RowBatch::default();
        rows.iter().for_each(|(at, row)| batch.push(*at, row));
        batch
    }

    proptest! {
        #[test]
        fn a_batch_gives_the_rows_that_were_pushed(rows in rows()) {
            let batch = batch(&rows);
            let given: Vec<_> = batch.iter().map(|(at, row)| (at, row.to_vec())).collect();
            prop_assert_eq!(&given, &rows);
            prop_assert_eq!(batch.len(), rows.len());
            prop_assert_eq!(batch.first(), rows.first().map(|row| row.0));
            prop_assert_eq!(batch.last(), rows.last().map(|row| row.0));
            prop_assert_eq!(batch.ascends(), rows.is_sorted_by(|a, b| a.0 < b.0));
            let size = rows.first().map_or(0, |row| row.1.len());
            let same = rows.iter().all(|row| row.1.len() == size);
            prop_assert_eq!(batch.row_size(), same.then_some(size));
        }

        #[test]
        fn a_batch_of_parts_equals_the_batch_of_its_rows(rows in rows()) {
            let batch = batch(&rows);
            let parts = batch.positions().map(|at| at.part).collect();
            let ends = RowEnds::At(batch.ends().collect());
            let again = RowBatch::from_parts(batch.records().to_vec(), parts, ends, batch.bytes().to_vec());
            prop_assert_eq!(again, Some(batch));
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let parts = |records: &[u64], parts: &[u64], ends, bytes: &[u8]| {
            RowBatch::from_parts(records.to_vec(), parts.to_vec(), ends, bytes.to_vec())
        };
        assert!(parts(&[1, 2], &[], RowEnds::Every(2), b"abcd").is_some());
        assert_eq!(parts(&[1, 2], &[], RowEnds::Every(2), b"abc"), None);
        assert_eq!(parts(&[1, 2], &[], RowEnds::Every(usize::MAX), b"abc"), None);
        assert_eq!(parts(&[1, 2], &[0], RowEnds::Every(2), b"abcd"), None);
        assert_eq!(parts(&[1, 2], &[], RowEnds::At(vec![4]), b"abcd"), None);
        assert_eq!(parts(&[1, 2], &[], RowEnds::At(vec![4, 3]), b"abc"), None);
        assert_eq!(parts(&[1, 2], &[], RowEnds::At(vec![1, 3]), b"abcd"), None);
    }
}
