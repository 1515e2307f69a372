//! The types of elements.

use gristmill_exact::{BinnedCells, Sum};
use serde_json::Number;

/// A type of elements.
pub(crate) trait Element: Copy + PartialOrd + Send + Sync + 'static {
    /// Sums of several cells.
    type Sums;
    /// The smallest value, and the largest: the results of a maximum and a minimum of nothing. They are finite.
    const ENDS: (Self, Self);
    /// A value that no other is below, and one that no other is above.
    const BEYOND: (Self, Self);

    /// The value of little-endian bytes; `None` if there are too few.
    fn read(bytes: &[u8]) -> Option<Self>;
    /// Appends the values of little-endian bytes.
    fn read_all(bytes: &[u8], values: &mut Vec<Self>);
    fn write(self, out: &mut Vec<u8>);
    /// The value of a number of JSON; `None` if the type has none.
    fn of_number(number: &Number) -> Option<Self>;
    fn is_nan(self) -> bool;

    fn sums(cells: usize) -> Self::Sums;
    /// Adds all values to one cell.
    fn add(sums: &mut Self::Sums, cell: usize, values: &[Self]);
    /// Adds the values of little-endian bytes to the only cell.
    fn add_bytes(sums: &mut Self::Sums, bytes: &[u8]);
    /// Adds each value to a cell of its own, from `cell` on.
    fn add_row(sums: &mut Self::Sums, cell: usize, values: &[Self]);
    fn sum(sums: &Self::Sums, cell: usize) -> Self;
}

macro_rules! integers {
    ($($type:ty: $number:ident),*) => {$(
        impl Element for $type {
            type Sums = Vec<$type>;
            const ENDS: (Self, Self) = (<$type>::MIN, <$type>::MAX);
            const BEYOND: (Self, Self) = Self::ENDS;

            fn read(bytes: &[u8]) -> Option<Self> {
                bytes.first_chunk().map(|bytes| <$type>::from_le_bytes(*bytes))
            }

            fn read_all(bytes: &[u8], values: &mut Vec<Self>) {
                let (each, _) = bytes.as_chunks::<{ size_of::<$type>() }>();
                values.extend(each.iter().map(|bytes| <$type>::from_le_bytes(*bytes)));
            }

            fn write(self, out: &mut Vec<u8>) {
                out.extend(self.to_le_bytes());
            }

            fn of_number(number: &Number) -> Option<Self> {
                number.$number()?.try_into().ok()
            }

            fn is_nan(self) -> bool {
                false
            }

            fn sums(cells: usize) -> Self::Sums {
                vec![0; cells]
            }

            fn add(sums: &mut Self::Sums, cell: usize, values: &[Self]) {
                if let Some(sum) = sums.get_mut(cell) {
                    *sum = values.iter().fold(*sum, |sum, x| sum.wrapping_add(*x));
                }
            }

            fn add_bytes(sums: &mut Self::Sums, bytes: &[u8]) {
                let (each, _) = bytes.as_chunks::<{ size_of::<$type>() }>();
                if let Some(sum) = sums.first_mut() {
                    *sum = each.iter().fold(*sum, |sum, x| sum.wrapping_add(<$type>::from_le_bytes(*x)));
                }
            }

            fn add_row(sums: &mut Self::Sums, cell: usize, values: &[Self]) {
                for (sum, x) in sums.iter_mut().skip(cell).zip(values) {
                    *sum = sum.wrapping_add(*x);
                }
            }

            fn sum(sums: &Self::Sums, cell: usize) -> Self {
                sums.get(cell).copied().unwrap_or(0)
            }
        }
    )*};
}

integers!(i32: as_i64, i64: as_i64, u32: as_u64, u64: as_u64);

/// Sums of floats: exact for one cell, binned for several.
pub(crate) enum FloatSums {
    One(Box<Sum>),
    Several(BinnedCells),
}

macro_rules! floats {
    ($($type:ty: $rounded:ident, $bytes:ident;)*) => {$(
        impl Element for $type {
            type Sums = FloatSums;
            const ENDS: (Self, Self) = (<$type>::MIN, <$type>::MAX);
            const BEYOND: (Self, Self) = (<$type>::NEG_INFINITY, <$type>::INFINITY);

            fn read(bytes: &[u8]) -> Option<Self> {
                bytes.first_chunk().map(|bytes| <$type>::from_le_bytes(*bytes))
            }

            fn read_all(bytes: &[u8], values: &mut Vec<Self>) {
                let (each, _) = bytes.as_chunks::<{ size_of::<$type>() }>();
                values.extend(each.iter().map(|bytes| <$type>::from_le_bytes(*bytes)));
            }

            fn write(self, out: &mut Vec<u8>) {
                out.extend(self.to_le_bytes());
            }

            fn of_number(number: &Number) -> Option<Self> {
                // JSON has finite numbers only. One that is too large for the type is no value of it.
                number.as_f64().map(|x| x as $type).filter(|x| x.is_finite())
            }

            fn is_nan(self) -> bool {
                <$type>::is_nan(self)
            }

            fn sums(cells: usize) -> Self::Sums {
                match cells {
                    1 => FloatSums::One(Box::new(Sum::new())),
                    _ => FloatSums::Several(BinnedCells::new(cells)),
                }
            }

            fn add(sums: &mut Self::Sums, cell: usize, values: &[Self]) {
                match sums {
                    FloatSums::One(sum) => values.iter().for_each(|x| sum.add(f64::from(*x))),
                    FloatSums::Several(cells) => cells.add_run(cell, values, false),
                }
            }

            fn add_bytes(sums: &mut Self::Sums, bytes: &[u8]) {
                // There is only one cell.
                if let FloatSums::One(sum) = sums {
                    sum.$bytes(bytes);
                }
            }

            fn add_row(sums: &mut Self::Sums, cell: usize, values: &[Self]) {
                match sums {
                    FloatSums::One(_) => Self::add(sums, cell, values),
                    FloatSums::Several(cells) => cells.add_row(cell, values, false),
                }
            }

            fn sum(sums: &Self::Sums, cell: usize) -> Self {
                match sums {
                    FloatSums::One(sum) => sum.exactly(1, false).$rounded(),
                    FloatSums::Several(cells) => cells.exactly(cell, 1).$rounded(),
                }
            }
        }
    )*};
}

floats!(f32: to_f32, add_f32_le; f64: to_f64, add_f64_le;);
