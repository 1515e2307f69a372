//! Columns of elements in memory, and their element types.

use gristmill_kernel::{ArrayType, DType};

/// Elements of one type, in C order.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Values {
    Bool(Vec<bool>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// A Rust type of elements.
pub trait Number: Copy + PartialEq + PartialOrd + Default + Send + Sync + 'static {
    /// The element type.
    const TYPE: ArrayType;
    /// Makes a column of elements.
    fn wrap(values: Vec<Self>) -> Values;
    /// The value as f64. An integer beyond 2^53 is rounded to nearest.
    fn to_f64(self) -> f64;
    /// The value of an integer or a boolean. A float is cut towards zero, as by a Rust cast.
    fn to_i128(self) -> i128;
    /// Whether it is a NaN.
    fn is_nan(self) -> bool;
    /// The key of the element. Keys have the order of the elements: -0.0 before +0.0, NaN last.
    fn key(self) -> u64;
    /// The element of a key.
    fn of_key(key: u64) -> Self;
    /// Appends the little-endian bytes.
    fn put(self, out: &mut Vec<u8>);
}

macro_rules! integer {
    ($($t:ty, $name:ident, $unsigned:ty);*) => {$(
        impl Number for $t {
            const TYPE: ArrayType = ArrayType::Number(DType::$name);
            fn wrap(values: Vec<Self>) -> Values {
                Values::$name(values)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn to_i128(self) -> i128 {
                self as i128
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }
            #[inline(always)]
            fn key(self) -> u64 {
                // A signed type has its sign bit flipped.
                (self as $unsigned ^ <$t>::MIN as $unsigned) as u64
            }
            #[inline(always)]
            fn of_key(key: u64) -> Self {
                (key as $unsigned ^ <$t>::MIN as $unsigned) as $t
            }
            fn put(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

integer! {
    i8, I8, u8; i16, I16, u16; i32, I32, u32; i64, I64, u64;
    u8, U8, u8; u16, U16, u16; u32, U32, u32; u64, U64, u64
}

macro_rules! float {
    ($($t:ty, $name:ident, $bits:ty, $signed:ty);*) => {$(
        impl Number for $t {
            const TYPE: ArrayType = ArrayType::Number(DType::$name);
            fn wrap(values: Vec<Self>) -> Values {
                Values::$name(values)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn to_i128(self) -> i128 {
                self as i128
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                <$t>::is_nan(self)
            }
            #[inline(always)]
            fn key(self) -> u64 {
                const HIGHEST: $bits = 1 << (<$bits>::BITS - 1);
                let bits = if self.is_nan() { <$t>::NAN.to_bits() } else { self.to_bits() };
                // A negative float has all bits flipped, any other float only the sign.
                u64::from(bits ^ ((bits as $signed >> (<$bits>::BITS - 1)) as $bits | HIGHEST))
            }
            #[inline(always)]
            fn of_key(key: u64) -> Self {
                const HIGHEST: $bits = 1 << (<$bits>::BITS - 1);
                let key = key as $bits;
                <$t>::from_bits(if key & HIGHEST != 0 { key ^ HIGHEST } else { !key })
            }
            fn put(self, out: &mut Vec<u8>) {
                let one = if self.is_nan() { <$t>::NAN } else { self };
                out.extend_from_slice(&one.to_le_bytes());
            }
        }
    )*};
}

float! { f32, F32, u32, i32; f64, F64, u64, i64 }

impl Number for bool {
    const TYPE: ArrayType = ArrayType::Bool;
    fn wrap(values: Vec<Self>) -> Values {
        Values::Bool(values)
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(u8::from(self))
    }
    #[inline(always)]
    fn to_i128(self) -> i128 {
        i128::from(self)
    }
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
    #[inline(always)]
    fn key(self) -> u64 {
        u64::from(self)
    }
    #[inline(always)]
    fn of_key(key: u64) -> Self {
        key != 0
    }
    fn put(self, out: &mut Vec<u8>) {
        out.push(u8::from(self));
    }
}

/// Evaluates an expression with a name for the vector inside a column.
macro_rules! with_values {
    ($values:expr, $name:ident => $body:expr) => {
        match $values {
            $crate::values::Values::Bool($name) => $body,
            $crate::values::Values::I8($name) => $body,
            $crate::values::Values::I16($name) => $body,
            $crate::values::Values::I32($name) => $body,
            $crate::values::Values::I64($name) => $body,
            $crate::values::Values::U8($name) => $body,
            $crate::values::Values::U16($name) => $body,
            $crate::values::Values::U32($name) => $body,
            $crate::values::Values::U64($name) => $body,
            $crate::values::Values::F32($name) => $body,
            $crate::values::Values::F64($name) => $body,
        }
    };
}
pub(crate) use with_values;

/// Evaluates an expression with a name for the Rust type of an element type.
macro_rules! with_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            gristmill_kernel::ArrayType::Bool => {
                type $T = bool;
                $body
            }
            gristmill_kernel::ArrayType::Number(dtype) => $crate::values::with_number!(dtype, $T => $body),
        }
    };
}
pub(crate) use with_type;

/// Evaluates an expression with a name for the Rust type of a number type.
macro_rules! with_number {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            gristmill_kernel::DType::I8 => {
                type $T = i8;
                $body
            }
            gristmill_kernel::DType::I16 => {
                type $T = i16;
                $body
            }
            gristmill_kernel::DType::I32 => {
                type $T = i32;
                $body
            }
            gristmill_kernel::DType::I64 => {
                type $T = i64;
                $body
            }
            gristmill_kernel::DType::U8 => {
                type $T = u8;
                $body
            }
            gristmill_kernel::DType::U16 => {
                type $T = u16;
                $body
            }
            gristmill_kernel::DType::U32 => {
                type $T = u32;
                $body
            }
            gristmill_kernel::DType::U64 => {
                type $T = u64;
                $body
            }
            gristmill_kernel::DType::F32 => {
                type $T = f32;
                $body
            }
            gristmill_kernel::DType::F64 => {
                type $T = f64;
                $body
            }
        }
    };
}
pub(crate) use with_number;

impl Values {
    /// The type of the elements.
    pub fn dtype(&self) -> ArrayType {
        fn of<T: Number>(_: &[T]) -> ArrayType {
            T::TYPE
        }
        with_values!(self, values => of(values))
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        with_values!(self, values => values.len())
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the elements, little-endian. A bool is one byte.
    pub fn append_le(&self, out: &mut Vec<u8>) {
        with_values!(self, values => values.iter().for_each(|x| x.put(out)));
    }

    /// Returns the elements as f64. Integers beyond 2^53 are rounded to nearest.
    pub fn to_f64(&self) -> Vec<f64> {
        with_values!(self, values => values.iter().map(|x| x.to_f64()).collect())
    }

    /// An empty column of a type.
    pub fn empty(dtype: ArrayType) -> Values {
        with_type!(dtype, T => T::wrap(Vec::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted<T: Number + std::fmt::Debug>(values: &[T]) {
        for pair in values.windows(2) {
            assert!(pair[0].key() < pair[1].key(), "{pair:?}");
        }
        for value in values {
            assert!(T::of_key(value.key()) == *value || value.is_nan());
        }
    }

    #[test]
    fn keys_are_in_the_order_of_the_values() {
        sorted(&[f64::NEG_INFINITY, -1.5, -5e-324, -0.0, 0.0, 5e-324, 1.0, f64::INFINITY, f64::NAN]);
        sorted(&[f32::NEG_INFINITY, -1.5, -1e-45, -0.0, 0.0, 1e-45, 1.0, f32::INFINITY, f32::NAN]);
        sorted(&[i8::MIN, -1, 0, 1, i8::MAX]);
        sorted(&[i64::MIN, -1, 0, 1, i64::MAX]);
        sorted(&[0, 1, u32::MAX]);
        sorted(&[0, 1, u64::MAX]);
        assert_eq!((-f64::NAN).key(), f64::NAN.key());
    }
}
