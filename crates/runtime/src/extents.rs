//! Sets of positions, as sorted ranges that neither overlap nor touch.

use std::ops::Range;

use crate::RunError;

/// A set of positions, such as those of the folded records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtentSet {
    ranges: Vec<Range<u64>>,
}

impl ExtentSet {
    /// The empty set.
    pub const fn new() -> ExtentSet {
        ExtentSet { ranges: Vec::new() }
    }

    /// The set of one range. It is empty if the range is empty.
    pub fn from_range(range: Range<u64>) -> ExtentSet {
        if range.is_empty() { ExtentSet::new() } else { ExtentSet { ranges: vec![range] } }
    }

    /// The ranges, sorted. No range touches another.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of positions.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// Adds a range. Adding in ascending order costs constant time.
    ///
    /// # Errors
    /// The error is [`RunError::Overlap`] if the set has positions of the range already.
    pub fn add(&mut self, range: Range<u64>) -> Result<(), RunError> {
        if range.is_empty() {
            return Ok(());
        }
        let at = self.ranges.partition_point(|other| other.end < range.start);
        // Ranges from `at` on end at or behind our start. Ranges up to `to` begin before or at our end.
        let to = at + self.ranges[at..].partition_point(|other| other.start <= range.end);
        for other in &self.ranges[at..to] {
            let common = range.start.max(other.start)..range.end.min(other.end);
            if !common.is_empty() {
                return Err(RunError::Overlap { at: common });
            }
        }
        let mut merged = range;
        for other in &self.ranges[at..to] {
            merged = merged.start.min(other.start)..merged.end.max(other.end);
        }
        self.ranges.splice(at..to, [merged]);
        Ok(())
    }

    /// The set of ranges in any order.
    ///
    /// # Errors
    /// The error is [`RunError::Overlap`] if two of them overlap.
    pub fn from_ranges(mut ranges: Vec<Range<u64>>) -> Result<ExtentSet, RunError> {
        ranges.retain(|range| !range.is_empty());
        ranges.sort_unstable_by_key(|range| range.start);
        let mut out: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match out.last_mut() {
                Some(last) if range.start < last.end => {
                    return Err(RunError::Overlap { at: range.start..range.end.min(last.end) });
                }
                Some(last) if range.start == last.end => last.end = range.end,
                _ => out.push(range),
            }
        }
        Ok(ExtentSet { ranges: out })
    }

    /// Adds a set that has no position in common with this one.
    ///
    /// # Errors
    /// The error is [`RunError::Overlap`] if the sets have positions in common. After an error this set may have some
    /// of the other's ranges.
    pub fn union(&mut self, other: &ExtentSet) -> Result<(), RunError> {
        // A few ranges are added by binary search.
        const FEW: usize = 8;
        if other.ranges.len() <= FEW {
            return other.ranges.iter().try_for_each(|range| self.add(range.clone()));
        }
        *self = ExtentSet::from_ranges(self.ranges.iter().chain(&other.ranges).cloned().collect())?;
        Ok(())
    }

    /// The ranges of `within` that are not in the set, in order.
    pub fn gaps(&self, within: Range<u64>) -> Vec<Range<u64>> {
        let mut gaps = Vec::new();
        let mut at = within.start;
        for range in &self.ranges {
            if range.start >= within.end {
                break;
            }
            if range.start > at {
                gaps.push(at..range.start);
            }
            at = at.max(range.end);
        }
        if at < within.end {
            gaps.push(at..within.end);
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_set_agrees_with_a_bitmap(ranges in prop::collection::vec((0u64..40, 0u64..9), 0..12), split in 0usize..12) {
            let mut bits = [false; 64];
            let (mut left, mut right) = (ExtentSet::new(), ExtentSet::new());
            for (i, (start, len)) in ranges.iter().enumerate() {
                let range = *start..start + len;
                let cells = range.start as usize..range.end as usize;
                let taken = cells.clone().any(|i| bits[i]);
                let side = if i < split { &mut left } else { &mut right };
                let before = side.clone();
                match side.add(range) {
                    Ok(()) if !taken => bits[cells].fill(true),
                    Ok(()) => *side = before,
                    Err(_) => prop_assert!(taken && *side == before),
                }
            }
            left.union(&right).unwrap();
            prop_assert_eq!(left.count(), bits.iter().filter(|bit| **bit).count() as u64);
            for gap in left.gaps(0..64) {
                prop_assert!(!gap.is_empty() && gap.clone().all(|i| !bits[i as usize]));
            }
            let gaps: u64 = left.gaps(0..64).iter().map(|g| g.end - g.start).sum();
            prop_assert_eq!(gaps + left.count(), 64);
            for pair in left.ranges().windows(2) {
                prop_assert!(pair[0].end < pair[1].start);
            }
        }
    }
}
