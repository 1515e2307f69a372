//! The format of saved accumulators, as far as all of them share it.
//!
//! ```text
//! byte 0      kind in the upper four bits, flags in the lower: 1 sum negative, 2 NaNs, 4 +inf, 8 -inf
//! counts      one u64 for each of the flags 2, 4, 8 that is set, in that order, never 0
//! numbers     one (a sum) or two (moments), each: first limb u8, number of limbs u8, limbs u32
//! ```
//! Everything is little-endian. A number is a magnitude without its zero limbs at both ends. Zero has no limbs, and its
//! first limb is 0. So equal accumulators have equal bytes.

use thiserror::Error;

use crate::non_finite::NonFinite;
use crate::wide::Wide;

/// The reason why bytes are not a saved accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end before the end of the state.
    #[error("saved {kind} is cut short at {have} bytes; pass every byte that `encode` wrote")]
    Short {
        /// The accumulator that the caller reads.
        kind: &'static str,
        /// Number of bytes that were given.
        have: usize,
    },
    /// The first byte does not belong to this accumulator.
    #[error(
        "first byte {found:#04x} does not start a saved {kind}; decode the state with the type that saved it"
    )]
    Kind {
        /// The accumulator that the caller reads.
        kind: &'static str,
        /// The first byte.
        found: u8,
    },
    /// A part differs from the form in which `encode` writes it, or it does not fit.
    #[error(
        "saved {kind} has a {part} that `encode` never writes; the bytes are damaged, compute the state again"
    )]
    NotCanonical {
        /// The accumulator that the caller reads.
        kind: &'static str,
        /// The part that is wrong.
        part: &'static str,
    },
}

/// The kind of an accumulator: the upper half of the first byte, and a name for messages.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) tag: u8,
    pub(crate) name: &'static str,
}

pub(crate) const NEGATIVE: u8 = 1;
const NANS: u8 = 2;
const POSITIVE: u8 = 4;
const NEGATIVE_INFINITIES: u8 = 8;

/// Bytes of the first byte and all three counts.
pub(crate) const HEAD_BYTES: usize = 1 + 3 * 8;

/// A reader of the parts of a state from untrusted bytes.
pub(crate) struct Reader<'a> {
    kind: Kind,
    bytes: &'a [u8],
    used: usize,
}

impl<'a> Reader<'a> {
    /// Checks the kind and returns the flags with the reader.
    pub(crate) fn new(kind: Kind, bytes: &'a [u8]) -> Result<(u8, Self), DecodeError> {
        let mut reader = Reader { kind, bytes, used: 0 };
        let [found] = reader.array()?;
        if found & 0xf0 != kind.tag {
            return Err(DecodeError::Kind { kind: kind.name, found });
        }
        Ok((found & 0x0f, reader))
    }

    pub(crate) fn used(&self) -> usize {
        self.used
    }

    pub(crate) fn wrong(&self, part: &'static str) -> DecodeError {
        DecodeError::NotCanonical { kind: self.kind.name, part }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let rest = self.bytes.get(self.used..).unwrap_or_default();
        let found = rest
            .first_chunk::<N>()
            .ok_or(DecodeError::Short { kind: self.kind.name, have: self.bytes.len() })?;
        self.used += N;
        Ok(*found)
    }

    pub(crate) fn non_finite(&mut self, flags: u8) -> Result<NonFinite, DecodeError> {
        let mut count = |flag| {
            if flags & flag == 0 {
                return Ok(0);
            }
            match u64::from_le_bytes(self.array()?) {
                0 => Err(self.wrong("count of zero")),
                count => Ok(count),
            }
        };
        Ok(NonFinite {
            nans: count(NANS)?,
            positive: count(POSITIVE)?,
            negative: count(NEGATIVE_INFINITIES)?,
        })
    }

    pub(crate) fn wide<const LIMBS: usize, const LOWEST: i32>(
        &mut self,
        negative: bool,
    ) -> Result<Wide<LIMBS, LOWEST>, DecodeError> {
        let [first, count] = self.array()?;
        let (first, count) = (usize::from(first), usize::from(count));
        if count == 0 {
            return match (negative, first) {
                (false, 0) => Ok(Wide::new()),
                _ => Err(self.wrong("zero with a sign or a place")),
            };
        }
        if first + count > LIMBS {
            return Err(self.wrong("number that is too long"));
        }
        let mut limbs = [0u32; LIMBS];
        for limb in &mut limbs[..count] {
            *limb = u32::from_le_bytes(self.array()?);
        }
        let limbs = &limbs[..count];
        if limbs.first() == Some(&0) || limbs.last() == Some(&0) {
            return Err(self.wrong("number with zero limbs at an end"));
        }
        Wide::from_magnitude(negative, first, limbs).ok_or_else(|| self.wrong("number that is too large"))
    }
}

/// Writes the first byte and the counts.
pub(crate) fn write_head(out: &mut Vec<u8>, kind: Kind, negative: bool, non_finite: &NonFinite) {
    let counts = [
        (NANS, non_finite.nans),
        (POSITIVE, non_finite.positive),
        (NEGATIVE_INFINITIES, non_finite.negative),
    ];
    let present = counts.into_iter().filter(|(_, count)| *count != 0);
    let sign = if negative { NEGATIVE } else { 0 };
    out.push(present.clone().fold(kind.tag | sign, |byte, (flag, _)| byte | flag));
    for (_, count) in present {
        out.extend_from_slice(&count.to_le_bytes());
    }
}

/// Writes a magnitude.
pub(crate) fn write_magnitude(out: &mut Vec<u8>, magnitude: &[u32]) {
    let first = magnitude.iter().position(|limb| *limb != 0).unwrap_or(0);
    let end = magnitude.iter().rposition(|limb| *limb != 0).map_or(0, |last| last + 1);
    let limbs = &magnitude[first..end];
    // `Wide` has at most 255 limbs.
    out.extend_from_slice(&[first as u8, limbs.len() as u8]);
    out.extend(limbs.iter().flat_map(|limb| limb.to_le_bytes()));
}
