//! Sets of byte intervals that are disjoint and do not touch.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::{MAX_INTERVALS, Result, StoreError};

/// A set of bytes as ordered, disjoint, half-open intervals that do not touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntervalSet(BTreeMap<u64, u64>);

impl IntervalSet {
    /// The number of intervals.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Refuses a change that would leave more than [`MAX_INTERVALS`]. `more`: the largest number that it can add.
    ///
    /// # Errors
    /// The error is [`TooLarge`](StoreError::TooLarge).
    pub fn check_change(&self, more: usize, change: impl FnOnce(&mut IntervalSet)) -> Result<()> {
        if self.len() + more <= MAX_INTERVALS {
            return Ok(());
        }
        let mut after = self.clone();
        change(&mut after);
        if after.len() > MAX_INTERVALS && after.len() > self.len() {
            let limit = MAX_INTERVALS as u64;
            return Err(StoreError::TooLarge { what: "the number of written intervals", limit });
        }
        Ok(())
    }

    /// Adds `range`, and merges it with the intervals that it overlaps or touches.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let Range { mut start, mut end } = range;
        while let Some((&s, &e)) = self.0.range(..=end).next_back()
            && e >= start
        {
            self.0.remove(&s);
            start = start.min(s);
            end = end.max(e);
        }
        self.0.insert(start, end);
    }

    /// Removes `range`, and splits intervals that continue beyond its ends.
    pub fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        while let Some((&s, &e)) = self.0.range(..range.end).next_back()
            && e > range.start
        {
            self.0.remove(&s);
            if e > range.end {
                self.0.insert(range.end, e);
            }
            if s < range.start {
                self.0.insert(s, range.start);
            }
        }
    }

    /// Returns the first intervals within `range`, cut to it, in order, at most `limit`.
    #[must_use]
    pub fn within(&self, range: Range<u64>, limit: usize) -> Vec<Range<u64>> {
        if range.is_empty() {
            return Vec::new();
        }
        let before = self.0.range(..range.start).next_back().filter(|&(_, &e)| e > range.start);
        let inside = self.0.range(range.clone());
        let all = before.into_iter().chain(inside);
        all.take(limit).map(|(&s, &e)| s.max(range.start)..e.min(range.end)).collect()
    }

    /// Encodes the intervals as pairs of start and end, each 8 bytes little-endian.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|(s, e)| [s.to_le_bytes(), e.to_le_bytes()].concat()).collect()
    }

    /// The inverse of [`IntervalSet::to_bytes`], cut to `length`. Returns `None` if the bytes do not have that form.
    #[must_use]
    pub fn from_bytes(bytes: &[u8], length: u64) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        let (pairs, odd) = words.as_chunks::<2>();
        if !rest.is_empty() || !odd.is_empty() {
            return None;
        }
        let mut set = Self::default();
        let mut free = 0;
        for &[start, end] in pairs {
            let (start, end) = (u64::from_le_bytes(start), u64::from_le_bytes(end));
            if start < free || end <= start {
                return None;
            }
            free = end;
            set.insert(start.min(length)..end.min(length));
        }
        Some(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SPACE: usize = 64;

    fn bits(set: &IntervalSet) -> Vec<bool> {
        let mut bits = vec![false; SPACE];
        let all = set.within(0..u64::MAX, usize::MAX);
        assert!(all.windows(2).all(|w| w[0].end < w[1].start), "disjoint, not touching: {all:?}");
        for r in all {
            bits[r.start as usize..r.end as usize].fill(true);
        }
        bits
    }

    proptest! {
        #[test]
        fn agrees_with_one_flag_per_byte(
            changes in prop::collection::vec((any::<bool>(), 0..SPACE, 0..SPACE), 0..40),
            cut in 0..SPACE, window in (0..SPACE, 0..SPACE),
        ) {
            let mut set = IntervalSet::default();
            let mut flags = vec![false; SPACE];
            for (add, a, b) in changes {
                let range = a as u64..b as u64;
                if add { set.insert(range) } else { set.remove(range) }
                if a < b { flags[a..b].fill(add) }
                prop_assert_eq!(bits(&set), flags.clone());
            }
            let seen = set.within(window.0 as u64..window.1 as u64, usize::MAX);
            let covered: u64 = seen.iter().map(|r| r.end - r.start).sum();
            let expected = (window.0..window.1.max(window.0)).filter(|&i| flags[i]).count();
            prop_assert_eq!(covered, expected as u64);
            let back = IntervalSet::from_bytes(&set.to_bytes(), cut as u64).unwrap();
            flags[cut..].fill(false);
            prop_assert_eq!(bits(&back), flags);
        }

        #[test]
        fn foreign_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Some(set) = IntervalSet::from_bytes(&bytes, u64::MAX) {
                prop_assert!(set.len() <= bytes.len() / 16);
            }
        }
    }
}
