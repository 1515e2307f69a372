//! Types that can be NaN, and elements that are true.

use gristmill_kernel::ArrayType;

use crate::values::Number;

/// Whether elements of a type can be NaN.
pub(crate) const fn is_float(dtype: ArrayType) -> bool {
    matches!(dtype, ArrayType::Number(dtype) if dtype.is_float())
}

/// Whether an element is true. All elements except zeros are; NaN is too.
#[inline(always)]
pub(crate) fn is_true<T: Number>(x: T) -> bool {
    x != T::default()
}
