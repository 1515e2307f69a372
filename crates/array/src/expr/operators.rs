//! The operations on single elements.

use crate::values::{Number, Values, with_values};

/// A cast as Rust's `as`: floats are cut towards zero and kept in range, NaN is 0, integers wrap.
pub(crate) trait CastFrom<U> {
    fn cast_from(x: U) -> Self;
}

macro_rules! casts {
    ($($to:ty),*) => {$(
        casts! { @ $to: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 }
        impl CastFrom<bool> for $to {
            #[inline(always)]
            fn cast_from(x: bool) -> $to {
                u8::from(x) as $to
            }
        }
        impl CastFrom<$to> for bool {
            #[inline(always)]
            fn cast_from(x: $to) -> bool {
                x != 0 as $to
            }
        }
    )*};
    (@ $to:ty: $($from:ty)*) => {$(
        impl CastFrom<$from> for $to {
            #[inline(always)]
            fn cast_from(x: $from) -> $to {
                x as $to
            }
        }
    )*};
}

casts! { i8, i16, i32, i64, u8, u16, u32, u64, f32, f64 }

impl CastFrom<bool> for bool {
    fn cast_from(x: bool) -> bool {
        x
    }
}

/// A type that every other can be cast to.
pub(crate) trait Cast:
    Number
    + CastFrom<bool>
    + CastFrom<i8>
    + CastFrom<i16>
    + CastFrom<i32>
    + CastFrom<i64>
    + CastFrom<u8>
    + CastFrom<u16>
    + CastFrom<u32>
    + CastFrom<u64>
    + CastFrom<f32>
    + CastFrom<f64>
{
    /// Returns the vector in a column of this type, or the column if it has another type.
    fn unwrap(values: Values) -> Result<Vec<Self>, Values>;
}

macro_rules! cast_targets {
    ($($t:ty, $name:ident);*) => {$(
        impl Cast for $t {
            fn unwrap(values: Values) -> Result<Vec<$t>, Values> {
                match values {
                    Values::$name(values) => Ok(values),
                    other => Err(other),
                }
            }
        }
    )*};
}

cast_targets! {
    bool, Bool; i8, I8; i16, I16; i32, I32; i64, I64; u8, U8; u16, U16; u32, U32; u64, U64; f32, F32; f64, F64
}

/// Casts a column to another type.
pub(crate) fn cast<T: Cast>(values: Values) -> Vec<T> {
    match T::unwrap(values) {
        Ok(values) => values,
        Err(values) => with_values!(values, values => values.into_iter().map(T::cast_from).collect()),
    }
}

/// Operations that integers and floats do differently.
pub(crate) trait Arithmetic: Cast {
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn over(self, other: Self) -> Self;
    fn floor_over(self, other: Self) -> Self;
    fn modulo(self, other: Self) -> Self;
    fn power(self, exponent: Self) -> Self;
    fn whole_power(self, exponent: i128) -> Self;
    fn negative(self) -> Self;
    fn magnitude(self) -> Self;
    fn is_finite_number(self) -> bool;
    /// Computes `f` in f64 and rounds the result to the type.
    fn via_f64(self, f: impl Fn(f64) -> f64) -> Self;
    fn lesser(self, other: Self) -> Self {
        if self.is_nan() || self < other { self } else { other }
    }
    fn larger(self, other: Self) -> Self {
        if self.is_nan() || self > other { self } else { other }
    }
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        #[allow(unused_comparisons, clippy::absurd_extreme_comparisons)]
        impl Arithmetic for $t {
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            /// Never called: integers are divided as f64.
            fn over(self, other: Self) -> Self {
                self.floor_over(other)
            }
            #[inline(always)]
            fn floor_over(self, other: Self) -> Self {
                if other == 0 {
                    return 0;
                }
                let quotient = self.wrapping_div(other);
                let rest = self.wrapping_rem(other);
                if rest != 0 && (rest < 0) != (other < 0) { quotient.wrapping_sub(1) } else { quotient }
            }
            #[inline(always)]
            fn modulo(self, other: Self) -> Self {
                if other == 0 {
                    return 0;
                }
                let rest = self.wrapping_rem(other);
                if rest != 0 && (rest < 0) != (other < 0) { rest.wrapping_add(other) } else { rest }
            }
            /// Never called: exponents of integers are literals.
            fn power(self, exponent: Self) -> Self {
                self.whole_power(exponent as i128)
            }
            fn whole_power(self, exponent: i128) -> Self {
                self.wrapping_pow(exponent.clamp(0, u32::MAX.into()) as u32)
            }
            #[inline(always)]
            fn negative(self) -> Self {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                if self < 0 { self.wrapping_neg() } else { self }
            }
            fn is_finite_number(self) -> bool {
                true
            }
            fn via_f64(self, _: impl Fn(f64) -> f64) -> Self {
                self
            }
        }
    )*};
}

integers! { i8, i16, i32, i64, u8, u16, u32, u64 }

/// Powers up to this are made of multiplications.
const LARGEST_PRODUCT: i128 = 64;

macro_rules! floats {
    ($($t:ty, $fmod:path);*) => {$(
        impl Arithmetic for $t {
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self - other
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn over(self, other: Self) -> Self {
                self / other
            }
            /// Computes the quotient from the remainder, as NumPy does, so that both are consistent.
            fn floor_over(self, other: Self) -> Self {
                if other == 0.0 {
                    return self / other;
                }
                let rest = $fmod(self, other);
                let mut quotient = (self - rest) / other;
                if rest != 0.0 && (other < 0.0) != (rest < 0.0) {
                    quotient -= 1.0;
                }
                if quotient == 0.0 {
                    return (0.0 as $t).copysign(self / other);
                }
                let whole = quotient.floor();
                if quotient - whole > 0.5 { whole + 1.0 } else { whole }
            }
            fn modulo(self, other: Self) -> Self {
                let rest = $fmod(self, other);
                if other == 0.0 {
                    return <$t>::NAN;
                }
                if rest == 0.0 {
                    return (0.0 as $t).copysign(other);
                }
                if (other < 0.0) != (rest < 0.0) { rest + other } else { rest }
            }
            fn power(self, exponent: Self) -> Self {
                libm::pow(f64::from(self), f64::from(exponent)) as $t
            }
            fn whole_power(self, exponent: i128) -> Self {
                if exponent.abs() > LARGEST_PRODUCT {
                    return libm::pow(f64::from(self), exponent as f64) as $t;
                }
                let (mut result, mut square) = (1.0f64, f64::from(self));
                let mut rest = exponent.unsigned_abs();
                while rest > 0 {
                    if rest & 1 == 1 {
                        result *= square;
                    }
                    rest >>= 1;
                    if rest > 0 {
                        square *= square;
                    }
                }
                (if exponent < 0 { 1.0 / result } else { result }) as $t
            }
            #[inline(always)]
            fn negative(self) -> Self {
                -self
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn is_finite_number(self) -> bool {
                self.is_finite()
            }
            #[inline(always)]
            fn via_f64(self, f: impl Fn(f64) -> f64) -> Self {
                f(f64::from(self)) as $t
            }
        }
    )*};
}

floats! { f32, libm::fmodf; f64, libm::fmod }
