//! The written parts of one block whose sum is not known yet.

use super::{BLOCK_BYTES, extend, extend_with_zeros, join, sum};

/// Most separate parts of a block. The sums of a block with more parts are dropped, and the block is read when the
/// object is flushed.
const MAX_PARTS: usize = 8;

/// Content of a block between its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gaps {
    /// Zeros: nothing was ever written there.
    Zeros,
    /// Bytes without a known sum.
    Unknown,
}

/// The parts of a block that have known sums, and the content between them. Offsets are within the block.
#[derive(Debug, Clone)]
pub(crate) struct Pieces {
    /// In ascending order; they neither overlap nor touch.
    parts: Vec<Part>,
    gaps: Gaps,
}

#[derive(Debug, Clone, Copy)]
struct Part {
    start: u64,
    end: u64,
    crc: u32,
}

impl Pieces {
    /// A block without parts, which contains only `gaps`.
    pub(crate) fn with_gaps(gaps: Gaps) -> Self {
        Self { parts: Vec::new(), gaps }
    }

    /// A block whose first `len` bytes have the sum `crc`. Zeros follow.
    pub(crate) fn with_start(len: u64, crc: u32) -> Self {
        let parts = if len > 0 { vec![Part { start: 0, end: len, crc }] } else { Vec::new() };
        Self { parts, gaps: Gaps::Zeros }
    }

    /// Notes that `bytes` were written at `start`. They must end within the block.
    pub(crate) fn write(&mut self, start: u64, bytes: &[u8]) {
        let end = start + bytes.len() as u64;
        debug_assert!(end <= BLOCK_BYTES);
        self.remove_overlaps(start, end);
        // A part that ends at `start` is extended, and no sums are joined. This is the case of bytes in order.
        match self.parts.iter_mut().find(|part| part.end == start) {
            Some(part) => {
                part.crc = extend(part.crc, bytes);
                part.end = end;
                self.join_at(end);
            }
            None => self.insert_part(Part { start, end, crc: sum(bytes) }),
        }
    }

    /// Notes that the bytes from `start` to `end` became zeros.
    pub(crate) fn zero(&mut self, start: u64, end: u64) {
        self.remove_overlaps(start, end);
        self.insert_part(Part { start, end, crc: extend_with_zeros(0, end - start) });
    }

    /// Notes that the object was cut, and ends at `at` of this block. If it grows again, the bytes after `at` are
    /// zeros.
    pub(crate) fn cut(&mut self, at: u64) {
        self.remove_overlaps(at, BLOCK_BYTES);
        if self.gaps == Gaps::Unknown {
            self.insert_part(Part {
                start: at,
                end: BLOCK_BYTES,
                crc: extend_with_zeros(0, BLOCK_BYTES - at),
            });
        }
    }

    /// The sum of the whole block, if all of it was written.
    pub(crate) fn whole_sum(&self) -> Option<u32> {
        match self.parts.as_slice() {
            &[Part { start: 0, end: BLOCK_BYTES, crc }] => Some(crc),
            _ => None,
        }
    }

    /// The sum of the first `len` bytes, if the sums of all their parts are known.
    pub(crate) fn sum(&self, len: u64) -> Option<u32> {
        let (mut at, mut crc) = (0, 0);
        for part in &self.parts {
            if part.start >= len {
                break;
            }
            if part.start > at {
                if self.gaps == Gaps::Unknown {
                    return None;
                }
                crc = extend_with_zeros(crc, part.start - at);
            }
            if part.end > len {
                // Only zeros that `cut` added can lie after the end of the object. They may be cut again.
                let zeros = part.crc == extend_with_zeros(0, part.end - part.start);
                return zeros.then(|| extend_with_zeros(crc, len - part.start));
            }
            crc = join(crc, part.crc, part.end - part.start);
            at = part.end;
        }
        match self.gaps {
            Gaps::Unknown if at < len => None,
            _ => Some(extend_with_zeros(crc, len - at)),
        }
    }

    /// Removes parts that overlap `start..end`. If only a piece of a part lies there, the sum of its other bytes is
    /// lost.
    fn remove_overlaps(&mut self, start: u64, end: u64) {
        let mut cut = false;
        self.parts.retain(|part| {
            let meets = part.start < end && start < part.end;
            cut |= meets && (part.start < start || end < part.end);
            !meets
        });
        if cut {
            self.forget_gaps();
        }
    }

    /// Marks the bytes between the parts as unknown.
    fn forget_gaps(&mut self) {
        self.gaps = Gaps::Unknown;
    }

    /// Inserts a part that overlaps no other part, and joins it with its neighbours.
    fn insert_part(&mut self, part: Part) {
        let at = self.parts.partition_point(|before| before.end <= part.start);
        self.parts.insert(at, part);
        self.join_at(part.start);
        self.join_at(part.end);
        if self.parts.len() > MAX_PARTS {
            self.parts.clear();
            self.forget_gaps();
        }
    }

    /// Joins the two parts that touch at `at`, if there are two.
    fn join_at(&mut self, at: u64) {
        let Some(second) = self.parts.iter().position(|part| part.start == at) else { return };
        let Some(first) = second.checked_sub(1) else { return };
        if let Some(&[a, b]) = self.parts.get(first..=second)
            && a.end == b.start
        {
            let crc = join(a.crc, b.crc, b.end - b.start);
            self.parts.splice(first..=second, [Part { start: a.start, end: b.end, crc }]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LEN: usize = BLOCK_BYTES as usize;

    #[derive(Debug, Clone)]
    enum Change {
        Write(usize, Vec<u8>),
        Zero(usize, usize),
        Cut(usize),
    }

    /// Changes at few places, so that they often overlap.
    fn change() -> impl Strategy<Value = Change> {
        let place = 0..24usize;
        prop_oneof![
            4 => (place.clone(), prop::collection::vec(any::<u8>(), 1..9)).prop_map(|(at, b)| Change::Write(at, b)),
            1 => (place.clone(), 1..9usize).prop_map(|(at, len)| Change::Zero(at, len)),
            1 => place.prop_map(Change::Cut),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// A known sum is the sum of the bytes, even if the block had unknown bytes at first.
        #[test]
        fn known_sums_match_the_bytes(
            changes in prop::collection::vec(change(), 0..12), old in prop::option::of(any::<u8>()), grow in 0..8usize,
        ) {
            let mut pieces = Pieces::with_gaps(if old.is_some() { Gaps::Unknown } else { Gaps::Zeros });
            let mut bytes = [old.unwrap_or(0); LEN];
            let mut length = if old.is_some() { LEN } else { 0 };
            for change in changes {
                match change {
                    Change::Write(at, new) => {
                        bytes[at..at + new.len()].copy_from_slice(&new);
                        length = length.max(at + new.len());
                        pieces.write(at as u64, &new);
                    }
                    Change::Zero(at, len) => {
                        let end = (at + len).min(length);
                        if at < end {
                            bytes[at..end].fill(0);
                            pieces.zero(at as u64, end as u64);
                        }
                    }
                    Change::Cut(at) if at < length => {
                        bytes[at..].fill(0);
                        length = at;
                        pieces.cut(at as u64);
                    }
                    Change::Cut(_) => {}
                }
            }
            for len in [length, LEN.min(length + grow), LEN] {
                if let Some(known) = pieces.sum(len as u64) {
                    prop_assert_eq!(known, sum(&bytes[..len]));
                }
            }
        }

        /// Parts that do not overlap give the same sum in any order.
        #[test]
        fn parts_may_come_in_any_order(cuts in prop::collection::btree_set(1..LEN, 0..12), seed in any::<u64>()) {
            let bytes: Vec<u8> = (0..LEN).map(|i| (i * 7 + seed as usize % 251) as u8).collect();
            let ends: Vec<_> = [0].into_iter().chain(cuts).chain([LEN]).collect();
            let mut parts: Vec<_> = ends.windows(2).map(|pair| pair[0]..pair[1]).collect();
            parts.sort_by_key(|part| (part.start as u64).wrapping_mul(seed | 1));
            let mut pieces = Pieces::with_gaps(Gaps::Unknown);
            for part in parts {
                pieces.write(part.start as u64, &bytes[part]);
            }
            // The sums are dropped if there are too many parts at once.
            if let Some(known) = pieces.whole_sum() {
                prop_assert_eq!(known, sum(&bytes));
            } else {
                prop_assert!(ends.len() > MAX_PARTS);
            }
        }
    }

    #[test]
    fn appending_needs_no_earlier_bytes() {
        let mut pieces = Pieces::with_start(5, sum(b"hello"));
        pieces.write(8, b"world");
        assert_eq!(pieces.sum(13), Some(sum(b"hello\0\0\0world")));
        assert_eq!(pieces.sum(15), Some(sum(b"hello\0\0\0world\0\0")));
    }

    #[test]
    fn a_cut_part_has_no_sum() {
        let mut pieces = Pieces::with_start(5, sum(b"hello"));
        pieces.write(2, b"y");
        assert_eq!(pieces.sum(5), None);
        pieces.write(0, b"he");
        assert_eq!(pieces.sum(5), None);
        pieces.write(3, b"yo");
        assert_eq!(pieces.sum(5), Some(sum(b"heyyo")));
    }

    #[test]
    fn parts_are_bounded() {
        let mut pieces = Pieces::with_gaps(Gaps::Zeros);
        for at in 0..BLOCK_BYTES / 2 {
            pieces.write(2 * at, b"x");
            assert!(pieces.parts.len() <= MAX_PARTS);
        }
        assert_eq!(pieces.sum(BLOCK_BYTES), None);
    }
}
