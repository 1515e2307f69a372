//! A table of pieces: the layout of a file that a fold wrote, where each piece stays on the target that made it.

use std::collections::HashMap;
use std::ops::Range;

use crate::{
    Extent, LayoutError, MAX_FILE_BYTES, MAX_OBJECT_NAME, MAX_SEGMENTS, MAX_TARGETS, Run, TargetIndex,
};

/// One line of a segment table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Segment {
    /// The bytes of the file; at least one.
    pub file: Range<u64>,
    /// The target that holds them.
    pub target: TargetIndex,
    /// The object on that target: 1 to [`MAX_OBJECT_NAME`] bytes.
    pub object: String,
    /// Where in the object the first of them lies.
    pub object_offset: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    start: u64,
    object_offset: u64,
    target: TargetIndex,
    /// Index into `objects`.
    object: u32,
}

/// A checked segment table: sorted pieces that cover `0..len` once, none sharing object bytes with another.
/// Neighbours that continue each other in the same object are one piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segments {
    targets: u32,
    len: u64,
    pieces: Vec<Piece>,
    objects: Vec<String>,
    /// Positions in `pieces`, sorted by target and then by file position.
    by_target: Vec<u32>,
    /// For each entry of `by_target`: bytes on the same target before it.
    before: Vec<u64>,
    in_place: bool,
}

impl Segments {
    /// Check a table of a file that lies on `targets` targets. An empty table is an empty file.
    ///
    /// # Errors
    /// The first thing wrong with the table, with its position: one of the `Segment...` errors,
    /// [`LayoutError::Targets`], [`LayoutError::UnknownTarget`], [`LayoutError::FileTooLong`],
    /// [`LayoutError::ObjectOffset`] or [`LayoutError::TooManySegments`].
    pub fn new(targets: u32, table: impl IntoIterator<Item = Segment>) -> Result<Self, LayoutError> {
        if targets == 0 || targets > MAX_TARGETS {
            return Err(LayoutError::Targets { targets });
        }
        let mut pieces: Vec<Piece> = Vec::new();
        // For each piece: the table line it starts with.
        let mut lines: Vec<usize> = Vec::new();
        let mut objects: Vec<String> = Vec::new();
        let mut known: HashMap<String, u32> = HashMap::new();
        let mut len = 0u64;
        for (index, segment) in table.into_iter().enumerate() {
            check(index, &segment, len, targets)?;
            len = segment.file.end;
            let object = match known.get(&segment.object) {
                Some(number) => *number,
                None => {
                    // At most one object a piece: below MAX_SEGMENTS, and so fits a u32.
                    let number = objects.len() as u32;
                    objects.push(segment.object.clone());
                    known.insert(segment.object, number);
                    number
                }
            };
            let continues = pieces.last().is_some_and(|last| {
                (last.target, last.object) == (segment.target, object)
                    && last.object_offset + (segment.file.start - last.start) == segment.object_offset
            });
            if continues {
                continue;
            }
            if pieces.len() == MAX_SEGMENTS {
                return Err(LayoutError::TooManySegments);
            }
            lines.push(index);
            pieces.push(Piece {
                start: segment.file.start,
                object_offset: segment.object_offset,
                target: segment.target,
                object,
            });
        }
        let mut segments = Self {
            targets,
            len,
            pieces,
            objects,
            by_target: Vec::new(),
            before: Vec::new(),
            in_place: false,
        };
        segments.refuse_shared(&lines)?;
        segments.index();
        Ok(segments)
    }

    /// The same pieces of files that lie where all targets read them. The targets say only which records each owns.
    pub(crate) fn in_place(self) -> Self {
        Self { in_place: true, ..self }
    }

    /// The same pieces of one object that is the same for all targets, without its name.
    pub(crate) fn without_names(self) -> Self {
        Self { objects: Vec::new(), ..self }
    }

    /// Whether each target reads all pieces.
    pub fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the file has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many targets the file may lie on; some may hold nothing.
    pub fn targets(&self) -> u32 {
        self.targets
    }

    /// Number of pieces.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// The whole piece that holds this byte; none past the end. Binary search.
    pub fn piece_at(&self, file_offset: u64) -> Option<Extent<'_>> {
        if file_offset >= self.len {
            return None;
        }
        let after = self.pieces.partition_point(|piece| piece.start <= file_offset);
        self.extent(after.checked_sub(1)?)
    }

    /// Piece number `index`, whole.
    pub(crate) fn extent(&self, index: usize) -> Option<Extent<'_>> {
        let piece = self.pieces.get(index)?;
        Some(Extent {
            target: piece.target,
            file: piece.start..self.end_of(index),
            object_offset: piece.object_offset,
            object: self.objects.get(piece.object as usize).map(String::as_str),
        })
    }

    /// Number of the first piece that ends after byte `from`.
    pub(crate) fn first_from(&self, from: u64) -> usize {
        self.pieces.partition_point(|piece| piece.start <= from).saturating_sub(1)
    }

    /// Entries of `by_target` that belong to `target`.
    pub(crate) fn entries(&self, target: TargetIndex) -> Range<usize> {
        let of = |entry: &u32| self.pieces.get(*entry as usize).map_or(TargetIndex::MAX, |p| p.target);
        self.by_target.partition_point(|e| of(e) < target)
            ..self.by_target.partition_point(|e| of(e) <= target)
    }

    /// The first of `entries` (all of one target) whose piece ends after byte `from`; `entries.end` if none.
    pub(crate) fn entry_from(&self, entries: Range<usize>, from: u64) -> usize {
        let of_target = self.by_target.get(entries.clone()).unwrap_or_default();
        entries.start + of_target.partition_point(|piece| self.end_of(*piece as usize) <= from)
    }

    /// The piece behind an entry of `by_target`, as a run of its target.
    pub(crate) fn run(&self, entry: usize) -> Option<Run<'_>> {
        let extent = self.extent(*self.by_target.get(entry)? as usize)?;
        Some(Run { file: extent.file, object_offset: extent.object_offset, object: extent.object })
    }

    /// Bytes of `target` in `0..end` of the file.
    pub(crate) fn bytes_before(&self, target: TargetIndex, end: u64) -> u64 {
        let entries = self.entries(target);
        let at = self.entry_from(entries.clone(), end);
        if let (true, Some(run), Some(before)) = (at < entries.end, self.run(at), self.before.get(at)) {
            return before + end.saturating_sub(run.file.start);
        }
        let Some(last) = at.checked_sub(1).filter(|last| entries.contains(last)) else { return 0 };
        let piece = self.run(last).map_or(0, |run| run.file.end - run.file.start);
        self.before.get(last).copied().unwrap_or(0) + piece
    }

    fn end_of(&self, index: usize) -> u64 {
        self.pieces.get(index + 1).map_or(self.len, |next| next.start)
    }

    fn refuse_shared(&self, lines: &[usize]) -> Result<(), LayoutError> {
        let mut order: Vec<(TargetIndex, u32, u64, usize)> = (self.pieces.iter().enumerate())
            .map(|(index, piece)| (piece.target, piece.object, piece.object_offset, index))
            .collect();
        order.sort_unstable();
        for (a, b) in order.iter().zip(order.iter().skip(1)) {
            let (target, object, object_offset, index) = *b;
            let a_len = self.extent(a.3).map_or(0, |extent| extent.file.end - extent.file.start);
            if (a.0, a.1) == (target, object) && a.2 + a_len > object_offset {
                let line = |index: usize| lines.get(index).copied().unwrap_or(index);
                let (one, other) = (line(a.3.min(index)), line(a.3.max(index)));
                let object = self.objects.get(object as usize).cloned().unwrap_or_default();
                return Err(LayoutError::SegmentShared { one, other, target, object, object_offset });
            }
        }
        Ok(())
    }

    fn index(&mut self) {
        // Below MAX_SEGMENTS, and so fits a u32. Sorting by number too keeps file order within a target.
        let mut keyed: Vec<(TargetIndex, u32)> =
            self.pieces.iter().enumerate().map(|(index, piece)| (piece.target, index as u32)).collect();
        keyed.sort_unstable();
        let (mut last, mut sum) = (None, 0u64);
        for (target, index) in keyed {
            if last != Some(target) {
                (last, sum) = (Some(target), 0);
            }
            self.by_target.push(index);
            self.before.push(sum);
            sum += self.end_of(index as usize) - self.pieces.get(index as usize).map_or(0, |p| p.start);
        }
    }
}

/// One line of the table, which must start at `expected`.
fn check(index: usize, segment: &Segment, expected: u64, targets: u32) -> Result<(), LayoutError> {
    let Range { start, end } = segment.file;
    if end <= start {
        return Err(LayoutError::SegmentEmpty { index, start, end });
    }
    if start != expected {
        return Err(LayoutError::SegmentOrder { index, expected, found: start });
    }
    if end > MAX_FILE_BYTES {
        return Err(LayoutError::FileTooLong { bytes: end });
    }
    if segment.target >= targets {
        return Err(LayoutError::UnknownTarget { target: segment.target, targets });
    }
    let bytes = segment.object.len();
    if bytes == 0 || bytes > MAX_OBJECT_NAME {
        return Err(LayoutError::SegmentObject { index, bytes });
    }
    if segment.object_offset > MAX_FILE_BYTES - (end - start) {
        let (target, object_offset) = (segment.target, segment.object_offset);
        return Err(LayoutError::ObjectOffset { target, object_offset });
    }
    Ok(())
}
