//! The elements that quantiles want, as far as the passes have settled their keys.

use gristmill_kernel::KernelError;
use gristmill_kernel::state::{StateReader, StateWriter};

use crate::reduction::Op;
use crate::totals::Rule;
use crate::values::{Number, with_type};

/// The wanted elements of a tile.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Wanted {
    /// Number of elements of each cell that are not NaN, and whether the cell has a NaN.
    pub(crate) cells: Vec<(u64, bool)>,
    /// The wanted element of each quantile of each cell.
    pub(crate) each: Vec<WantedElement>,
}

/// The wanted element of one quantile, as far as its key is settled.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct WantedElement {
    /// The highest bits of the key.
    pub(crate) prefix: u64,
    /// Rank of the element among the elements with these bits.
    pub(crate) rank: u64,
    /// Whether the least larger key is wanted too.
    pub(crate) next: bool,
    /// The least larger key. The quantile lies between it and the wanted key.
    pub(crate) larger: u64,
}

impl Wanted {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        for (n, nan) in &self.cells {
            out.put_u64(*n);
            out.put_flag(*nan);
        }
        for one in &self.each {
            out.put_u64(one.prefix);
            out.put_u64(one.rank);
            out.put_flag(one.next);
        }
    }

    pub(crate) fn decode(
        read: &mut StateReader<'_>,
        cells: usize,
        quantiles: usize,
    ) -> Result<Wanted, KernelError> {
        let mut wanted = Wanted::default();
        for _ in 0..cells {
            wanted.cells.push((read.u64()?, read.flag()?));
        }
        for _ in 0..cells * quantiles {
            wanted.each.push(WantedElement {
                prefix: read.u64()?,
                rank: read.u64()?,
                next: read.flag()?,
                larger: 0,
            });
        }
        Ok(wanted)
    }

    /// Returns whether a pass for larger keys is needed.
    pub(crate) fn wants_next(&self) -> bool {
        self.each.iter().any(|one| one.next)
    }

    /// Appends the quantiles of one cell.
    pub(crate) fn answer(&self, rule: &Rule, at: usize, out: &mut Vec<u8>) {
        let Op::Quantile(shares) = &rule.op else { return };
        let (n, nan) = self.cells.get(at).copied().unwrap_or_default();
        for (q, share) in shares.iter().enumerate() {
            let one = self.each.get(at * shares.len() + q).copied().unwrap_or_default();
            if n == 0 || nan && !rule.skip {
                f64::NAN.put(out);
                continue;
            }
            let (_, apart) = quantile_rank(n, *share);
            let key = |key| with_type!(rule.column, T => T::of_key(key).to_f64());
            interpolate(key(one.prefix), key(one.larger), apart).put(out);
        }
    }
}

/// Returns the rank at or below a quantile of `n` elements, and the fraction of the way to the next rank, as NumPy's
/// "linear" does.
pub(crate) fn quantile_rank(n: u64, share: f64) -> (u64, f64) {
    let last = n.saturating_sub(1);
    let at = last as f64 * share;
    let low = (at.floor() as u64).min(last);
    (low, if low == last { 0.0 } else { at - at.floor() })
}

/// Interpolates from the nearer end, so that the result is monotone in `apart`. The middle is rounded once.
fn interpolate(low: f64, high: f64, apart: f64) -> f64 {
    if low == high || apart == 0.0 {
        return low;
    }
    if low.is_infinite() || high.is_infinite() {
        // Between a finite number and an infinite one every result is infinite.
        return low + high;
    }
    if apart == 0.5 {
        let sum = low + high;
        return if sum.is_finite() { sum / 2.0 } else { low / 2.0 + high / 2.0 };
    }
    let step = high - low;
    if !step.is_finite() {
        return low * (1.0 - apart) + high * apart;
    }
    if apart < 0.5 { low + step * apart } else { high - step * (1.0 - apart) }
}
