//! A range of the file, cut where the target changes.

use std::ops::Range;

use crate::{Layout, Segments, Striped, TargetIndex};

/// Bytes that lie together on one target.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Extent<'a> {
    /// The target that holds them.
    pub target: TargetIndex,
    /// The bytes of the file; at least one.
    pub file: Range<u64>,
    /// Where in the object the first of them lies.
    pub object_offset: u64,
    /// The object, where the layout names it ([`Segments`]); `None` for the one object that a striped file, or one in place, has
    /// on each target.
    pub object: Option<&'a str>,
}

/// Extents in file order; see [`Layout::extents`].
#[derive(Debug, Clone)]
pub struct Extents<'a> {
    kind: Kind<'a>,
    /// The target that reads all bytes, if the file is in place.
    reader: Option<TargetIndex>,
}

#[derive(Debug, Clone)]
enum Kind<'a> {
    Striped { striped: Striped, left: Range<u64> },
    Segments { segments: &'a Segments, next: usize, left: Range<u64> },
}

impl<'a> Extents<'a> {
    pub(crate) fn new(layout: &'a Layout, file: Range<u64>) -> Self {
        let left = layout.cut(file);
        let kind = match layout {
            Layout::Striped(striped) => Kind::Striped { striped: *striped, left },
            Layout::Segments(segments) => {
                Kind::Segments { segments, next: segments.first_from(left.start), left }
            }
        };
        Self { kind, reader: None }
    }

    /// The same bytes of a file in place, all of them as this target reads them.
    pub(crate) fn read_by(self, reader: TargetIndex) -> Self {
        Self { reader: Some(reader), ..self }
    }
}

impl<'a> Iterator for Extents<'a> {
    type Item = Extent<'a>;

    fn next(&mut self) -> Option<Extent<'a>> {
        let reader = self.reader;
        match &mut self.kind {
            Kind::Striped { left, .. } | Kind::Segments { left, .. } if left.start >= left.end => None,
            Kind::Striped { striped, left } => {
                let start = left.start;
                let is_whole = striped.targets() == 1 || reader.is_some();
                left.start = if is_whole { left.end } else { striped.stripe_end(start).min(left.end) };
                Some(Extent {
                    target: reader.unwrap_or_else(|| striped.target_of(start)),
                    file: start..left.start,
                    object_offset: striped.object_offset(start),
                    object: None,
                })
            }
            Kind::Segments { segments, next, left } => {
                let whole = segments.extent(*next)?;
                *next += 1;
                let file = left.start..whole.file.end.min(left.end);
                left.start = file.end;
                let object_offset = whole.object_offset + (file.start - whole.file.start);
                Some(Extent { target: reader.unwrap_or(whole.target), file, object_offset, ..whole })
            }
        }
    }
}
