//! Smallest and largest value with the index of each, and the first NaN.

use multiversion::multiversion;

use crate::KernelError;
use crate::element::Element;
use crate::state::{StateReader, StateWriter};

/// What has been seen of the values so far. Ties go to the lowest index, as in NumPy's `argmin`; -0.0 and 0.0
/// compare equal, so of these too the first is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Extreme<T> {
    /// Values, NaN among them.
    pub count: u64,
    /// NaN.
    pub nans: u64,
    pub min: Option<(T, u64)>,
    pub max: Option<(T, u64)>,
    pub nan: Option<u64>,
}

impl<T: Element> Default for Extreme<T> {
    fn default() -> Self {
        Extreme { count: 0, nans: 0, min: None, max: None, nan: None }
    }
}

const LANES: usize = 32;

/// Smallest, largest, and whether there is a NaN, of data without regard to where they are; NaN are passed
/// over. Meaningless where every value is NaN.
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

impl<T: Element> Extreme<T> {
    /// Takes in values, the first of which has index `index`.
    pub fn take(&mut self, index: u64, data: &[u8]) {
        // Pieces that stay in the first-level cache, so that looking for the place of a new extreme is cheap.
        const PIECE: usize = 16 << 10;
        let mut at = index;
        for piece in data.chunks(PIECE) {
            self.piece(at, piece);
            at += (piece.len() / T::SIZE) as u64;
        }
    }

    fn piece(&mut self, index: u64, data: &[u8]) {
        self.count += (data.len() / T::SIZE) as u64;
        let values = || data.chunks_exact(T::SIZE).map(T::read);
        let Some(first) = values().find(|x| !x.is_nan()) else {
            if self.nan.is_none_or(|at| index < at) && !data.is_empty() {
                self.nan = Some(index);
            }
            self.nans += (data.len() / T::SIZE) as u64;
            return;
        };
        let (low, high, nan) = scan(first, data);
        let place = |wanted: T| values().position(|x| x == wanted).map(|i| index + i as u64);
        // The value kept is the one at the place, which tells -0.0 from 0.0.
        let at = |i: u64| T::read(&data[(i - index) as usize * T::SIZE..][..T::SIZE]);
        // Blocks may come in any order, so a tie can still move to a lower index.
        if self.min.is_none_or(|(x, at)| low < x || low == x && index < at) {
            self.min = place(low).map(|i| (at(i), i));
        }
        if self.max.is_none_or(|(x, at)| high > x || high == x && index < at) {
            self.max = place(high).map(|i| (at(i), i));
        }
        if nan {
            self.nans += values().filter(|x| x.is_nan()).count() as u64;
            if self.nan.is_none_or(|at| index < at) {
                self.nan = values().position(|x| x.is_nan()).map(|i| index + i as u64);
            }
        }
    }

    /// Takes in what was seen of other records, before or after these.
    pub fn merge(&mut self, other: &Extreme<T>) {
        self.count = self.count.saturating_add(other.count);
        self.nans = self.nans.saturating_add(other.nans);
        self.min = better(self.min, other.min, |a, b| a < b);
        self.max = better(self.max, other.max, |a, b| a > b);
        self.nan = match (self.nan, other.nan) {
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
        out.put_flag(self.nan.is_some());
        if let Some(index) = self.nan {
            out.put_u64(index);
        }
    }

    pub fn decode(kernel: &'static str, state: &[u8]) -> Result<Extreme<T>, KernelError> {
        let mut read = StateReader::new(kernel, state);
        let mut out = Extreme { count: read.u64()?, nans: read.u64()?, ..Extreme::default() };
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
            out.nan = Some(read.u64()?);
        }
        read.end()?;
        Ok(out)
    }
}

fn better<T: Element>(
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
