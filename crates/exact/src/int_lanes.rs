//! The inner loops over blocks of integers.

use std::marker::PhantomData;

use crate::path::Work;
use crate::vector::Vector;

/// Values in a block. 32 bits hold the sum of this number of 16-bit values or 8-bit squares. 64 bits hold the sum of
/// this number of 32-bit values or halves of 64-bit values.
pub(crate) const BLOCK_VALUES: usize = 1 << 15;

/// An integer type that is read from its little-endian bytes.
pub(crate) trait Integer<const BYTES: usize> {
    /// Distance from the smallest value of the type to zero.
    const BIAS: u64;
    /// The value plus `BIAS`.
    fn biased(raw: [u8; BYTES]) -> u64;
    fn magnitude(raw: [u8; BYTES]) -> u64;
}

macro_rules! integers {
    ($(($signed:ident, $unsigned:ident, $bytes:literal)),*) => {$(
        impl Integer<$bytes> for $signed {
            const BIAS: u64 = $signed::MIN.unsigned_abs() as u64;
            #[inline(always)]
            fn biased(raw: [u8; $bytes]) -> u64 {
                ($unsigned::from_le_bytes(raw) ^ $signed::MIN as $unsigned) as u64
            }
            #[inline(always)]
            fn magnitude(raw: [u8; $bytes]) -> u64 {
                $signed::from_le_bytes(raw).unsigned_abs() as u64
            }
        }

        impl Integer<$bytes> for $unsigned {
            const BIAS: u64 = 0;
            #[inline(always)]
            fn biased(raw: [u8; $bytes]) -> u64 {
                $unsigned::from_le_bytes(raw) as u64
            }
            #[inline(always)]
            fn magnitude(raw: [u8; $bytes]) -> u64 {
                $unsigned::from_le_bytes(raw) as u64
            }
        }
    )*};
}

integers!((i8, u8, 1), (i16, u16, 2), (i32, u32, 4), (i64, u64, 8));

const HALF_MASK: u64 = 0xffff_ffff;

/// Sums a block of biased values.
pub(crate) struct BiasedSum<'a, T, const BYTES: usize> {
    /// At most `BLOCK_VALUES`.
    pub(crate) values: &'a [[u8; BYTES]],
    pub(crate) kind: PhantomData<T>,
}

impl<T: Integer<BYTES>, const BYTES: usize> Work for BiasedSum<'_, T, BYTES> {
    type Out = u128;

    #[inline(always)]
    fn run<V: Vector>(self, _: V) -> u128 {
        match BYTES {
            1 | 2 => {
                let mut sum = 0u32;
                for raw in self.values {
                    sum += T::biased(*raw) as u32;
                }
                u128::from(sum)
            }
            4 => {
                let mut sum = 0u64;
                for raw in self.values {
                    sum += T::biased(*raw);
                }
                u128::from(sum)
            }
            _ => {
                let (mut low, mut high) = (0u64, 0u64);
                for raw in self.values {
                    let value = T::biased(*raw);
                    low += value & HALF_MASK;
                    high += value >> 32;
                }
                u128::from(low) + (u128::from(high) << 32)
            }
        }
    }
}

/// Sums the squares of a block.
pub(crate) struct SquareSum<'a, T, const BYTES: usize> {
    /// At most `BLOCK_VALUES`.
    pub(crate) values: &'a [[u8; BYTES]],
    pub(crate) kind: PhantomData<T>,
}

impl<T: Integer<BYTES>, const BYTES: usize> Work for SquareSum<'_, T, BYTES> {
    /// The lower 128 bits, and the bits above them.
    type Out = (u128, u64);

    #[inline(always)]
    fn run<V: Vector>(self, _: V) -> (u128, u64) {
        match BYTES {
            1 => {
                let mut sum = 0u32;
                for raw in self.values {
                    let x = T::magnitude(*raw) as u32;
                    sum += x * x;
                }
                (u128::from(sum), 0)
            }
            2 => {
                let mut sum = 0u64;
                for raw in self.values {
                    let x = T::magnitude(*raw) as u32;
                    sum += u64::from(x * x);
                }
                (u128::from(sum), 0)
            }
            4 => {
                let (mut low, mut high) = (0u64, 0u64);
                for raw in self.values {
                    let x = T::magnitude(*raw) & HALF_MASK;
                    low += (x * x) & HALF_MASK;
                    high += (x * x) >> 32;
                }
                (u128::from(low) + (u128::from(high) << 32), 0)
            }
            _ => {
                let (mut sum, mut carries) = (0u128, 0u64);
                for raw in self.values {
                    let x = u128::from(T::magnitude(*raw));
                    let (next, carry) = sum.overflowing_add(x * x);
                    sum = next;
                    carries += u64::from(carry);
                }
                (sum, carries)
            }
        }
    }
}
