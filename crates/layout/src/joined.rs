//! The layouts of several files as one.

use crate::{Layout, LayoutError, Segment, Segments, TargetIndex};

impl Layout {
    /// Several files, one behind the other: each with its layout, its bytes, and the places of its targets among the
    /// `targets` of all. An extent names as its object the number of the file; offsets are those in that file's own object.
    /// The joined layout is in place if all files with bytes are.
    ///
    /// ```
    /// use gristmill_layout::{Layout, Striped};
    ///
    /// let files = [
    ///     (Striped::new(10, 2, 0)?.into(), 30, vec![0, 2]),
    ///     (Striped::new(10, 1, 0)?.into(), 5, vec![1]),
    /// ];
    /// let all = Layout::joined(&files, 3)?;
    /// let places: Vec<_> = all.extents(5..35).map(|e| (e.target, e.file, e.object.map(str::to_owned))).collect();
    /// let named = |name: &str| Some(name.to_owned());
    /// assert_eq!(places, [
    ///     (0, 5..10, named("0")), (2, 10..20, named("0")), (0, 20..30, named("0")), (1, 30..35, named("1")),
    /// ]);
    /// # Ok::<(), gristmill_layout::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// [`LayoutError::Joined`] for a target without a place and for a segments file, whose layout names objects itself; what
    /// [`Segments::new`] refuses.
    pub fn joined(files: &[(Layout, u64, Vec<TargetIndex>)], targets: u32) -> Result<Layout, LayoutError> {
        let mut table = Vec::new();
        let mut start = 0u64;
        let mut with_bytes = files.iter().filter(|(_, length, _)| *length > 0).peekable();
        let in_place = with_bytes.peek().is_some() && with_bytes.all(|(layout, ..)| layout.is_in_place());
        for (number, (layout, length, places)) in files.iter().enumerate() {
            let object = number.to_string();
            for extent in layout.extents(0..*length) {
                let wrong = |why: &str| LayoutError::Joined { why: format!("file {number}: {why}") };
                if extent.object.is_some() {
                    return Err(wrong("it was written in segments; get it and put it again"));
                }
                let target = places.get(extent.target as usize).copied();
                let target = target.ok_or_else(|| wrong("a target has no place"))?;
                let file = start + extent.file.start..start + extent.file.end;
                let object_offset = extent.object_offset;
                if table.len() >= crate::MAX_SEGMENTS {
                    return Err(LayoutError::TooManySegments);
                }
                table.push(Segment { file, target, object: object.clone(), object_offset });
            }
            start = start.saturating_add(*length);
        }
        let segments = Segments::new(targets, table)?;
        Ok(if in_place { segments.in_place() } else { segments }.into())
    }
}
