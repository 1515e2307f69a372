//! Operations on eight `f64` at a time, in the registers of each path.
//!
//! For loops over plain arrays the compiler often chooses half-width registers and shuffles. Here every operation is
//! explicit. All paths compute the same numbers.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use crate::path::Portable;
#[cfg(target_arch = "x86_64")]
use crate::path::{Avx2, Avx512};

/// The sign bit and the exponent field of an `f64`.
const SIGN: u64 = 1 << 63;
const FIELD: u64 = 0x7ff << 52;

/// The operations of the inner loops. `self` proves that the processor has the instructions.
///
/// Implementations are `#[inline(always)]`. They are single instructions only inside a function that is compiled for
/// the path.
pub(crate) trait Vector: Copy {
    /// Eight `f64`.
    type Eight: Copy;
    /// The bits of many numbers, joined by "or".
    type Bits: Copy;
    /// The largest exponents of many numbers.
    type Exponents: Copy;

    fn splat(self, x: f64) -> Self::Eight;
    fn load_f64(self, raw: &[[u8; 8]; 8]) -> Self::Eight;
    /// Loads and widens `f32`.
    fn load_f32(self, raw: &[[u8; 4]; 8]) -> Self::Eight;
    fn add(self, a: Self::Eight, b: Self::Eight) -> Self::Eight;
    fn sub(self, a: Self::Eight, b: Self::Eight) -> Self::Eight;
    fn mul(self, a: Self::Eight, b: Self::Eight) -> Self::Eight;
    /// `a - b * one`, with a `one` of 1.0 that the compiler does not know. It is a fused multiplication if the path has
    /// it. Many processors run it in units that additions do not use.
    fn sub_product(self, a: Self::Eight, b: Self::Eight, one: Self::Eight) -> Self::Eight;
    /// `x * x - square`, which is exact if every bit of the square is at least 2^-1074.
    fn square_error(self, x: Self::Eight, square: Self::Eight) -> Self::Eight;

    fn no_bits(self) -> Self::Bits;
    fn join_bits(self, bits: Self::Bits, x: Self::Eight) -> Self::Bits;
    /// Whether there is any bit except the sign. -0.0 has only the sign.
    fn any_bits(self, bits: Self::Bits) -> bool;

    fn no_exponents(self) -> Self::Exponents;
    fn join_exponents(self, exponents: Self::Exponents, x: Self::Eight) -> Self::Exponents;
    /// The largest exponent field, 0x7ff for infinities and NaNs.
    fn largest_field(self, exponents: Self::Exponents) -> i32;

    /// The sum of the distances of the bit patterns from that of `start`.
    fn distance<const R: usize>(self, lanes: [Self::Eight; R], start: f64) -> i64;
}

impl Vector for Portable {
    type Eight = [f64; 8];
    type Bits = [u64; 8];
    /// Numbers without bits outside the exponent field, so that none is a NaN.
    type Exponents = [f64; 8];

    #[inline(always)]
    fn splat(self, x: f64) -> [f64; 8] {
        [x; 8]
    }

    #[inline(always)]
    fn load_f64(self, raw: &[[u8; 8]; 8]) -> [f64; 8] {
        raw.map(f64::from_le_bytes)
    }

    #[inline(always)]
    fn load_f32(self, raw: &[[u8; 4]; 8]) -> [f64; 8] {
        raw.map(|raw| f64::from(f32::from_le_bytes(raw)))
    }

    #[inline(always)]
    fn add(self, a: [f64; 8], b: [f64; 8]) -> [f64; 8] {
        std::array::from_fn(|j| a[j] + b[j])
    }

    #[inline(always)]
    fn sub(self, a: [f64; 8], b: [f64; 8]) -> [f64; 8] {
        std::array::from_fn(|j| a[j] - b[j])
    }

    #[inline(always)]
    fn mul(self, a: [f64; 8], b: [f64; 8]) -> [f64; 8] {
        std::array::from_fn(|j| a[j] * b[j])
    }

    #[inline(always)]
    fn sub_product(self, a: [f64; 8], b: [f64; 8], _: [f64; 8]) -> [f64; 8] {
        self.sub(a, b)
    }

    /// Dekker's product.
    #[inline(always)]
    fn square_error(self, x: [f64; 8], square: [f64; 8]) -> [f64; 8] {
        const SPLITTER: f64 = 134_217_729.0; // 2^27 + 1
        std::array::from_fn(|j| {
            let scaled = SPLITTER * x[j];
            let high = scaled - (scaled - x[j]);
            let low = x[j] - high;
            ((high * high - square[j]) + 2.0 * (high * low)) + low * low
        })
    }

    #[inline(always)]
    fn no_bits(self) -> [u64; 8] {
        [0; 8]
    }

    #[inline(always)]
    fn join_bits(self, bits: [u64; 8], x: [f64; 8]) -> [u64; 8] {
        std::array::from_fn(|j| bits[j] | x[j].to_bits())
    }

    #[inline(always)]
    fn any_bits(self, bits: [u64; 8]) -> bool {
        bits.iter().fold(0, |all, one| all | one) & !SIGN != 0
    }

    #[inline(always)]
    fn no_exponents(self) -> [f64; 8] {
        [0.0; 8]
    }

    #[inline(always)]
    fn join_exponents(self, exponents: [f64; 8], x: [f64; 8]) -> [f64; 8] {
        std::array::from_fn(|j| {
            let one = f64::from_bits(x[j].to_bits() & FIELD);
            // This form is one instruction, unlike `f64::max`.
            if one > exponents[j] { one } else { exponents[j] }
        })
    }

    #[inline(always)]
    fn largest_field(self, exponents: [f64; 8]) -> i32 {
        exponents.iter().fold(0, |largest, one| largest.max((one.to_bits() >> 52) as i32))
    }

    #[inline(always)]
    fn distance<const R: usize>(self, lanes: [[f64; 8]; R], start: f64) -> i64 {
        let distance = |lane: &f64| lane.to_bits() as i64 - start.to_bits() as i64;
        lanes.as_flattened().iter().map(distance).sum()
    }
}

/// Writes the methods of a path. Every body calls intrinsics of instructions that the path has.
#[cfg(target_arch = "x86_64")]
macro_rules! intrinsics {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) -> $out:ty $body:block)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        fn $name(self, $($argument: $type),*) -> $out {
            // SAFETY: `self` exists only if `Path::available` found the instructions of the path. Every pointer comes
            // from a reference to at least as many bytes as are read. The loads need no alignment.
            unsafe { $body }
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
impl Vector for Avx512 {
    type Eight = __m512d;
    type Bits = __m512i;
    /// Magnitudes. Only the upper half of each is used.
    type Exponents = __m512i;

    intrinsics! {
        fn splat(x: f64) -> __m512d { _mm512_set1_pd(x) }
        fn load_f64(raw: &[[u8; 8]; 8]) -> __m512d { _mm512_loadu_pd(raw.as_ptr().cast()) }
        fn load_f32(raw: &[[u8; 4]; 8]) -> __m512d { _mm512_cvtps_pd(_mm256_loadu_ps(raw.as_ptr().cast())) }
        fn add(a: __m512d, b: __m512d) -> __m512d { _mm512_add_pd(a, b) }
        fn sub(a: __m512d, b: __m512d) -> __m512d { _mm512_sub_pd(a, b) }
        fn mul(a: __m512d, b: __m512d) -> __m512d { _mm512_mul_pd(a, b) }
        fn sub_product(a: __m512d, b: __m512d, one: __m512d) -> __m512d { _mm512_fnmadd_pd(b, one, a) }
        fn square_error(x: __m512d, square: __m512d) -> __m512d { _mm512_fmsub_pd(x, x, square) }
        fn no_bits() -> __m512i { _mm512_setzero_si512() }
        fn join_bits(bits: __m512i, x: __m512d) -> __m512i { _mm512_or_si512(bits, _mm512_castpd_si512(x)) }
        fn any_bits(bits: __m512i) -> bool {
            _mm512_test_epi64_mask(bits, _mm512_set1_epi64(!SIGN as i64)) != 0
        }
        fn no_exponents() -> __m512i { _mm512_setzero_si512() }
        fn join_exponents(exponents: __m512i, x: __m512d) -> __m512i {
            let magnitude = _mm512_and_si512(_mm512_castpd_si512(x), _mm512_set1_epi64(!SIGN as i64));
            _mm512_max_epu32(exponents, magnitude)
        }
        fn largest_field(exponents: __m512i) -> i32 {
            _mm512_reduce_max_epu64(_mm512_srli_epi64::<52>(exponents)) as i32
        }
    }

    #[inline(always)]
    fn distance<const R: usize>(self, lanes: [__m512d; R], start: f64) -> i64 {
        // SAFETY: `self` exists only if `Path::available` found AVX-512 F.
        unsafe {
            let start = _mm512_set1_epi64(start.to_bits() as i64);
            let mut sum = _mm512_setzero_si512();
            for lane in lanes {
                sum = _mm512_add_epi64(sum, _mm512_sub_epi64(_mm512_castpd_si512(lane), start));
            }
            _mm512_reduce_add_epi64(sum)
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Vector for Avx2 {
    type Eight = (__m256d, __m256d);
    type Bits = __m256i;
    /// Magnitudes. Only the upper half of each is used.
    type Exponents = __m256i;

    intrinsics! {
        fn splat(x: f64) -> Self::Eight { (_mm256_set1_pd(x), _mm256_set1_pd(x)) }
        fn load_f64(raw: &[[u8; 8]; 8]) -> Self::Eight {
            let (low, high) = raw.split_at(4);
            (_mm256_loadu_pd(low.as_ptr().cast()), _mm256_loadu_pd(high.as_ptr().cast()))
        }
        fn load_f32(raw: &[[u8; 4]; 8]) -> Self::Eight {
            let (low, high) = raw.split_at(4);
            let (low, high) = (_mm_loadu_ps(low.as_ptr().cast()), _mm_loadu_ps(high.as_ptr().cast()));
            (_mm256_cvtps_pd(low), _mm256_cvtps_pd(high))
        }
        fn add(a: Self::Eight, b: Self::Eight) -> Self::Eight {
            (_mm256_add_pd(a.0, b.0), _mm256_add_pd(a.1, b.1))
        }
        fn sub(a: Self::Eight, b: Self::Eight) -> Self::Eight {
            (_mm256_sub_pd(a.0, b.0), _mm256_sub_pd(a.1, b.1))
        }
        fn mul(a: Self::Eight, b: Self::Eight) -> Self::Eight {
            (_mm256_mul_pd(a.0, b.0), _mm256_mul_pd(a.1, b.1))
        }
        fn sub_product(a: Self::Eight, b: Self::Eight, one: Self::Eight) -> Self::Eight {
            (_mm256_fnmadd_pd(b.0, one.0, a.0), _mm256_fnmadd_pd(b.1, one.1, a.1))
        }
        fn square_error(x: Self::Eight, square: Self::Eight) -> Self::Eight {
            (_mm256_fmsub_pd(x.0, x.0, square.0), _mm256_fmsub_pd(x.1, x.1, square.1))
        }
        fn no_bits() -> __m256i { _mm256_setzero_si256() }
        fn join_bits(bits: __m256i, x: Self::Eight) -> __m256i {
            let both = _mm256_or_si256(_mm256_castpd_si256(x.0), _mm256_castpd_si256(x.1));
            _mm256_or_si256(bits, both)
        }
        fn any_bits(bits: __m256i) -> bool {
            _mm256_testz_si256(bits, _mm256_set1_epi64x(!SIGN as i64)) == 0
        }
        fn no_exponents() -> __m256i { _mm256_setzero_si256() }
        fn join_exponents(exponents: __m256i, x: Self::Eight) -> __m256i {
            let magnitudes = _mm256_set1_epi64x(!SIGN as i64);
            let low = _mm256_and_si256(_mm256_castpd_si256(x.0), magnitudes);
            let high = _mm256_and_si256(_mm256_castpd_si256(x.1), magnitudes);
            _mm256_max_epu32(exponents, _mm256_max_epu32(low, high))
        }
        fn largest_field(exponents: __m256i) -> i32 {
            let fields = _mm256_srli_epi64::<52>(exponents);
            let fields = _mm_max_epi32(_mm256_castsi256_si128(fields), _mm256_extracti128_si256::<1>(fields));
            _mm_cvtsi128_si32(fields).max(_mm_extract_epi32::<2>(fields))
        }
    }

    #[inline(always)]
    fn distance<const R: usize>(self, lanes: [Self::Eight; R], start: f64) -> i64 {
        // SAFETY: `self` exists only if `Path::available` found AVX2.
        unsafe {
            let start = _mm256_set1_epi64x(start.to_bits() as i64);
            let mut sum = _mm256_setzero_si256();
            for (low, high) in lanes {
                sum = _mm256_add_epi64(sum, _mm256_sub_epi64(_mm256_castpd_si256(low), start));
                sum = _mm256_add_epi64(sum, _mm256_sub_epi64(_mm256_castpd_si256(high), start));
            }
            let sum = _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
            _mm_cvtsi128_si64(sum) + _mm_extract_epi64::<1>(sum)
        }
    }
}
