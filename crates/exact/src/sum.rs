//! The exact sum.

use num_bigint::BigUint;

use crate::block::{ValueTotal, add_values};
use crate::exact_number::ExactNumber;
use crate::non_finite::NonFinite;
use crate::path::Path;
use crate::ratio::ratio_to_f64;
use crate::round::CANONICAL_NAN;
use crate::state::{DecodeError, HEAD_BYTES, Kind, NEGATIVE, Reader, write_head, write_magnitude};
use crate::wide::Wide;

const KIND: Kind = Kind { tag: 0x10, name: "sum" };

/// Exact sum of `f64` values (`f32` are widened, which is exact). NaNs and infinities are counted, not
/// summed.
///
/// The state depends only on the multiset of the values: any order, split and merging gives the same
/// [`encode`](Sum::encode) bytes. It holds any 2^64 values; a sum of 2^141 of the largest would wrap.
///
/// Two sums are equal if their exact values and counts are equal.
#[derive(Clone, Debug)]
pub struct Sum {
    total: ValueTotal,
    non_finite: NonFinite,
}

impl Default for Sum {
    fn default() -> Self {
        Sum::new()
    }
}

impl PartialEq for Sum {
    fn eq(&self, other: &Self) -> bool {
        self.non_finite == other.non_finite && self.total.wide == other.total.wide
    }
}

impl Eq for Sum {}

impl Sum {
    /// The longest encoding, in bytes: first byte, three counts and every limb.
    pub const STATE_BYTES: usize = HEAD_BYTES + Wide::<70, -1074>::STATE_BYTES;

    /// The sum of no values, `+0.0`.
    pub const fn new() -> Self {
        Sum {
            total: ValueTotal::new(Wide::new()),
            non_finite: NonFinite { nans: 0, positive: 0, negative: 0 },
        }
    }

    /// Adds one value. The functions that take many values are faster.
    #[inline]
    pub fn add(&mut self, x: f64) {
        if !self.non_finite.count(x) {
            self.total.add(x);
        }
    }

    /// Adds little-endian `f64` values at any alignment. `bytes` holds whole values: its length is a multiple
    /// of 8. A release build ignores trailing bytes, a debug build panics.
    pub fn add_f64_le(&mut self, bytes: &[u8]) {
        self.add_f64_on(Path::best(), bytes);
    }

    /// Adds little-endian `f32` values at any alignment. `bytes` holds whole values: its length is a multiple
    /// of 4. A release build ignores trailing bytes, a debug build panics.
    pub fn add_f32_le(&mut self, bytes: &[u8]) {
        self.add_f32_on(Path::best(), bytes);
    }

    pub(crate) fn add_f64_on(&mut self, path: Path, bytes: &[u8]) {
        let (values, rest) = bytes.as_chunks::<8>();
        debug_assert!(rest.is_empty(), "{} bytes are not a whole number of f64", bytes.len());
        add_values(path, values, &mut self.non_finite, &mut self.total, None);
    }

    pub(crate) fn add_f32_on(&mut self, path: Path, bytes: &[u8]) {
        let (values, rest) = bytes.as_chunks::<4>();
        debug_assert!(rest.is_empty(), "{} bytes are not a whole number of f32", bytes.len());
        add_values(path, values, &mut self.non_finite, &mut self.total, None);
    }

    /// Adds all that `other` holds.
    pub fn merge(&mut self, other: &Sum) {
        self.total.wide.merge(&other.total.wide);
        self.non_finite.merge(&other.non_finite);
    }

    /// Number of NaNs that were added.
    pub fn nans(&self) -> u64 {
        self.non_finite.nans
    }

    /// Numbers of positive and of negative infinities that were added.
    pub fn infinities(&self) -> (u64, u64) {
        (self.non_finite.positive, self.non_finite.negative)
    }

    /// The sum rounded to the nearest `f64`, ties to even. Any NaN, or infinities of both signs, give the NaN
    /// with bits `0x7ff8000000000000`. Infinities of one sign give that infinity. A sum that is too large
    /// gives an infinity. An exact zero is `+0.0`, also if all values are `-0.0`.
    pub fn value(&self) -> f64 {
        self.special(false).unwrap_or_else(|| self.total.wide.value())
    }

    /// The [`value`](Sum::value) without NaNs.
    pub fn value_skip_nan(&self) -> f64 {
        self.special(true).unwrap_or_else(|| self.total.wide.value())
    }

    /// The exact sum divided by `n` and rounded once. NaNs and infinities have the same effect as in
    /// [`value`](Sum::value), but the sum itself may exceed the largest `f64`. An exact zero is `+0.0`. A negative mean
    /// that is rounded to zero is `-0.0`. The mean is NaN for `n == 0`.
    pub fn mean(&self, n: u64) -> f64 {
        self.mean_of(n, false)
    }

    /// The [`mean`](Sum::mean) without NaNs. `n` is the number of the other values.
    pub fn mean_skip_nan(&self, n: u64) -> f64 {
        self.mean_of(n, true)
    }

    pub(crate) fn mean_of(&self, n: u64, skip_nan: bool) -> f64 {
        if n == 0 {
            return CANONICAL_NAN;
        }
        self.special(skip_nan).unwrap_or_else(|| {
            let (sum, exp2) = self.total.wide.to_big();
            ratio_to_f64(&sum, &BigUint::from(n), i64::from(exp2))
        })
    }

    /// The exact sum divided by `n`, before rounding. With `skip_nan` NaNs are left out. NaN for `n == 0`.
    pub fn exactly(&self, n: u64, skip_nan: bool) -> ExactNumber {
        if n == 0 {
            return ExactNumber::NAN;
        }
        match self.special(skip_nan) {
            Some(special) => ExactNumber::special(special),
            None => {
                let (sum, exp2) = self.total.wide.to_big();
                ExactNumber::ratio(sum, n.into(), exp2.into())
            }
        }
    }

    /// The answer if it does not depend on the finite values.
    fn special(&self, skip_nan: bool) -> Option<f64> {
        let NonFinite { nans, positive, negative } = self.non_finite;
        if (nans > 0 && !skip_nan) || (positive > 0 && negative > 0) {
            return Some(CANONICAL_NAN);
        }
        match (positive > 0, negative > 0) {
            (true, _) => Some(f64::INFINITY),
            (_, true) => Some(f64::NEG_INFINITY),
            _ => None,
        }
    }

    /// The exact sum minus `rounded`, a number near it, rounded once. NaNs are left out of the sum. The result is 0 if
    /// there is an infinity or if `rounded` is not finite.
    pub fn remainder(&self, rounded: f64) -> f64 {
        if self.infinities() != (0, 0) || !rounded.is_finite() {
            return 0.0;
        }
        let (sum, exp2) = self.wide().to_big();
        ExactNumber::difference(&sum, exp2.into(), rounded).to_f64()
    }

    /// Appends the state: at most [`STATE_BYTES`](Sum::STATE_BYTES) bytes, usually about twenty. Equal sums
    /// give equal bytes. The state is little-endian, and its length follows from its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (negative, magnitude) = self.total.wide.magnitude();
        write_head(out, KIND, negative, &self.non_finite);
        write_magnitude(out, &magnitude);
    }

    /// Reads a state from the front of `bytes`. Returns also the number of bytes that it took.
    ///
    /// # Errors
    /// [`DecodeError`] for bytes that [`encode`](Sum::encode) does not write. It never panics.
    pub fn decode(bytes: &[u8]) -> Result<(Sum, usize), DecodeError> {
        let (flags, mut reader) = Reader::new(KIND, bytes)?;
        let non_finite = reader.non_finite(flags)?;
        let wide = reader.wide(flags & NEGATIVE != 0)?;
        Ok((Sum { total: ValueTotal::new(wide), non_finite }, reader.used()))
    }

    /// The parts that [`Moments`](crate::Moments) uses.
    pub(crate) fn parts_mut(&mut self) -> (&mut ValueTotal, &mut NonFinite) {
        (&mut self.total, &mut self.non_finite)
    }

    pub(crate) fn wide(&self) -> &Wide<70, -1074> {
        &self.total.wide
    }

    pub(crate) fn from_parts(wide: Wide<70, -1074>, non_finite: NonFinite) -> Self {
        Sum { total: ValueTotal::new(wide), non_finite }
    }

    pub(crate) fn non_finite(&self) -> &NonFinite {
        &self.non_finite
    }
}
