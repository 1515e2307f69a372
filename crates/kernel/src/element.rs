//! Elements as Rust numbers, and dispatch from a [`DType`] to one of them.

use crate::{DType, Value};

/// A type of numbers that a file can hold.
pub trait Element: Copy + PartialOrd + Send + Sync + 'static {
    /// The [`DType`] of the type.
    const DTYPE: DType;
    /// Bytes of one element.
    const SIZE: usize;
    /// An unsigned integer of the same width, for masks that vectorise.
    type Mask: Copy + Default + std::ops::BitOr<Output = Self::Mask> + PartialEq + From<bool>;

    /// Reads a little-endian element from exactly [`Element::SIZE`] bytes.
    fn read(bytes: &[u8]) -> Self;
    /// The bits of the element, widened with zeros.
    fn bits(self) -> u64;
    /// The element with these bits. Higher bits are ignored.
    fn from_bits(bits: u64) -> Self;
    /// The exact value. Floats are widened to f64.
    fn value(self) -> Value;
    /// The value as f64, rounded to nearest for 64-bit integers.
    fn to_f64(self) -> f64;
    /// Whether the element is a NaN.
    fn is_nan(self) -> bool;
    /// The element nearest to `x`, within the range of the type. Ties of integers below 2^51 go to the even integer.
    /// NaN becomes the canonical NaN, or 0 for integers.
    fn from_f64(x: f64) -> Self;
}

/// Rounds a number to an integer, ties to even, if it is added and then subtracted.
const TO_INTEGER: f64 = 1.5 * (1u64 << 52) as f64;

macro_rules! integer {
    ($($t:ty, $dtype:ident, $unsigned:ty);* $(;)?) => {$(
        impl Element for $t {
            const DTYPE: DType = DType::$dtype;
            const SIZE: usize = size_of::<$t>();
            type Mask = $unsigned;
            #[inline(always)]
            fn read(bytes: &[u8]) -> Self {
                let mut out = [0; size_of::<$t>()];
                out.copy_from_slice(bytes);
                <$t>::from_le_bytes(out)
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                self as $unsigned as u64
            }
            fn from_bits(bits: u64) -> Self {
                bits as $t
            }
            fn value(self) -> Value {
                Value::Int(i128::from(self))
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                if size_of::<$t>() > 4 {
                    return ((x + TO_INTEGER) - TO_INTEGER) as $t;
                }
                // These comparisons vectorise. Both ends of the range are integers, so rounding stays within them.
                // Then the lowest bits of the sum are those of the integer.
                let x = if x.is_nan() { 0.0 } else { x };
                let x = if x > <$t>::MIN as f64 { x } else { <$t>::MIN as f64 };
                let x = if x < <$t>::MAX as f64 { x } else { <$t>::MAX as f64 };
                (x + TO_INTEGER).to_bits() as $t
            }
        }
    )*};
}

integer! {
    i8, I8, u8; i16, I16, u16; i32, I32, u32; i64, I64, u64;
    u8, U8, u8; u16, U16, u16; u32, U32, u32; u64, U64, u64;
}

macro_rules! float {
    ($($t:ty, $dtype:ident, $bits:ty);* $(;)?) => {$(
        impl Element for $t {
            const DTYPE: DType = DType::$dtype;
            const SIZE: usize = size_of::<$t>();
            type Mask = $bits;
            #[inline(always)]
            fn read(bytes: &[u8]) -> Self {
                let mut out = [0; size_of::<$t>()];
                out.copy_from_slice(bytes);
                <$t>::from_le_bytes(out)
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(self.to_bits())
            }
            fn from_bits(bits: u64) -> Self {
                <$t>::from_bits(bits as $bits)
            }
            fn value(self) -> Value {
                Value::float(f64::from(self))
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                <$t>::is_nan(self)
            }
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                if x.is_nan() { <$t>::NAN } else { x as $t }
            }
        }
    )*};
}

float! { f32, F32, u32; f64, F64, u64; }

/// Evaluates an expression with `$T` standing for the Rust type of a [`DType`].
macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::I8 => {
                type $T = i8;
                $body
            }
            $crate::DType::I16 => {
                type $T = i16;
                $body
            }
            $crate::DType::I32 => {
                type $T = i32;
                $body
            }
            $crate::DType::I64 => {
                type $T = i64;
                $body
            }
            $crate::DType::U8 => {
                type $T = u8;
                $body
            }
            $crate::DType::U16 => {
                type $T = u16;
                $body
            }
            $crate::DType::U32 => {
                type $T = u32;
                $body
            }
            $crate::DType::U64 => {
                type $T = u64;
                $body
            }
            $crate::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::DType::F64 => {
                type $T = f64;
                $body
            }
        }
    };
}
pub(crate) use with_element;

/// The index of the first NaN in `data`, counted in elements.
pub fn first_nan(dtype: DType, data: &[u8]) -> Option<u64> {
    match dtype {
        DType::F32 => data.chunks_exact(4).position(|x| f32::read(x).is_nan()).map(|i| i as u64),
        DType::F64 => data.chunks_exact(8).position(|x| f64::read(x).is_nan()).map(|i| i as u64),
        _ => None,
    }
}
