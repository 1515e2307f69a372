//! Stripes of a file in place that lie near some targets: each component of the file has a cycle of its own.

use crate::{LayoutError, MAX_CYCLE, MAX_STRIPES_IN_PLACE, MAX_UNIT, Segment, Segments, TargetIndex};

/// A range of a file whose stripes repeat a cycle of targets. It begins where the component before ends. Stripe `i` of the
/// *file* (bytes `i*unit .. (i+1)*unit`) belongs to target `cycle[i % cycle.len()]`. So it is in Lustre's composite layouts
/// (`lov_offset.c`), with one object for each entry of the cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Component<'a> {
    /// The first byte behind it. The last component may end behind the file.
    pub end: u64,
    /// Bytes of a stripe.
    pub unit: u64,
    /// The targets of the stripes; a target may occur several times.
    pub cycle: &'a [TargetIndex],
}

impl Segments {
    /// The layout of a file of `length` bytes that all targets read where it lies. The components say which records each target
    /// owns.
    ///
    /// ```
    /// use gristmill_layout::{Component, Layout, Segments};
    ///
    /// let components = [
    ///     Component { end: 4, unit: 4, cycle: &[2] },
    ///     Component { end: u64::MAX, unit: 2, cycle: &[0, 1, 0] },
    /// ];
    /// let layout = Layout::from(Segments::of_components(3, 11, components)?);
    /// let owners: Vec<_> = layout.extents(0..11).map(|extent| (extent.file, extent.target)).collect();
    /// assert_eq!(owners, [(0..4, 2), (4..8, 0), (8..10, 1), (10..11, 0)]);
    /// assert!(layout.is_in_place());
    /// # Ok::<(), gristmill_layout::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// [`LayoutError::Components`] if the components do not cover the file, if a cycle is empty or longer than [`MAX_CYCLE`], or if
    /// there are more than [`MAX_STRIPES_IN_PLACE`] stripes; [`LayoutError::Unit`]; what [`Segments::new`] refuses.
    pub fn of_components<'a>(
        targets: u32,
        length: u64,
        components: impl IntoIterator<Item = Component<'a>>,
    ) -> Result<Segments, LayoutError> {
        let components: Vec<Component<'_>> = components.into_iter().collect();
        Self::check_components(targets, length, components.iter().copied())?;
        let (mut table, mut start) = (Vec::new(), 0);
        for Component { end, unit, cycle } in components {
            let end = end.min(length);
            while start < end {
                let stripe = start / unit;
                // Below the length of the cycle, which fits a usize.
                let target = cycle.get((stripe % cycle.len() as u64) as usize).copied().unwrap_or_default();
                let stop = stripe.saturating_add(1).saturating_mul(unit).min(end);
                table.push(Segment {
                    file: start..stop,
                    target,
                    object: IN_PLACE.into(),
                    object_offset: start,
                });
                start = stop;
            }
        }
        Ok(Segments::new(targets, table)?.in_place().without_names())
    }

    /// Checks that components make a layout, without making it.
    ///
    /// # Errors
    /// As for [`of_components`](Segments::of_components).
    pub fn check_components<'a>(
        targets: u32,
        length: u64,
        components: impl IntoIterator<Item = Component<'a>>,
    ) -> Result<(), LayoutError> {
        let wrong = |why| LayoutError::Components { why };
        let (mut stripes, mut start) = (0u64, 0);
        for Component { end, unit, cycle } in components {
            if unit == 0 || unit > MAX_UNIT {
                return Err(LayoutError::Unit { unit });
            }
            if cycle.is_empty() || cycle.len() > MAX_CYCLE {
                return Err(wrong("a cycle has no targets, or too many"));
            }
            if let Some(target) = cycle.iter().copied().find(|target| *target >= targets) {
                return Err(LayoutError::UnknownTarget { target, targets });
            }
            let end = end.min(length);
            if start < end {
                stripes = stripes.saturating_add((end - 1) / unit - start / unit + 1);
                start = end;
            }
            if stripes > MAX_STRIPES_IN_PLACE as u64 {
                return Err(wrong("there are too many stripes"));
            }
        }
        if start < length { Err(wrong("they end before the file")) } else { Ok(()) }
    }
}

/// The object of the pieces while they are checked.
const IN_PLACE: &str = "file";
