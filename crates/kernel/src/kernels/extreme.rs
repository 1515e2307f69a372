//! The smallest and the largest value with their indices, and the first NaN.

use multiversion::multiversion;

use crate::KernelError;
use crate::element::Element;
use crate::state::{StateReader, StateWriter};

/// The extremes of the values so far. Ties go to the lowest index, as in NumPy's `argmin`. -0.0 and 0.0 compare equal,
/// so the first of them is kept, too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Extremes<T> {
    /// Number of values, including NaN.
    pub count: u64,
    /// Number of NaNs.
    pub nans: u64,
    pub min: Option<(T, u64)>,
    pub max: Option<(T, u64)>,
    pub first_nan: Option<u64>,
}

impl<T: Element> Default for Extremes<T> {
    fn default() -> Self {
        Extremes { count: 0, nans: 0, min: None, max: None, first_nan: None }
    }
}

const LANES: usize = 32;

/// Returns the smallest and the largest value that is not NaN, without their places, and whether there is a NaN. The
/// result has no meaning if every value is NaN.
#[multiversion(targets("x86_64+avx+avx2+bmi1+bmi2", "x86_64+sse4.2"))]
fn scan<T: Element>(first: T, data: &[u8]) -> (T, T, bool) {
    let mut low = [first; LANES];
    let mut high = [first; LANES];
    let mut nan = [T::Mask::default(); LANES];
    let wide = T::SIZE * LANES;
    let mut chunks = data.chunks_exact(wide);
    for chunk in &mut chunks {
        for lane in 0..LANES {
            let x = T::read(&chunk[lane * T::SIZE..(lane + 1) * T::SIZE]);
            low[lane] = if x < low[lane] { x } else { low[lane] };
            high[lane] = if x > high[lane] { x } else { high[lane] };
            nan[lane] = nan[lane] | T::Mask::from(x.is_nan());
        }
    }
    for x in chunks.remainder().chunks_exact(T::SIZE) {
        let x = T::read(x);
        low[0] = if x < low[0] { x } else { low[0] };
        high[0] = if x > high[0] { x } else { high[0] };
        nan[0] = nan[0] | T::Mask::from(x.is_nan());
    }
    let mut out = (low[0], high[0], false);
    for lane in 0..LANES {
        out.0 = if low[lane] < out.0 { low[lane] } else { out.0 };
        out.1 = if high[lane] > out.1 { high[lane] } else { out.1 };
        out.2 |= nan[lane] != T::Mask::default();
    }
    out
}

impl<T: Element> Extremes<T> {
    /// Adds values. The first of them has the index `index`.
    pub fn take(&mut self, index: u64, data: &[u8]) {
        // A piece stays in the first-level cache, so the search for the place of a new extreme is cheap.
        const PIECE: usize = 16 << 10;
        let mut at = index;
        for piece in data.chunks(PIECE) {
            self.take_piece(at, piece);
            at += (piece.len() / T::SIZE) as u64;
        }
    }

    fn take_piece(&mut self, index: u64, data: &[u8]) {
        self.count += (data.len() / T::SIZE) as u64;
        let values = || data.chunks_exact(T::SIZE).map(T::read);
        let Some(first) = values().find(|x| !x.is_nan()) else {
            if self.first_nan.is_none_or(|at| index < at) && !data.is_empty() {
                self.first_nan = Some(index);
            }
            self.nans += (data.len() / T::SIZE) as u64;
            return;
        };
        let (low, high, nan) = scan(first, data);
        let place = |wanted: T| values().position(|x| x == wanted).map(|i| index + i as u64);
        // The value is read again at its place, because `scan` does not distinguish -0.0 from 0.0.
        let at = |i: u64| T::read(&data[(i - index) as usize * T::SIZE..][..T::SIZE]);
        // Blocks may come in any order, so a tie may move to a lower index.
        if self.min.is_none_or(|(x, at)| low < x || low == x && index < at) {
            self.min = place(low).map(|i| (at(i), i));
        }
        if self.max.is_none_or(|(x, at)| high > x || high == x && index < at) {
            self.max = place(high).map(|i| (at(i), i));
        }
        if nan {
            self.nans += values().filter(|x| x.is_nan()).count() as u64;
            if self.first_nan.is_none_or(|at| index < at) {
                self.first_nan = values().position(|x| x.is_nan()).map(|i| index + i as u64);
            }
        }
    }

    /// Merges the extremes of other records, which lie before or after these.
    pub fn merge(&mut self, other: &Extremes<T>) {
        self.count = self.count.saturating_add(other.count);
        self.nans = self.nans.saturating_add(other.nans);
        self.min = better_of(self.min, other.min, |a, b| a < b);
        self.max = better_of(self.max, other.max, |a, b| a > b);
        self.first_nan = match (self.first_nan, other.first_nan) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    pub fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.count);
        out.put_u64(self.nans);
        for found in [self.min, self.max] {
            out.put_flag(found.is_some());
            if let Some((x, index)) = found {
                out.put_u64(x.bits());
                out.put_u64(index);
            }
        }
        out.put_flag(self.first_nan.is_some());
        if let Some(index) = self.first_nan {
            out.put_u64(index);
        }
    }

    pub fn decode(kernel: &'static str, state: &[u8]) -> Result<Extremes<T>, KernelError> {
        let mut read = StateReader::new(kernel, state);
        let mut out = Extremes { count: read.u64()?, nans: read.u64()?, ..Extremes::default() };
        for found in [&mut out.min, &mut out.max] {
            if read.flag()? {
                let x = T::from_bits(read.u64()?);
                if x.is_nan() {
                    return Err(read.bad("an extreme is NaN"));
                }
                *found = Some((x, read.u64()?));
            }
        }
        if read.flag()? {
            out.first_nan = Some(read.u64()?);
        }
        read.end()?;
        Ok(out)
    }
}

fn better_of<T: Element>(
    a: Option<(T, u64)>,
    b: Option<(T, u64)>,
    wins: fn(&T, &T) -> bool,
) -> Option<(T, u64)> {
    match (a, b) {
        (Some(a), Some(b)) if wins(&b.0, &a.0) || (!wins(&a.0, &b.0) && b.1 < a.1) => Some(b),
        (Some(a), _) => Some(a),
        (None, b) => b,
    }
}
