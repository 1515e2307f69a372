//! Keys of elements: integers that have the same order as the elements, for kernels that work with an order.

use crate::element::Element;
use crate::{DType, Value};

/// The key of an element: an unsigned integer of the same width and order. -0.0 has the key of 0.0. `x` is not NaN.
#[inline(always)]
pub(crate) fn key<T: Element>(x: T) -> u64 {
    let bits = x.bits();
    let top = 1u64 << (8 * T::SIZE - 1);
    let ones = top | (top - 1);
    match T::DTYPE {
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => bits,
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => bits ^ top,
        DType::F32 | DType::F64 if bits == top => top,
        DType::F32 | DType::F64 if bits & top == 0 => bits | top,
        DType::F32 | DType::F64 => !bits & ones,
    }
}

/// The element of a key.
pub(crate) fn element<T: Element>(key: u64) -> T {
    let top = 1u64 << (8 * T::SIZE - 1);
    T::from_bits(match T::DTYPE {
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => key,
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => key ^ top,
        DType::F32 | DType::F64 if key & top != 0 => key & !top,
        DType::F32 | DType::F64 => !key,
    })
}

/// The exact value of a key.
pub(crate) fn value<T: Element>(key: u64) -> Value {
    element::<T>(key).value()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ascends<T: Element>(values: &[T]) {
        for pair in values.windows(2) {
            assert!(key(pair[0]) < key(pair[1]));
        }
        for x in values {
            assert_eq!(element::<T>(key(*x)).bits(), x.bits());
        }
    }

    #[test]
    fn keys_keep_the_order_and_are_reversible() {
        ascends(&[i8::MIN, -1, 0, 1, i8::MAX]);
        ascends(&[i64::MIN, -1, 0, 1, i64::MAX]);
        ascends(&[0u16, 1, u16::MAX]);
        ascends(&[f64::NEG_INFINITY, f64::MIN, -1.0, -5e-324, 0.0, 5e-324, 1.0, f64::MAX, f64::INFINITY]);
        ascends(&[f32::NEG_INFINITY, f32::MIN, -1.0, -1e-45, 0.0, 1e-45, 1.0, f32::MAX, f32::INFINITY]);
        assert_eq!(key(-0.0f64), key(0.0f64));
        assert_eq!(key(-0.0f32), key(0.0f32));
    }
}
