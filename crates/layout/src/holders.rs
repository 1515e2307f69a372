//! A set of targets, kept as intervals of their numbers.

use std::ops::Range;

use crate::TargetIndex;

#[derive(Debug, Clone, Default)]
pub(crate) struct Holders(Vec<Range<TargetIndex>>);

impl Holders {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn add(&mut self, targets: Range<TargetIndex>) {
        // Neighbouring pieces often name the same target; most sets stay at one or two intervals.
        if self.0.last() != Some(&targets) {
            self.0.push(targets);
        }
    }

    /// Add `count` targets from `first` on, going around after the last of `targets`.
    pub(crate) fn add_around(&mut self, first: TargetIndex, count: u64, targets: u32) {
        let left = targets - first;
        if count >= u64::from(targets) {
            self.add(0..targets);
        } else if count <= u64::from(left) {
            self.add(first..first + count as u32);
        } else {
            self.add(first..targets);
            self.add(0..count as u32 - left);
        }
    }

    /// Sort and join the intervals. Bounded by the number of targets afterwards.
    fn tidy(&mut self) -> &[Range<TargetIndex>] {
        if self.0.len() > 1 {
            self.0.sort_unstable_by_key(|targets| targets.start);
            self.0.dedup_by(|next, kept| {
                let joins = next.start <= kept.end;
                if joins {
                    kept.end = kept.end.max(next.end);
                }
                joins
            });
        }
        &self.0
    }

    /// How many there are, without `owner`.
    pub(crate) fn count_except(&mut self, owner: TargetIndex) -> u64 {
        let count = |targets: &Range<TargetIndex>| {
            u64::from(targets.end - targets.start) - u64::from(targets.contains(&owner))
        };
        self.tidy().iter().map(count).sum()
    }

    /// All of them, in order, each once.
    pub(crate) fn into_targets(mut self) -> impl Iterator<Item = TargetIndex> {
        self.tidy();
        self.0.into_iter().flatten()
    }
}
