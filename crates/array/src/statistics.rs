//! Statistics that are kept of a chunk, so that it need not be read again: the number of elements and of missing ones,
//! the least, the largest and the sum.

use gristmill_exact::{BinnedCells, Sum};
use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::{ArrayType, DType, KernelError};

use crate::reduction::NAME;
use crate::truth::is_float;
use crate::values::{Number, Values, with_type};

/// Statistics of the decoded values of one chunk. Only elements inside the array count.
///
/// They always have the number of elements and the range. They have sums if a request made them anyway. Encoded they
/// have at most [`MAX_SUMMARY_BYTES`](gristmill_kernel::MAX_SUMMARY_BYTES) bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkStatistics {
    /// Type of the values.
    pub(crate) dtype: ArrayType,
    /// Elements, missing ones included.
    pub(crate) elements: u64,
    /// NaNs.
    pub(crate) missing: u64,
    /// Keys of the least and of the largest ([`Number::key`]), where -0.0 is below +0.0; `None` if all are missing.
    pub(crate) range: Option<(u64, u64)>,
    /// The sum of integers.
    pub(crate) whole: Option<i128>,
    /// The exact sum of floats, NaNs counted.
    pub(crate) exact: Option<Box<Sum>>,
    /// The binned sum of floats, NaNs left out: one cell.
    pub(crate) binned: Option<Box<BinnedCells>>,
}

const WHOLE: u8 = 1;
const EXACT: u8 = 2;
const BINNED: u8 = 4;
const RANGE: u8 = 8;

/// Types in the order of their numbers in the encoding.
fn types() -> impl Iterator<Item = ArrayType> {
    std::iter::once(ArrayType::Bool).chain(DType::ALL.into_iter().map(ArrayType::Number))
}

impl ChunkStatistics {
    /// Number of elements, missing ones included.
    pub const fn elements(&self) -> u64 {
        self.elements
    }

    /// Number of missing elements: NaNs.
    pub const fn missing(&self) -> u64 {
        self.missing
    }

    /// The least and the largest value, as a column of two; `None` if all are missing.
    pub fn range(&self) -> Option<Values> {
        let (least, largest) = self.range?;
        Some(with_type!(self.dtype, T => T::wrap(vec![T::of_key(least), T::of_key(largest)])))
    }

    /// Adds the sums that other statistics of the same chunk have.
    pub(crate) fn join(mut self, other: ChunkStatistics) -> ChunkStatistics {
        self.whole = self.whole.or(other.whole);
        self.exact = self.exact.or(other.exact);
        self.binned = self.binned.or(other.binned);
        self
    }

    /// Encodes the statistics. Equal statistics give equal bytes. Numbers are little-endian.
    ///
    /// ```text
    /// type       u8: 0 bool, then as in DType::ALL
    /// parts      u8: 1 sum of integers, 2 exact sum, 4 binned sum, 8 range
    /// elements   u64, missing u64
    /// range      two u64, keys
    /// sums       i128; or as the crate exact saves them
    /// ```
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(96);
        out.push(types().position(|dtype| dtype == self.dtype).unwrap_or(usize::MAX) as u8);
        let parts = [
            (self.whole.is_some(), WHOLE),
            (self.exact.is_some(), EXACT),
            (self.binned.is_some(), BINNED),
            (self.range.is_some(), RANGE),
        ];
        out.push(parts.iter().filter(|(is, _)| *is).map(|(_, bit)| bit).sum());
        out.put_u64(self.elements);
        out.put_u64(self.missing);
        if let Some((least, largest)) = self.range {
            out.put_u64(least);
            out.put_u64(largest);
        }
        if let Some(sum) = self.whole {
            out.put_i128(sum);
        }
        if let Some(sum) = &self.exact {
            sum.encode(&mut out);
        }
        if let Some(cell) = &self.binned {
            cell.encode(&mut out);
        }
        out
    }

    /// Decodes the bytes of [`encode`](ChunkStatistics::encode). It never panics.
    ///
    /// # Errors
    /// Returns [`KernelError::BadState`] for bytes that `encode` does not write, and for parts that contradict each
    /// other.
    pub fn decode(bytes: &[u8]) -> Result<ChunkStatistics, KernelError> {
        let mut read = StateReader::new(NAME, bytes);
        let [dtype, parts] = *read.bytes(2)? else { return Err(read.bad("statistics without a head")) };
        let dtype = types().nth(usize::from(dtype)).ok_or_else(|| read.bad("statistics of no type"))?;
        let (elements, missing) = (read.u64()?, read.u64()?);
        let float = is_float(dtype);
        let range = if parts & RANGE != 0 { Some((read.u64()?, read.u64()?)) } else { None };
        let canonical =
            |key: u64| with_type!(dtype, T => !T::of_key(key).is_nan() && T::of_key(key).key() == key);
        let fits = match range {
            Some((least, largest)) => {
                least <= largest && canonical(least) && canonical(largest) && missing < elements
            }
            None => missing == elements,
        };
        let sums = parts & (WHOLE | EXACT | BINNED);
        let allowed = if float { EXACT | BINNED } else { WHOLE };
        if !fits || elements == 0 || missing > 0 && !float || sums & !allowed != 0 || parts > 15 {
            return Err(read.bad("statistics that contradict themselves"));
        }
        let whole = if parts & WHOLE != 0 { Some(read.i128()?) } else { None };
        let mut exact = None;
        if parts & EXACT != 0 {
            let (sum, used) = Sum::decode(read.rest()).map_err(|error| read.bad(error.to_string()))?;
            read.bytes(used)?;
            if sum.nans() != missing {
                return Err(read.bad("a sum of another number of NaNs"));
            }
            exact = Some(Box::new(sum));
        }
        let mut binned = None;
        if parts & BINNED != 0 {
            let mut cell = BinnedCells::new(1);
            let used = cell.merge_encoded(read.rest()).map_err(|error| read.bad(error.to_string()))?;
            read.bytes(used)?;
            binned = Some(Box::new(cell));
        }
        read.end()?;
        Ok(ChunkStatistics { dtype, elements, missing, range, whole, exact, binned })
    }

    /// Statistics of `elements` elements that all have the value of a key, or are all NaN if there is no key.
    pub(crate) fn constant(dtype: ArrayType, key: Option<u64>, elements: u64) -> ChunkStatistics {
        let missing = if key.is_none() { elements } else { 0 };
        let range = key.map(|key| (key, key));
        ChunkStatistics { dtype, elements, missing, range, whole: None, exact: None, binned: None }
    }

    /// Adds the sum, exact or binned, to statistics of elements that all have one value.
    pub(crate) fn with_sum(mut self, exactly: bool) -> ChunkStatistics {
        let key = self.range.map(|(key, _)| key);
        if !is_float(self.dtype) {
            let one = with_type!(self.dtype, T => key.map_or(0, |key| T::of_key(key).to_i128()));
            self.whole = Some(one.wrapping_mul(i128::from(self.elements)));
            return self;
        }
        let one = with_type!(self.dtype, T => key.map_or(f64::NAN, |key| T::of_key(key).to_f64()));
        if exactly {
            let mut power = Sum::new();
            power.add(one);
            self.exact = Some(Box::new(times(self.elements, Sum::new(), power, Sum::merge)));
        } else {
            let mut power = BinnedCells::new(1);
            power.add_run(0, &[one], true);
            self.binned =
                Some(Box::new(times(self.elements, BinnedCells::new(1), power, BinnedCells::merge)));
        }
        self
    }
}

/// Adds `power` to `all` `n` times, by doubling.
fn times<T: Clone>(mut n: u64, mut all: T, mut power: T, add: fn(&mut T, &T)) -> T {
    while n > 0 {
        if n & 1 == 1 {
            add(&mut all, &power);
        }
        n >>= 1;
        if n > 0 {
            let same = power.clone();
            add(&mut power, &same);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use gristmill_kernel::MAX_SUMMARY_BYTES;
    use proptest::prelude::*;

    use super::*;
    use crate::measure::{Measure, SumKinds};

    fn column() -> impl Strategy<Value = Values> {
        let float = prop_oneof![
            Just(f64::NAN),
            Just(0.0),
            Just(-0.0),
            Just(f64::INFINITY),
            Just(5e-324),
            any::<f64>(),
            -1e3..1e3
        ];
        prop_oneof![
            proptest::collection::vec(float.clone(), 1..600).prop_map(Values::F64),
            proptest::collection::vec(float.prop_map(|x| x as f32), 1..600).prop_map(Values::F32),
            proptest::collection::vec(any::<i8>(), 1..600).prop_map(Values::I8),
            proptest::collection::vec(any::<i64>(), 1..300).prop_map(Values::I64),
            proptest::collection::vec(any::<u64>(), 1..300).prop_map(Values::U64),
        ]
    }

    fn measured(values: &Values) -> ChunkStatistics {
        let mut measure = Measure::new(values.dtype(), SumKinds { exact: true, binned: true });
        measure.take(values);
        measure.statistics()
    }

    proptest! {
        #[test]
        fn bytes_come_back_and_are_bounded(values in column()) {
            let statistics = measured(&values);
            let bytes = statistics.encode();
            prop_assert!(bytes.len() <= MAX_SUMMARY_BYTES);
            prop_assert_eq!(ChunkStatistics::decode(&bytes).unwrap(), statistics);
        }

        #[test]
        fn no_bytes_make_it_panic(values in column(), at in 0usize..200, byte: u8, cut in 0usize..200) {
            let mut bytes = measured(&values).encode();
            let at = at % bytes.len();
            bytes[at] = byte;
            if let Ok(statistics) = ChunkStatistics::decode(&bytes) {
                prop_assert_eq!(statistics.encode(), bytes.clone());
            }
            bytes.truncate(cut);
            let _ = ChunkStatistics::decode(&bytes);
        }

        #[test]
        fn random_bytes_do_not_either(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = ChunkStatistics::decode(&bytes);
        }

        #[test]
        fn they_are_those_of_the_elements(values in column()) {
            let statistics = measured(&values);
            crate::values::with_values!(&values, values => {
                let mut keys: Vec<u64> = values.iter().filter(|x| !x.is_nan()).map(|x| x.key()).collect();
                keys.sort_unstable();
                let range = keys.first().copied().zip(keys.last().copied());
                prop_assert_eq!(statistics.range, range);
                prop_assert_eq!(statistics.missing, (values.len() - keys.len()) as u64);
                prop_assert_eq!(statistics.elements, values.len() as u64);
            });
        }

        #[test]
        fn one_value_many_times(values in column(), n in 1u64..5000) {
            let one = crate::values::with_values!(&values, values => {
                let values = vec![values[0]; n as usize];
                Number::wrap(values)
            });
            let measured = measured(&one);
            let key = measured.range.map(|(key, _)| key);
            let constant = || ChunkStatistics::constant(one.dtype(), key, n);
            let mut both = constant().with_sum(true).join(constant().with_sum(false));
            // The exact sum counts NaNs and the binned one does not.
            both.range = measured.range;
            prop_assert_eq!(both.encode(), measured.encode());
        }
    }
}
