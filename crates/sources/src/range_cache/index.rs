//! The ranges that are kept, and the order in which they were used.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::{ObjectName, on_disk};

/// A range of one version of an object. Ranges of one object do not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Kept {
    pub object: ObjectName,
    pub start: u64,
    pub len: u64,
}

/// The length of a range, and the time of its last use.
#[derive(Clone, Copy)]
struct Slot {
    len: u64,
    used: u64,
}

/// All ranges.
#[derive(Default)]
pub(super) struct Index {
    objects: HashMap<ObjectName, BTreeMap<u64, Slot>>,
    by_use: BTreeMap<u64, Kept>,
    bytes: u64,
    /// The number of uses, which serves as time.
    now: u64,
}

impl Index {
    /// Adds a range, which is used now. Returns false if it overlaps another one, or ends after all numbers.
    pub fn insert(&mut self, kept: Kept) -> bool {
        let Some(end) = kept.start.checked_add(kept.len) else { return false };
        if kept.len == 0 || self.gaps(&kept.object, kept.start..end).first() != Some(&(kept.start..end)) {
            return false;
        }
        self.now += 1;
        let slot = Slot { len: kept.len, used: self.now };
        self.objects.entry(kept.object).or_default().insert(kept.start, slot);
        self.by_use.insert(self.now, kept);
        self.bytes = self.bytes.saturating_add(on_disk(kept.len));
        true
    }

    /// The range that has the byte at an offset, or the first one after it.
    fn at_or_after(&self, object: &ObjectName, at: u64) -> Option<(u64, Slot)> {
        let ranges = self.objects.get(object)?;
        let before = ranges.range(..=at).next_back().filter(|(start, slot)| **start + slot.len > at);
        before.or_else(|| ranges.range(at..).next()).map(|(start, slot)| (*start, *slot))
    }

    /// The range that has the byte at an offset. It is used now.
    pub fn touch(&mut self, object: &ObjectName, at: u64) -> Option<Kept> {
        let (start, slot) = self.at_or_after(object, at).filter(|(start, _)| *start <= at)?;
        let kept = Kept { object: *object, start, len: slot.len };
        self.now += 1;
        self.by_use.remove(&slot.used);
        self.by_use.insert(self.now, kept);
        self.objects.get_mut(object)?.get_mut(&start)?.used = self.now;
        Some(kept)
    }

    /// The parts of a range that are not kept, in ascending order.
    pub fn gaps(&self, object: &ObjectName, range: Range<u64>) -> Vec<Range<u64>> {
        let (mut gaps, mut at) = (Vec::new(), range.start);
        while at < range.end {
            let next = self.at_or_after(object, at).filter(|(start, _)| *start < range.end);
            let (start, end) = next.map_or((range.end, range.end), |(start, slot)| (start, start + slot.len));
            if start > at {
                gaps.push(at..start);
            }
            at = end;
        }
        gaps
    }

    pub fn remove(&mut self, kept: &Kept) {
        let Some(ranges) = self.objects.get_mut(&kept.object) else { return };
        // Another one may have its place since.
        if ranges.get(&kept.start).is_some_and(|slot| slot.len == kept.len)
            && let Some(slot) = ranges.remove(&kept.start)
        {
            self.by_use.remove(&slot.used);
            self.bytes -= on_disk(slot.len);
        }
        if ranges.is_empty() {
            self.objects.remove(&kept.object);
        }
    }

    /// Removes the range that was not used for the longest time.
    pub fn pop_oldest(&mut self) -> Option<Kept> {
        let kept = *self.by_use.first_key_value()?.1;
        self.remove(&kept);
        Some(kept)
    }

    /// The bytes on the disk, and the number of ranges.
    pub fn size(&self) -> (u64, usize) {
        (self.bytes, self.by_use.len())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::single_range_in_vec_init, reason = "gaps are ranges")]

    use proptest::prelude::*;

    use super::*;

    const OBJECT: ObjectName = [7; 16];

    fn kept(start: u64, len: u64) -> Kept {
        Kept { object: OBJECT, start, len }
    }

    proptest! {
        #[test]
        fn gaps_are_what_no_range_has(
            ranges in proptest::collection::vec((0u64..200, 0u64..20), 0..30),
            asked in (0u64..200, 0u64..100),
            removed in 0usize..10,
        ) {
            let (mut index, mut bytes) = (Index::default(), vec![false; 400]);
            for (start, len) in ranges {
                let free = len > 0 && (start..start + len).all(|at| !bytes[at as usize]);
                prop_assert_eq!(index.insert(kept(start, len)), free);
                if free {
                    (start..start + len).for_each(|at| bytes[at as usize] = true);
                }
            }
            for _ in 0..removed {
                if let Some(oldest) = index.pop_oldest() {
                    (oldest.start..oldest.start + oldest.len).for_each(|at| bytes[at as usize] = false);
                }
            }
            let asked = asked.0..asked.0 + asked.1;
            let gaps = index.gaps(&OBJECT, asked.clone());
            for at in asked {
                prop_assert_eq!(gaps.iter().any(|gap| gap.contains(&at)), !bytes[at as usize], "{}", at);
                let found = index.touch(&OBJECT, at);
                prop_assert_eq!(found.is_some(), bytes[at as usize]);
                prop_assert!(found.is_none_or(|found| (found.start..found.start + found.len).contains(&at)));
            }
            prop_assert!(index.gaps(&[8; 16], 0..5) == [0..5]);
        }
    }

    #[test]
    fn the_longest_unused_range_is_the_oldest() {
        let mut index = Index::default();
        assert!((0..3).all(|start| index.insert(kept(start, 1))));
        assert_eq!(index.touch(&OBJECT, 0), Some(kept(0, 1)));
        assert_eq!(index.size(), (3 * on_disk(1), 3));
        let order = [index.pop_oldest(), index.pop_oldest(), index.pop_oldest(), index.pop_oldest()];
        assert_eq!(order, [Some(kept(1, 1)), Some(kept(2, 1)), Some(kept(0, 1)), None]);
        assert_eq!(index.size(), (0, 0));
        assert!(!index.insert(kept(u64::MAX, 2)));
    }
}
