//! The least and the largest of many floats.

use crate::path::{Path, Work};
use crate::vector::Vector;

/// The result of [`range_f32`] and [`range_f64`]: the number of NaNs, and the least and the largest other value.
pub type ValueRange<T> = (usize, Option<(T, T)>);

macro_rules! range {
    ($t:ty, $bits:ty, $lanes:literal, $work:ident, $name:ident, $on:ident) => {
        struct $work<'a>(&'a [$t]);

        impl Work for $work<'_> {
            type Out = ValueRange<$t>;

            #[inline(always)]
            fn run<V: Vector>(self, _: V) -> ValueRange<$t> {
                const LANES: usize = $lanes;
                let (groups, rest) = self.0.as_chunks::<LANES>();
                let mut least = [<$t>::INFINITY; LANES];
                let mut largest = [<$t>::NEG_INFINITY; LANES];
                let mut nans = [0 as $bits; LANES];
                let mut look = |i: usize, x: $t| {
                    // These comparisons are false for NaN.
                    least[i] = if x < least[i] { x } else { least[i] };
                    largest[i] = if x > largest[i] { x } else { largest[i] };
                    nans[i] += <$bits>::from(x.is_nan());
                };
                for group in groups {
                    for i in 0..LANES {
                        look(i, group[i]);
                    }
                }
                for (i, x) in rest.iter().enumerate() {
                    look(i, *x);
                }
                let missing = nans.iter().map(|n| *n as usize).sum::<usize>();
                if missing == self.0.len() {
                    return (missing, None);
                }
                let mut low = least.into_iter().fold(<$t>::INFINITY, |a, b| if b < a { b } else { a });
                let mut high = largest.into_iter().fold(<$t>::NEG_INFINITY, |a, b| if b > a { b } else { a });
                // Both zeros are equal, so a search finds which of them occur.
                let has = |zero: $t| self.0.iter().any(|x| x.to_bits() == zero.to_bits());
                if low == 0.0 {
                    low = if has(-0.0) { -0.0 } else { 0.0 };
                }
                if high == 0.0 {
                    high = if has(0.0) { 0.0 } else { -0.0 };
                }
                (missing, Some((low, high)))
            }
        }

        /// The number of NaNs, and the least and the largest other value. -0.0 counts as less than +0.0. There may be
        /// at most 2^32 values.
        pub fn $name(values: &[$t]) -> ValueRange<$t> {
            $on(Path::best(), values)
        }

        fn $on(path: Path, values: &[$t]) -> ValueRange<$t> {
            path.run($work(values))
        }
    };
}

range! { f32, u32, 32, RangeF32, range_f32, range_f32_on }
range! { f64, u64, 16, RangeF64, range_f64, range_f64_on }

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = f64> {
        prop_oneof![
            any::<f64>(),
            Just(f64::NAN),
            Just(-f64::NAN),
            Just(0.0),
            Just(-0.0),
            Just(f64::INFINITY),
            Just(f64::NEG_INFINITY)
        ]
    }

    proptest! {
        #[test]
        fn range_is_that_of_a_total_order_on_every_path(
            pool in prop::collection::vec(value(), 1..4), picks in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let wide: Vec<f64> = picks.iter().map(|pick| pool[usize::from(*pick) % pool.len()]).collect();
            let narrow: Vec<f32> = wide.iter().map(|x| *x as f32).collect();
            for path in Path::available() {
                let others = || wide.iter().copied().filter(|x| !x.is_nan());
                let range = others().min_by(f64::total_cmp).zip(others().max_by(f64::total_cmp));
                let (nans, found) = range_f64_on(path, &wide);
                let bits = |range: Option<(f64, f64)>| range.map(|(a, b)| (a.to_bits(), b.to_bits()));
                prop_assert_eq!((nans, bits(found)), (wide.len() - others().count(), bits(range)));
                let others = || narrow.iter().copied().filter(|x| !x.is_nan());
                let range = others().min_by(f32::total_cmp).zip(others().max_by(f32::total_cmp));
                let (nans, found) = range_f32_on(path, &narrow);
                let bits = |range: Option<(f32, f32)>| range.map(|(a, b)| (a.to_bits(), b.to_bits()));
                prop_assert_eq!((nans, bits(found)), (narrow.len() - others().count(), bits(range)));
            }
        }
    }
}
