//! The cycle of a component as text: a file of 256 GiB in objects of 4 MiB has 65,536 targets, and they travel in each grant.
//!
//! The text is URL-safe base64, without padding, of one byte with the number of bits of a target (1 to 32), the number of targets in 4
//! bytes (the least significant first), and the targets one after the other. The first target has the lowest bits of the first byte.
//! The bits behind the last target are 0.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gristmill_layout::MAX_CYCLE;
use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

/// Most bytes of the targets of the cycles of a file, packed. With 4 nodes a cycle of the greatest length has 16 KiB.
pub const MAX_CYCLE_BYTES: usize = 48 << 10;

/// Bytes before the packed targets.
const HEAD: usize = 5;

/// Longest text: the greatest cycle of targets of 32 bits.
const MAX_TEXT: usize = (HEAD + 4 * MAX_CYCLE).div_ceil(3) * 4;

pub(crate) fn serialize<S: Serializer>(cycle: &[u32], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&URL_SAFE_NO_PAD.encode(pack(cycle)))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
    deserializer.deserialize_str(Text)
}

struct Text;

impl Visitor<'_> for Text {
    type Value = Vec<u32>;

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("a cycle of targets in base64")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<u32>, E> {
        if text.len() > MAX_TEXT {
            return Err(E::custom("a cycle has too many targets"));
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(E::custom)?;
        unpack(&bytes)
            .ok_or_else(|| E::custom("a cycle has another number of targets than it says, or too many"))
    }
}

fn pack(cycle: &[u32]) -> Vec<u8> {
    let bits = (u32::BITS - cycle.iter().fold(0, |all, target| all | target).leading_zeros()).max(1);
    let mut bytes = vec![bits as u8];
    bytes.extend((cycle.len() as u32).to_le_bytes());
    let (mut pending, mut count) = (0u64, 0);
    for target in cycle {
        // Fewer than 8 bits wait, so at most 39 are used.
        pending |= u64::from(*target) << count;
        count += bits;
        while count >= 8 {
            bytes.push(pending as u8);
            pending >>= 8;
            count -= 8;
        }
    }
    if count > 0 {
        bytes.push(pending as u8);
    }
    bytes
}

fn unpack(bytes: &[u8]) -> Option<Vec<u32>> {
    let (head, packed) = bytes.split_first_chunk::<HEAD>()?;
    let [bits, a, b, c, d] = *head;
    let (bits, length) = (u32::from(bits), u32::from_le_bytes([a, b, c, d]) as usize);
    if !(1..=u32::BITS).contains(&bits) || length > MAX_CYCLE {
        return None;
    }
    if packed.len() != (length * bits as usize).div_ceil(8) {
        return None;
    }
    let mask = u32::MAX >> (u32::BITS - bits);
    let mut cycle = Vec::with_capacity(length);
    let (mut pending, mut count) = (0u64, 0);
    for byte in packed {
        pending |= u64::from(*byte) << count;
        count += 8;
        while count >= bits && cycle.len() < length {
            cycle.push(pending as u32 & mask);
            pending >>= bits;
            count -= bits;
        }
    }
    (pending == 0 && cycle.len() == length).then_some(cycle)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_packed_is_unpacked(cycle in prop::collection::vec(any::<u32>(), 0..70), bits in 0..32u32) {
            let cycle: Vec<u32> = cycle.iter().map(|target| target >> bits).collect();
            let bytes = pack(&cycle);
            prop_assert!(bytes.len() <= HEAD + (cycle.len() * (32 - bits) as usize).div_ceil(8).max(cycle.len().div_ceil(8)));
            prop_assert_eq!(unpack(&bytes), Some(cycle));
        }

        #[test]
        fn other_bytes_are_refused_or_are_a_cycle(bytes in prop::collection::vec(any::<u8>(), 0..20), bits in 0..34u8, length in 0..30u8) {
            let bytes = [&[bits, length, 0, 0, 0], &*bytes].concat();
            if let Some(cycle) = unpack(&bytes) {
                prop_assert_eq!(cycle.len(), usize::from(length));
            }
        }
    }

    #[test]
    fn the_longest_cycle_has_a_text() {
        let most = vec![u32::MAX; MAX_CYCLE];
        assert_eq!(unpack(&pack(&most)).unwrap(), most);
        assert!(URL_SAFE_NO_PAD.encode(pack(&most)).len() <= MAX_TEXT);
        assert_eq!(unpack(&pack(&vec![0; MAX_CYCLE + 1])), None);
    }

    #[test]
    fn the_text_is_that_of_the_description() {
        // 1 is 01, 2 is 10, 3 is 11, and 0 is 00: 00_11_10_01, then 01.
        assert_eq!(pack(&[1, 2, 3, 0, 1]), [2, 5, 0, 0, 0, 0b0011_1001, 0b01]);
        for wrong in [
            &[][..],
            &[1, 0, 0, 0],
            &[0, 1, 0, 0, 0, 1],
            &[33, 0, 0, 0, 0],
            &[1, 1, 0, 0, 0],
            &[1, 1, 0, 0, 0, 2],
            &[1, 1, 0, 0, 0, 0, 0],
        ] {
            assert_eq!(unpack(wrong), None, "{wrong:?}");
        }
    }
}
