//! The inner loops over a block of floating-point values.
//!
//! A *level* is a grid of spacing `2^(k-52)`. Each lane starts at `1.5 * 2^k` and stays in the binade of `2^k`. So
//! adding a value rounds it to the grid, and the two subtractions after it find the rest without error (Demmel and
//! Nguyen, "Fast reproducible floating-point summation", 2013, after Rump's extraction). The rest goes to the next,
//! finer level. If nothing is left after the last level, the sum of the block is exactly the sum of the levels.

use std::hint::black_box;

use crate::path::Work;
use crate::vector::Vector;

/// Values in a block. Two blocks of `f64` fit the first-level cache together.
pub(crate) const BLOCK_VALUES: usize = 2048;

/// The bytes of a value in memory.
pub(crate) trait Element: Copy {
    /// Bits of a mantissa.
    const PRECISION: u32;
    fn widen(self) -> f64;
    fn load<V: Vector>(vector: V, raw: &[Self; 8]) -> V::Eight;
}

impl Element for [u8; 8] {
    const PRECISION: u32 = 53;
    #[inline(always)]
    fn widen(self) -> f64 {
        f64::from_le_bytes(self)
    }
    #[inline(always)]
    fn load<V: Vector>(vector: V, raw: &[Self; 8]) -> V::Eight {
        vector.load_f64(raw)
    }
}

impl Element for [u8; 4] {
    const PRECISION: u32 = 24;
    #[inline(always)]
    fn widen(self) -> f64 {
        f64::from(f32::from_le_bytes(self))
    }
    #[inline(always)]
    fn load<V: Vector>(vector: V, raw: &[Self; 8]) -> V::Eight {
        vector.load_f32(raw)
    }
}

/// Adds every value, or with `SQUARE` every square, to `L` levels of `R` registers each.
pub(crate) struct Deposit<'a, E, const SQUARE: bool, const L: usize, const R: usize> {
    /// At most `BLOCK_VALUES`.
    pub(crate) groups: &'a [[[E; 8]; R]],
    /// The values, or squares, must be below `2^bound`. Squares must be finite and must have no bit below 2^-1074.
    pub(crate) bound: i32,
    /// The number at which the lanes of each level start.
    pub(crate) starts: [f64; L],
}

/// Whether a square needs two numbers: the rounded square and its error.
pub(crate) const fn square_has_error<E: Element>() -> bool {
    2 * E::PRECISION > 53
}

impl<E: Element, const SQUARE: bool, const L: usize, const R: usize> Work for Deposit<'_, E, SQUARE, L, R> {
    /// The extent of the values, and the sum of each level in units of its grid. The extent of squares is not measured;
    /// it repeats the bound. There are sums only if the bound was large enough and nothing was left after the last
    /// level.
    type Out = (Extent, Option<[i64; L]>);

    #[inline(always)]
    fn run<V: Vector>(self, vector: V) -> Self::Out {
        let mut lanes = self.starts.map(|start| [vector.splat(start); R]);
        let one = vector.splat(black_box(1.0));
        let mut left = vector.no_bits();
        let mut exponents = vector.no_exponents();
        for group in self.groups {
            let zero = vector.splat(0.0);
            let (mut rest, mut error) = ([zero; R], [zero; R]);
            for r in 0..R {
                rest[r] = E::load(vector, &group[r]);
                if SQUARE {
                    let square = vector.mul(rest[r], rest[r]);
                    if square_has_error::<E>() {
                        error[r] = vector.square_error(rest[r], square);
                    }
                    rest[r] = square;
                } else {
                    exponents = vector.join_exponents(exponents, rest[r]);
                }
            }
            for (level, lanes) in lanes.iter_mut().enumerate() {
                onto_grid(vector, one, lanes, &mut rest);
                // The error is too small for the first level to hold any of it.
                if SQUARE && square_has_error::<E>() && level > 0 {
                    onto_grid(vector, one, lanes, &mut error);
                }
            }
            for r in 0..R {
                left = vector.join_bits(left, rest[r]);
                if SQUARE && square_has_error::<E>() {
                    left = vector.join_bits(left, error[r]);
                }
            }
        }
        let extent = if SQUARE {
            Extent { bound: self.bound, finite: true }
        } else {
            Extent::from_field(vector.largest_field(exponents))
        };
        if !extent.finite || extent.bound > self.bound || vector.any_bits(left) {
            return (extent, None);
        }
        let mut sums = [0i64; L];
        for ((sum, lanes), start) in sums.iter_mut().zip(lanes).zip(self.starts) {
            // The numbers lie in one binade, so their bit patterns differ by multiples of the grid.
            *sum = vector.distance(lanes, start);
        }
        (extent, Some(sums))
    }
}

/// Adds `rest` to the lanes, rounded to their grid, and leaves the rounding errors in `rest`.
#[inline(always)]
fn onto_grid<V: Vector, const R: usize>(
    vector: V,
    one: V::Eight,
    lanes: &mut [V::Eight; R],
    rest: &mut [V::Eight; R],
) {
    for r in 0..R {
        let total = vector.add(lanes[r], rest[r]);
        let taken = vector.sub(total, lanes[r]);
        lanes[r] = total;
        rest[r] = vector.sub_product(rest[r], taken, one);
    }
}

/// The size of the values of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Every finite value is below `2^bound` in magnitude.
    pub(crate) bound: i32,
    pub(crate) finite: bool,
}

impl Extent {
    /// The extent of values with this largest exponent field.
    fn from_field(field: i32) -> Self {
        Extent { bound: field.max(1) - 1022, finite: field < 0x7ff }
    }

    /// Measures values one by one.
    pub(crate) fn of_values<E: Element>(values: &[E]) -> Self {
        let field = |raw: &E| (raw.widen().to_bits() >> 52) as i32 & 0x7ff;
        Extent::from_field(values.iter().map(field).max().unwrap_or(0))
    }
}

/// Finds the largest exponent of a block.
pub(crate) struct LargestExponent<'a, E> {
    pub(crate) groups: &'a [[E; 8]],
}

impl<E: Element> Work for LargestExponent<'_, E> {
    type Out = Extent;

    #[inline(always)]
    fn run<V: Vector>(self, vector: V) -> Extent {
        let mut exponents = [vector.no_exponents(); 2];
        let (pairs, rest) = self.groups.as_chunks::<2>();
        for pair in pairs {
            for (exponents, group) in exponents.iter_mut().zip(pair) {
                *exponents = vector.join_exponents(*exponents, E::load(vector, group));
            }
        }
        for group in rest {
            exponents[0] = vector.join_exponents(exponents[0], E::load(vector, group));
        }
        Extent::from_field(vector.largest_field(exponents[0]).max(vector.largest_field(exponents[1])))
    }
}

/// Whether some value other than zero is below `limit` in magnitude.
pub(crate) struct AnyBelow<'a, E> {
    pub(crate) values: &'a [E],
    pub(crate) limit: f64,
}

impl<E: Element> Work for AnyBelow<'_, E> {
    type Out = bool;

    #[inline(always)]
    fn run<V: Vector>(self, _: V) -> bool {
        let mut found = 0u64;
        for raw in self.values {
            let x = raw.widen().abs();
            found |= u64::from(x < self.limit) & u64::from(x != 0.0);
        }
        found != 0
    }
}

/// Copies a block with zeros in place of values that are not finite, and counts these values.
pub(crate) struct CleanCopy<'a, E> {
    pub(crate) values: &'a [E],
    /// As long as `values`.
    pub(crate) out: &'a mut [[u8; 8]],
}

impl<E: Element> Work for CleanCopy<'_, E> {
    /// Numbers of NaNs, positive and negative infinities.
    type Out = [u64; 3];

    #[inline(always)]
    fn run<V: Vector>(self, _: V) -> [u64; 3] {
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
