//! The inner loops over a block of floating-point values.
//!
//! A *level* is a grid of spacing `2^(k-52)`: each lane starts at `1.5 * 2^k` and stays in the binade of
//! `2^k`, so adding a value rounds it to the grid, and the two subtractions after it find the rest without
//! error (Demmel and Nguyen, "Fast reproducible floating-point summation", 2013, after Rump's extraction).
//! The rest goes to the next, finer level. If nothing is left after the last level, the block's sum is the
//! sum of the levels, exactly.

use crate::path::Work;

/// Values in a block. Two blocks of `f64` fit the first-level cache together.
pub(crate) const BLOCK_VALUES: usize = 2048;

/// A value as it lies in memory.
pub(crate) trait Element: Copy {
    /// Bits of a mantissa.
    const PRECISION: u32;
    fn widen(self) -> f64;
}

impl Element for [u8; 8] {
    const PRECISION: u32 = 53;
    #[inline(always)]
    fn widen(self) -> f64 {
        f64::from_le_bytes(self)
    }
}

impl Element for [u8; 4] {
    const PRECISION: u32 = 24;
    #[inline(always)]
    fn widen(self) -> f64 {
        f64::from(f32::from_le_bytes(self))
    }
}

/// Adds every value, or with `SQUARE` every square, onto `L` levels.
pub(crate) struct Deposit<'a, E, const SQUARE: bool, const L: usize, const LANES: usize> {
    /// At most `BLOCK_VALUES / LANES` groups of finite values.
    pub(crate) groups: &'a [[E; LANES]],
    /// Where the lanes of each level start.
    pub(crate) starts: [f64; L],
}

/// Whether squares of such values need two numbers, the rounded square and its error.
pub(crate) const fn square_has_error<E: Element>() -> bool {
    2 * E::PRECISION > 53
}

impl<E: Element, const SQUARE: bool, const L: usize, const LANES: usize> Work
    for Deposit<'_, E, SQUARE, L, LANES>
{
    /// For each level its sum in units of its grid; `None` if something was left after the last level.
    type Out = Option<[i64; L]>;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> Self::Out {
        let mut lanes = self.starts.map(|start| [start; LANES]);
        let mut left = [0u64; LANES];
        for group in self.groups {
            let mut rest = group.map(|raw| raw.widen());
            let mut error = [0.0; LANES];
            if SQUARE {
                for j in 0..LANES {
                    let square = rest[j] * rest[j];
                    if square_has_error::<E>() {
                        error[j] = square_error::<FMA>(rest[j], square);
                    }
                    rest[j] = square;
                }
            }
            for (level, lane) in lanes.iter_mut().enumerate() {
                onto_grid(lane, &mut rest);
                // The error is too small for the first level to hold any of it.
                if SQUARE && square_has_error::<E>() && level > 0 {
                    onto_grid(lane, &mut error);
                }
            }
            for j in 0..LANES {
                left[j] |= rest[j].to_bits() | error[j].to_bits();
            }
        }
        let left = left.iter().fold(0, |all, one| all | one);
        // The sign bit alone is what a value of -0.0 leaves.
        if left << 1 != 0 {
            return None;
        }
        let mut sums = [0i64; L];
        for ((sum, lane), start) in sums.iter_mut().zip(&lanes).zip(&self.starts) {
            // All numbers of one binade: their bit patterns differ by multiples of the grid.
            *sum = lane.iter().map(|a| a.to_bits() as i64 - start.to_bits() as i64).sum();
        }
        Some(sums)
    }
}

/// Adds `rest` to the lanes, rounded to their grid, and leaves in `rest` what did not fit.
#[inline(always)]
fn onto_grid<const LANES: usize>(lane: &mut [f64; LANES], rest: &mut [f64; LANES]) {
    for j in 0..LANES {
        let total = lane[j] + rest[j];
        let taken = total - lane[j];
        lane[j] = total;
        rest[j] -= taken;
    }
}

/// `x * x - square`, exact where every bit of the square is at least 2^-1074 (Dekker's product, or one FMA).
#[inline(always)]
fn square_error<const FMA: bool>(x: f64, square: f64) -> f64 {
    if FMA {
        return x.mul_add(x, -square);
    }
    const SPLITTER: f64 = 134_217_729.0; // 2^27 + 1
    let scaled = SPLITTER * x;
    let high = scaled - (scaled - x);
    let low = x - high;
    ((high * high - square) + 2.0 * (high * low)) + low * low
}

/// What one pass over a block finds out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Every finite value is below `2^bound` in magnitude.
    pub(crate) bound: i32,
    pub(crate) finite: bool,
}

/// Finds the largest exponent of a block.
pub(crate) struct Largest<'a, E> {
    pub(crate) values: &'a [E],
}

impl Work for Largest<'_, [u8; 8]> {
    type Out = Extent;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> Extent {
        // Only the upper halves count; as words they need no 64-bit maximum.
        const MASK: [u32; 16] = [0, HALF, 0, HALF, 0, HALF, 0, HALF, 0, HALF, 0, HALF, 0, HALF, 0, HALF];
        const HALF: u32 = 0x7fff_ffff;
        let (words, _) = self.values.as_flattened().as_chunks::<4>();
        let (groups, rest) = words.as_chunks::<16>();
        let mut largest = [0u32; 16];
        for group in groups {
            for j in 0..16 {
                largest[j] = largest[j].max(u32::from_le_bytes(group[j]) & MASK[j]);
            }
        }
        let rest = rest.iter().zip(MASK).map(|(word, mask)| u32::from_le_bytes(*word) & mask);
        let largest = largest.into_iter().chain(rest).fold(0, u32::max);
        let field = (largest >> 20) as i32;
        Extent { bound: field.max(1) - 1022, finite: field < 0x7ff }
    }
}

impl Work for Largest<'_, [u8; 4]> {
    type Out = Extent;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> Extent {
        let (groups, rest) = self.values.as_chunks::<16>();
        let mut largest = [0u32; 16];
        for group in groups {
            for j in 0..16 {
                largest[j] = largest[j].max(u32::from_le_bytes(group[j]) & 0x7fff_ffff);
            }
        }
        let rest = rest.iter().map(|word| u32::from_le_bytes(*word) & 0x7fff_ffff);
        let largest = largest.into_iter().chain(rest).fold(0, u32::max);
        let field = (largest >> 23) as i32;
        Extent { bound: field.max(1) - 126, finite: field < 0xff }
    }
}

/// Whether some value other than zero is below `limit` in magnitude.
pub(crate) struct AnyBelow<'a> {
    pub(crate) values: &'a [[u8; 8]],
    pub(crate) limit: f64,
}

impl Work for AnyBelow<'_> {
    type Out = bool;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> bool {
        let (groups, rest) = self.values.as_chunks::<8>();
        let mut found = [0u64; 8];
        for group in groups {
            for j in 0..8 {
                let x = group[j].widen().abs();
                found[j] |= u64::from(x < self.limit) & u64::from(x != 0.0);
            }
        }
        let rest = rest.iter().map(|raw| raw.widen().abs()).any(|x| x < self.limit && x != 0.0);
        rest || found.iter().any(|lane| *lane != 0)
    }
}

/// Copies a block with zeros in place of what is not finite, and counts what it left out.
pub(crate) struct Clean<'a, E> {
    pub(crate) values: &'a [E],
    /// As long as `values`.
    pub(crate) out: &'a mut [[u8; 8]],
}

impl<E: Element> Work for Clean<'_, E> {
    /// NaNs, positive and negative infinities.
    type Out = [u64; 3];

    #[inline(always)]
    fn run<const FMA: bool>(self) -> [u64; 3] {
        let mut counts = [0u64; 3];
        for (raw, out) in self.values.iter().zip(self.out) {
            let x = raw.widen();
            let finite = x.abs() < f64::INFINITY;
            let kept = if finite { x.to_bits() } else { 0 };
            counts[0] += u64::from(x.is_nan());
            counts[1] += u64::from(x == f64::INFINITY);
            counts[2] += u64::from(x == f64::NEG_INFINITY);
            *out = kept.to_le_bytes();
        }
        counts
    }
}
