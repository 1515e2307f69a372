//! The sums of consecutive blocks, and their encoding.

use super::{SEGMENT_BLOCKS, sum};

/// Knowledge about the bytes of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockSum {
    /// Nothing was written there: all bytes are zeros.
    Zeros,
    /// The bytes may have any values: a release without sums, or a process that ended early, wrote them.
    Unknown,
    /// The CRC-32C of the block's bytes up to the end of the object.
    Crc(u32),
}

/// The sums of up to [`SEGMENT_BLOCKS`] blocks. Blocks after the last listed one are `beyond`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    sums: Vec<BlockSum>,
    beyond: BlockSum,
}

/// Bytes of one block's entry: a tag and a CRC, little-endian.
const ENTRY_BYTES: usize = 5;
const ZEROS_TAG: u8 = 0;
const UNKNOWN_TAG: u8 = 1;
const CRC_TAG: u8 = 2;

impl Segment {
    /// A segment whose blocks are all `beyond`: [`BlockSum::Zeros`] or [`BlockSum::Unknown`].
    pub(crate) fn filled_with(beyond: BlockSum) -> Self {
        Self { sums: Vec::new(), beyond }
    }

    /// The sum of block `index` of this segment.
    pub(crate) fn get(&self, index: usize) -> BlockSum {
        self.sums.get(index).copied().unwrap_or(self.beyond)
    }

    /// Sets the sum of block `index`, which is less than [`SEGMENT_BLOCKS`].
    pub(crate) fn set(&mut self, index: usize, sum: BlockSum) {
        debug_assert!(index < SEGMENT_BLOCKS as usize);
        if index >= self.sums.len() {
            self.sums.resize(index + 1, self.beyond);
        }
        if let Some(entry) = self.sums.get_mut(index) {
            *entry = sum;
        }
    }

    /// Makes the blocks from `index` on zeros.
    pub(crate) fn cut(&mut self, index: usize) {
        self.sums.truncate(index);
        self.sums.resize(index, self.beyond);
        self.beyond = BlockSum::Zeros;
    }

    /// Encodes the segment: the tag of `beyond`, the entries, and the CRC-32C of both.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(1 + ENTRY_BYTES * self.sums.len() + 4);
        bytes.push(tag(self.beyond).0);
        for &entry in &self.sums {
            let (tag, crc) = tag(entry);
            bytes.push(tag);
            bytes.extend(crc.to_le_bytes());
        }
        bytes.extend(sum(&bytes).to_le_bytes());
        bytes
    }

    /// The inverse of [`Segment::to_bytes`]. Returns `None` if the bytes do not have that form or their CRC is wrong.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (body, crc) = bytes.split_last_chunk::<4>()?;
        if sum(body) != u32::from_le_bytes(*crc) {
            return None;
        }
        let (&beyond, entries) = body.split_first()?;
        let (entries, rest) = entries.as_chunks::<ENTRY_BYTES>();
        if !rest.is_empty() || entries.len() > SEGMENT_BLOCKS as usize {
            return None;
        }
        let read = |&[tag, a, b, c, d]: &[u8; ENTRY_BYTES]| untag(tag, u32::from_le_bytes([a, b, c, d]));
        let beyond = untag(beyond, 0).filter(|beyond| !matches!(beyond, BlockSum::Crc(_)))?;
        Some(Self { sums: entries.iter().map(read).collect::<Option<_>>()?, beyond })
    }
}

fn tag(sum: BlockSum) -> (u8, u32) {
    match sum {
        BlockSum::Zeros => (ZEROS_TAG, 0),
        BlockSum::Unknown => (UNKNOWN_TAG, 0),
        BlockSum::Crc(crc) => (CRC_TAG, crc),
    }
}

fn untag(tag: u8, crc: u32) -> Option<BlockSum> {
    match tag {
        ZEROS_TAG => Some(BlockSum::Zeros),
        UNKNOWN_TAG => Some(BlockSum::Unknown),
        CRC_TAG => Some(BlockSum::Crc(crc)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_sum() -> impl Strategy<Value = BlockSum> {
        prop_oneof![Just(BlockSum::Zeros), Just(BlockSum::Unknown), any::<u32>().prop_map(BlockSum::Crc)]
    }

    proptest! {
        #[test]
        fn bytes_restore_the_segment(
            sums in prop::collection::vec((0..SEGMENT_BLOCKS as usize, any_sum()), 0..40),
            known in any::<bool>(), cut in prop::option::of(0..SEGMENT_BLOCKS as usize),
        ) {
            let beyond = if known { BlockSum::Zeros } else { BlockSum::Unknown };
            let mut segment = Segment::filled_with(beyond);
            let mut plain = [beyond; SEGMENT_BLOCKS as usize];
            for (index, sum) in sums {
                segment.set(index, sum);
                plain[index] = sum;
            }
            if let Some(cut) = cut {
                segment.cut(cut);
                plain[cut..].fill(BlockSum::Zeros);
            }
            let back = Segment::from_bytes(&segment.to_bytes()).unwrap();
            for (index, sum) in plain.into_iter().enumerate() {
                prop_assert_eq!(back.get(index), sum);
            }
        }

        #[test]
        fn a_changed_bit_is_detected(index in 0..SEGMENT_BLOCKS as usize, crc in any::<u32>(), bit in 0..100_000usize) {
            let mut segment = Segment::filled_with(BlockSum::Zeros);
            segment.set(index, BlockSum::Crc(crc));
            let mut bytes = segment.to_bytes();
            let bit = bit % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Segment::from_bytes(&bytes), None);
        }

        #[test]
        fn foreign_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut sealed = bytes.clone();
            sealed.extend(sum(&bytes).to_le_bytes());
            for bytes in [bytes, sealed] {
                if let Some(segment) = Segment::from_bytes(&bytes) {
                    prop_assert_eq!(segment.to_bytes(), bytes);
                }
            }
        }
    }
}
