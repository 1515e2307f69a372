//! Records of a file that lie in an object.

use std::collections::BTreeMap;
use std::ops::Range;

/// Records that lie one after the other in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first record in the object, in bytes.
    pub offset: u64,
    /// Positions of the records.
    pub records: Range<u64>,
}

/// Spans of an object that is stored as pieces of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PieceSpans {
    /// The spans in each piece, by the number of the piece. Offsets are those in the piece.
    pub pieces: BTreeMap<u64, Vec<Span>>,
    /// Records that lie in no single piece.
    pub across: Vec<Range<u64>>,
}

/// Cuts spans at the ends of pieces. `record` is the number of bytes of a record, and `piece` that of a piece; both are at least 1.
///
/// ```
/// use gristmill_object_fold::{Span, split_spans};
///
/// // Pieces of 10 bytes, records of 4: record 2 lies in two pieces.
/// let split = split_spans(&[Span { offset: 0, records: 0..5 }], 4, 10);
/// assert_eq!(split.pieces[&0], [Span { offset: 0, records: 0..2 }]);
/// assert_eq!(split.pieces[&1], [Span { offset: 2, records: 3..5 }]);
/// assert_eq!(split.across, [2..3]);
/// ```
pub fn split_spans(spans: &[Span], record: u64, piece: u64) -> PieceSpans {
    let (record, piece) = (record.max(1), piece.max(1));
    let mut split = PieceSpans::default();
    for span in spans {
        let (mut at, mut offset) = (span.records.start, span.offset);
        while at < span.records.end {
            let (index, start) = (offset / piece, offset % piece);
            let whole = ((piece - start) / record).min(span.records.end - at);
            let step = whole.max(1);
            match whole {
                0 => split.across.push(at..at + 1),
                _ => split
                    .pieces
                    .entry(index)
                    .or_default()
                    .push(Span { offset: start, records: at..at + whole }),
            }
            at += step;
            offset = offset.saturating_add(step.saturating_mul(record));
        }
    }
    split
}
