//! The part of a range that lies on one target.

use std::ops::Range;

use crate::{Layout, Segments, Striped, TargetIndex};

/// Bytes that lie together on the target that was asked about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Run<'a> {
    /// The bytes of the file; at least one.
    pub file: Range<u64>,
    /// Where in the object the first of them lies.
    pub object_offset: u64,
    /// The object, where the layout names it ([`Segments`]); `None` for the one object that a striped file has
    /// on each target.
    pub object: Option<&'a str>,
}

/// Runs of one target in file order; see [`Layout::runs`].
#[derive(Debug, Clone)]
pub struct Runs<'a>(Kind<'a>);

#[derive(Debug, Clone)]
enum Kind<'a> {
    Striped { striped: Striped, target: TargetIndex, left: Range<u64> },
    Segments { segments: &'a Segments, entries: Range<usize>, left: Range<u64> },
}

impl<'a> Runs<'a> {
    pub(crate) fn new(layout: &'a Layout, target: TargetIndex, file: Range<u64>) -> Self {
        let left = layout.cut(file);
        Self(match layout {
            Layout::Striped(striped) => Kind::Striped { striped: *striped, target, left },
            Layout::Segments(segments) => {
                let entries = segments.entries(target);
                let first = segments.entry_from(entries.clone(), left.start);
                Kind::Segments { segments, entries: first..entries.end, left }
            }
        })
    }
}

impl<'a> Iterator for Runs<'a> {
    type Item = Run<'a>;

    fn next(&mut self) -> Option<Run<'a>> {
        let (whole, object_offset, object, left) = match &mut self.0 {
            Kind::Striped { striped, target, left } => {
                let whole = striped.run_from(*target, left.start)?;
                let object_offset = striped.object_offset(whole.start);
                (whole, object_offset, None, left)
            }
            Kind::Segments { segments, entries, left } => {
                let run = segments.run(entries.next()?)?;
                (run.file, run.object_offset, run.object, left)
            }
        };
        let file = whole.start.max(left.start)..whole.end.min(left.end);
        if file.start >= file.end {
            left.start = left.end;
            return None;
        }
        left.start = file.end;
        let object_offset = object_offset + (file.start - whole.start);
        Some(Run { file, object_offset, object })
    }
}
