//! The record of an object, which its head has: everything but the bytes and the attributes.
//!
//! ```text
//! bytes 0..4   "GRO1"
//! byte  4      1 if the object may have changed since the record was written, else 0
//! bytes 5..    version u64, length u64, modified i64, generation u64, lease (u8: whether there is one, i64),
//!              number of pieces u32, for each its index u64 and its salt u8,
//!              number of written intervals u32, for each its start u64 and its end u64
//! last 4       CRC-32C of bytes 5.. before it
//! ```
//! All numbers are little-endian, and times are nanoseconds since 1970.

use std::collections::BTreeMap;

use gristmill_store::rules::IntervalSet;
use gristmill_store::{MAX_INTERVALS, Version};

use crate::piece::{MAX_OBJECT, MAX_PIECES, pieces_of};

const MAGIC: &[u8; 4] = b"GRO1";

/// Where a record has its mark of a change.
pub(crate) const CHANGED_AT: u64 = 4;

/// Bytes before the part with the checksum.
const HEAD: usize = 5;

/// Most bytes of a record.
pub(crate) const MAX_RECORD: usize = 64 + 9 * MAX_PIECES as usize + 16 * MAX_INTERVALS;

/// The state of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub version: Version,
    pub length: u64,
    /// Time of the last change of the version.
    pub modified: i64,
    /// Names the pieces of the object, so that they are never those of another object that had its name.
    pub generation: u64,
    /// End of the lease of an object that is still arriving.
    pub lease: Option<i64>,
    /// The salts of the pieces that there are.
    pub pieces: BTreeMap<u64, u8>,
    pub written: IntervalSet,
}

impl Record {
    /// The bytes of the record. `changed`: whether the object may change before it is written again.
    pub fn to_bytes(&self, changed: bool) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(u8::from(changed));
        for number in [self.version.0, self.length, self.modified.cast_unsigned(), self.generation] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.push(u8::from(self.lease.is_some()));
        bytes.extend(self.lease.unwrap_or(0).to_le_bytes());
        // A change that failed may have left pieces after the end. Recovery removes what the record does not name.
        let pieces = self.pieces.range(..pieces_of(self.length));
        // Both numbers are bounded, see `MAX_PIECES` and `MAX_INTERVALS`.
        bytes.extend((pieces.clone().count() as u32).to_le_bytes());
        for (index, salt) in pieces {
            bytes.extend(index.to_le_bytes());
            bytes.push(*salt);
        }
        bytes.extend((self.written.len() as u32).to_le_bytes());
        bytes.extend(self.written.to_bytes());
        let sum = crc32c::crc32c(bytes.get(HEAD..).unwrap_or(&[]));
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    /// The inverse of [`Record::to_bytes`]: the record, and whether the object may have changed since it was written. `None` if the bytes
    /// are no record.
    pub fn from_bytes(bytes: &[u8]) -> Option<(Record, bool)> {
        let (start, rest) = bytes.split_at_checked(HEAD)?;
        let (body, sum) = rest.split_last_chunk::<4>()?;
        let (magic, changed) = start.split_last_chunk::<1>()?;
        if magic != MAGIC || crc32c::crc32c(body) != u32::from_le_bytes(*sum) {
            return None;
        }
        let mut rest = body;
        let [version, length, modified, generation] = numbers(&mut rest)?;
        let [has_lease] = *take::<1>(&mut rest)?;
        let lease = i64::from_le_bytes(*take(&mut rest)?);
        let count = u32::from_le_bytes(*take(&mut rest)?);
        if length > MAX_OBJECT || u64::from(count) > MAX_PIECES {
            return None;
        }
        let mut pieces = BTreeMap::new();
        for _ in 0..count {
            let index = u64::from_le_bytes(*take(&mut rest)?);
            let [salt] = *take::<1>(&mut rest)?;
            let last = pieces.last_key_value().is_none_or(|(&last, _)| last < index);
            if !last || index >= pieces_of(length) {
                return None;
            }
            pieces.insert(index, salt);
        }
        let count = u32::from_le_bytes(*take(&mut rest)?);
        if count as usize > MAX_INTERVALS || rest.len() != count as usize * 16 {
            return None;
        }
        let written = IntervalSet::from_bytes(rest, length)?;
        let record = Record {
            version: Version(version),
            length,
            modified: modified.cast_signed(),
            generation,
            lease: (has_lease == 1).then_some(lease),
            pieces,
            written,
        };
        Some((record, *changed != [0]))
    }
}

/// Reads the record in the head of an object and writes it again, as it was read. `None` if the bytes are no record, for example because their
/// checksum is another one. It is for programs that look at heads without a store.
///
/// ```
/// assert_eq!(gristmill_rados::checked_record(b"GRO1\0 and no more"), None);
/// ```
pub fn checked_record(bytes: &[u8]) -> Option<Vec<u8>> {
    Record::from_bytes(bytes).map(|(record, changed)| record.to_bytes(changed))
}

fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(taken)
}

fn numbers(bytes: &mut &[u8]) -> Option<[u64; 4]> {
    let mut numbers = [0; 4];
    for number in &mut numbers {
        *number = u64::from_le_bytes(*take(bytes)?);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::piece::PIECE_BYTES;

    prop_compose! {
        fn records()(
            version: u64, modified: i64, generation: u64, lease: Option<i64>, length in 0..20 * PIECE_BYTES,
            pieces in prop::collection::btree_map(0..20_u64, any::<u8>(), 0..10),
            intervals in prop::collection::vec((0..20 * PIECE_BYTES, 1..PIECE_BYTES), 0..10),
        ) -> Record {
            let pieces = pieces.into_iter().filter(|(index, _)| *index < pieces_of(length)).collect();
            let mut written = IntervalSet::default();
            for (start, bytes) in intervals {
                written.insert(start.min(length)..(start + bytes).min(length));
            }
            Record { version: Version(version), length, modified, generation, lease, pieces, written }
        }
    }

    proptest! {
        #[test]
        fn a_record_is_read_as_it_was_written(record in records(), changed: bool) {
            prop_assert_eq!(Record::from_bytes(&record.to_bytes(changed)), Some((record, changed)));
        }

        #[test]
        fn pieces_after_the_end_are_not_stored(record in records(), salt: u8) {
            let mut longer = record.clone();
            longer.pieces.insert(pieces_of(record.length), salt);
            prop_assert_eq!(Record::from_bytes(&longer.to_bytes(true)), Some((record, true)));
        }

        #[test]
        fn a_record_that_was_damaged_is_no_record(record in records(), at: prop::sample::Index, bit in 0..8_u32) {
            let mut bytes = record.to_bytes(false);
            let at = at.index(bytes.len());
            bytes[at] ^= 1_u8 << bit;
            let read = Record::from_bytes(&bytes);
            // The mark of a change is written alone, so it has no checksum.
            let expected = (at as u64 == CHANGED_AT).then_some((record, true));
            prop_assert_eq!(read, expected);
        }

        #[test]
        fn other_bytes_are_no_record(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut with_magic = b"GRO1\0".to_vec();
            with_magic.extend(&bytes);
            let sum = crc32c::crc32c(&bytes);
            with_magic.extend(sum.to_le_bytes());
            // The checksum is right, so everything else must be checked.
            if let Some((record, changed)) = Record::from_bytes(&with_magic) {
                prop_assert_eq!(Record::from_bytes(&record.to_bytes(changed)), Some((record, changed)));
            }
            prop_assert_eq!(Record::from_bytes(&bytes), None);
        }
    }
}
