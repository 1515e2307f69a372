//! Statistics of the elements of a chunk, made block by block while a block is in cache.

use gristmill_exact::{BinnedCells, Sum};
use gristmill_kernel::ArrayType;

use crate::statistics::ChunkStatistics;
use crate::totals::add_exactly;
use crate::truth::is_float;
use crate::values::{Number, Values, with_values};

/// The sums of floats to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SumKinds {
    pub(crate) exact: bool,
    pub(crate) binned: bool,
}

/// The statistics of the elements so far.
pub(crate) struct Measure(ChunkStatistics);

impl Measure {
    pub(crate) fn new(dtype: ArrayType, sums: SumKinds) -> Measure {
        let float = is_float(dtype);
        Measure(ChunkStatistics {
            dtype,
            elements: 0,
            missing: 0,
            range: None,
            whole: (!float).then_some(0),
            exact: (float && sums.exact).then(Box::default),
            binned: (float && sums.binned).then(|| Box::new(BinnedCells::new(1))),
        })
    }

    /// Takes elements of the type given to [`Measure::new`].
    pub(crate) fn take(&mut self, values: &Values) {
        let all = &mut self.0;
        with_values!(values, values => {
            all.elements += values.len() as u64;
            let (missing, range) = Bounded::bounds(&values[..]);
            all.missing += missing as u64;
            if let Some((least, largest)) = range {
                let (low, high) = all.range.unwrap_or((u64::MAX, 0));
                all.range = Some((low.min(least.key()), high.max(largest.key())));
            }
            if let Some(sum) = &mut all.whole {
                *sum = sum.wrapping_add(Bounded::whole_sum(&values[..]));
            }
        });
        match values {
            Values::F32(values) => sum_floats(all, values),
            Values::F64(values) => sum_floats(all, values),
            _ => {}
        }
    }

    pub(crate) fn statistics(self) -> ChunkStatistics {
        self.0
    }
}

fn sum_floats<T: gristmill_exact::Real + Number>(all: &mut ChunkStatistics, values: &[T]) {
    if let Some(sum) = &mut all.exact {
        let sum: &mut Sum = sum;
        add_exactly(sum, values);
    }
    if let Some(cell) = &mut all.binned {
        cell.add_run(0, values, true);
    }
}

/// Elements whose range and sum can be measured.
trait Bounded: Number {
    /// Returns the number of NaNs, and the least and the largest of the others by their keys.
    fn bounds(values: &[Self]) -> (usize, Option<(Self, Self)>);
    /// Returns the sum of integers, and 0 for floats.
    fn whole_sum(values: &[Self]) -> i128;
}

macro_rules! whole {
    ($($t:ty),*) => {$(
        impl Bounded for $t {
            fn bounds(values: &[Self]) -> (usize, Option<(Self, Self)>) {
                let least = values.iter().copied().min();
                (0, least.zip(values.iter().copied().max()))
            }
            fn whole_sum(values: &[Self]) -> i128 {
                crate::totals::run_sum(values)
            }
        }
    )*};
}

whole! { bool, i8, i16, i32, i64, u8, u16, u32, u64 }

macro_rules! float {
    ($($t:ty, $range:path);*) => {$(
        impl Bounded for $t {
            fn bounds(values: &[Self]) -> (usize, Option<(Self, Self)>) {
                $range(values)
            }
            fn whole_sum(_: &[Self]) -> i128 {
                0
            }
        }
    )*};
}

float! { f32, gristmill_exact::range_f32; f64, gristmill_exact::range_f64 }
