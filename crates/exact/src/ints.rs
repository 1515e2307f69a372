//! Exact sums of integers, and of their squares.

use std::marker::PhantomData;

use num_bigint::{BigInt, BigUint, Sign};

use crate::exact_number::ExactNumber;
use crate::int_lanes::{BLOCK_VALUES, BiasedSum, Integer, SquareSum};
use crate::path::Path;
use crate::ratio::{ratio_to_f64, sqrt_ratio_to_f64};
use crate::round::CANONICAL_NAN;
use crate::state::{DecodeError, Kind, Reader};

const SUM: Kind = Kind { tag: 0x30, name: "integer sum" };
const MOMENTS: Kind = Kind { tag: 0x40, name: "pair of integer moments" };

/// Type of the integers in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum IntKind {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
}

impl IntKind {
    /// Bytes of one value.
    pub const fn bytes(self) -> usize {
        match self {
            IntKind::I8 | IntKind::U8 => 1,
            IntKind::I16 | IntKind::U16 => 2,
            IntKind::I32 | IntKind::U32 => 4,
            IntKind::I64 | IntKind::U64 => 8,
        }
    }
}

/// Calls `$f::<T, BYTES>` for the type of a kind.
macro_rules! with_kind {
    ($kind:expr, $f:ident($($arg:expr),*)) => {
        match $kind {
            IntKind::I8 => $f::<i8, 1>($($arg),*),
            IntKind::I16 => $f::<i16, 2>($($arg),*),
            IntKind::I32 => $f::<i32, 4>($($arg),*),
            IntKind::I64 => $f::<i64, 8>($($arg),*),
            IntKind::U8 => $f::<u8, 1>($($arg),*),
            IntKind::U16 => $f::<u16, 2>($($arg),*),
            IntKind::U32 => $f::<u32, 4>($($arg),*),
            IntKind::U64 => $f::<u64, 8>($($arg),*),
        }
    };
}

fn add_sum<T: Integer<BYTES>, const BYTES: usize>(path: Path, bytes: &[u8], sum: &mut i128) {
    let (values, rest) = bytes.as_chunks::<BYTES>();
    debug_assert!(rest.is_empty(), "{} bytes are not a whole number of {BYTES}-byte values", bytes.len());
    for values in values.chunks(BLOCK_VALUES) {
        let biased = path.run(BiasedSum::<T, BYTES> { values, kind: PhantomData });
        // Both are below 2^79.
        let block = biased as i128 - i128::from(T::BIAS) * values.len() as i128;
        *sum = sum.wrapping_add(block);
    }
}

fn add_squares<T: Integer<BYTES>, const BYTES: usize>(path: Path, bytes: &[u8], squares: &mut Squares) {
    let (values, _) = bytes.as_chunks::<BYTES>();
    for values in values.chunks(BLOCK_VALUES) {
        let (low, high) = path.run(SquareSum::<T, BYTES> { values, kind: PhantomData });
        squares.add(Squares { low, high });
    }
}

/// Exact sum of integers, in 128 bits: enough for 2^64 values of 63 bits and sign, or 2^63 of 64 bits. With more
/// values it wraps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntSum {
    sum: i128,
}

impl IntSum {
    /// Bytes of an encoding.
    pub const STATE_BYTES: usize = 17;

    /// The sum of no values.
    pub const fn new() -> Self {
        IntSum { sum: 0 }
    }

    /// Adds little-endian integers at any alignment. `bytes` holds whole values. A release build ignores
    /// trailing bytes, a debug build panics.
    pub fn add_le(&mut self, kind: IntKind, bytes: &[u8]) {
        self.add_on(Path::best(), kind, bytes);
    }

    pub(crate) fn add_on(&mut self, path: Path, kind: IntKind, bytes: &[u8]) {
        with_kind!(kind, add_sum(path, bytes, &mut self.sum));
    }

    /// Adds one value.
    pub fn add(&mut self, value: i128) {
        self.sum = self.sum.wrapping_add(value);
    }

    /// Adds the sum of `other`.
    pub fn merge(&mut self, other: &IntSum) {
        self.add(other.sum);
    }

    /// The sum.
    pub fn value(&self) -> i128 {
        self.sum
    }

    /// The exact sum divided by `n`, rounded once to the nearest `f64`, ties to even. NaN for `n == 0`.
    pub fn mean(&self, n: u64) -> f64 {
        if n == 0 {
            return CANONICAL_NAN;
        }
        ratio_to_f64(&BigInt::from(self.sum), &BigUint::from(n), 0)
    }

    /// Appends the state: one byte for the type, and the sum in 16 little-endian bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(SUM.tag);
        out.extend_from_slice(&self.sum.to_le_bytes());
    }

    /// Reads a state from the front of `bytes`. Returns also the number of bytes that it took.
    ///
    /// # Errors
    /// [`DecodeError`] for bytes that [`encode`](IntSum::encode) does not write.
    pub fn decode(bytes: &[u8]) -> Result<(IntSum, usize), DecodeError> {
        let (flags, mut reader) = Reader::new(SUM, bytes)?;
        if flags != 0 {
            return Err(reader.wrong("first byte"));
        }
        let sum = i128::from_le_bytes(reader.array()?);
        Ok((IntSum { sum }, reader.used()))
    }
}

/// A sum of squares in 192 bits: enough for 2^64 squares of 64-bit values. With more values it wraps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Squares {
    low: u128,
    high: u64,
}

impl Squares {
    fn add(&mut self, other: Squares) {
        let (low, carry) = self.low.overflowing_add(other.low);
        self.low = low;
        self.high = self.high.wrapping_add(other.high).wrapping_add(u64::from(carry));
    }

    fn to_big(self) -> BigInt {
        (BigInt::from(self.high) << 128u32) + BigInt::from(self.low)
    }
}

/// Exact sums of integers and of their squares: mean, variance and standard deviation. The caller keeps the number of
/// values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntMoments {
    sum: IntSum,
    squares: Squares,
}

impl IntMoments {
    /// Bytes of an encoding.
    pub const STATE_BYTES: usize = 41;

    /// The moments of no values.
    pub const fn new() -> Self {
        IntMoments { sum: IntSum::new(), squares: Squares { low: 0, high: 0 } }
    }

    /// Adds little-endian integers at any alignment. `bytes` holds whole values. A release build ignores
    /// trailing bytes, a debug build panics.
    pub fn add_le(&mut self, kind: IntKind, bytes: &[u8]) {
        self.add_on(Path::best(), kind, bytes);
    }

    pub(crate) fn add_on(&mut self, path: Path, kind: IntKind, bytes: &[u8]) {
        // There are two passes over each piece, which stays in the first-level cache.
        const PIECE: usize = 1 << 14;
        for piece in bytes.chunks(PIECE) {
            self.sum.add_on(path, kind, piece);
            with_kind!(kind, add_squares(path, piece, &mut self.squares));
        }
    }

    /// Adds one value of at most 64 bits and sign.
    pub fn add(&mut self, value: i128) {
        self.sum.add(value);
        let magnitude = value.unsigned_abs();
        self.squares.add(Squares { low: magnitude.wrapping_mul(magnitude), high: 0 });
    }

    /// The [`variance`](IntMoments::variance) before rounding.
    pub fn variance_exactly(&self, n: u64, ddof: u64) -> ExactNumber {
        match self.spread(n, ddof) {
            Some((num, den)) => ExactNumber::ratio(num, den, 0),
            None => ExactNumber::NAN,
        }
    }

    /// Adds all that `other` holds.
    pub fn merge(&mut self, other: &IntMoments) {
        self.sum.merge(&other.sum);
        self.squares.add(other.squares);
    }

    /// The sum of the values.
    pub fn sum(&self) -> i128 {
        self.sum.value()
    }

    /// The mean of `n` values: [`IntSum::mean`].
    pub fn mean(&self, n: u64) -> f64 {
        self.sum.mean(n)
    }

    /// The variance `(n * Sxx - Sx * Sx) / (n * (n - ddof))`, an exact rational that is rounded once. `n` is the number
    /// of values added. NaN for `n <= ddof`.
    pub fn variance(&self, n: u64, ddof: u64) -> f64 {
        match self.spread(n, ddof) {
            Some((num, den)) => ratio_to_f64(&num, &den, 0),
            None => CANONICAL_NAN,
        }
    }

    /// The square root of the same exact rational, rounded once. NaN for `n <= ddof`, and if a wrong `n` makes the
    /// rational negative.
    pub fn std(&self, n: u64, ddof: u64) -> f64 {
        match self.spread(n, ddof) {
            Some((num, den)) if num.sign() != Sign::Minus => sqrt_ratio_to_f64(num.magnitude(), &den, 0),
            _ => CANONICAL_NAN,
        }
    }

    /// The variance as a fraction.
    fn spread(&self, n: u64, ddof: u64) -> Option<(BigInt, BigUint)> {
        if n <= ddof {
            return None;
        }
        let sum = BigInt::from(self.sum());
        Some((self.squares.to_big() * n - &sum * &sum, BigUint::from(n) * (n - ddof)))
    }

    /// Appends the state: one byte for the type, then the sum in 16 and the sum of squares in 24 little-endian bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(MOMENTS.tag);
        out.extend_from_slice(&self.sum().to_le_bytes());
        out.extend_from_slice(&self.squares.low.to_le_bytes());
        out.extend_from_slice(&self.squares.high.to_le_bytes());
    }

    /// Reads a state from the front of `bytes`. Returns also the number of bytes that it took.
    ///
    /// # Errors
    /// [`DecodeError`] for bytes that [`encode`](IntMoments::encode) does not write.
    pub fn decode(bytes: &[u8]) -> Result<(IntMoments, usize), DecodeError> {
        let (flags, mut reader) = Reader::new(MOMENTS, bytes)?;
        if flags != 0 {
            return Err(reader.wrong("first byte"));
        }
        let sum = IntSum { sum: i128::from_le_bytes(reader.array()?) };
        let low = u128::from_le_bytes(reader.array()?);
        let squares = Squares { low, high: u64::from_le_bytes(reader.array()?) };
        Ok((IntMoments { sum, squares }, reader.used()))
    }
}
