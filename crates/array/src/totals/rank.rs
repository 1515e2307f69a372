//! Quantiles of each cell by radix selection: each pass settles some bits of the wanted keys.
//!
//! For each quantile of each cell a pass looks at the elements whose higher bits are those of the wanted key, and
//! counts them by their next bits. After the last pass the key is known, with its rank among equal keys. If the
//! quantile lies between this key and a larger one, one more pass finds the least larger key. The number of bits that a
//! pass settles keeps the tables of all cells within bounds: 16 bits for a single cell, 1 bit for millions of cells.

use gristmill_kernel::KernelError;
use gristmill_kernel::state::{StateReader, StateWriter};

use crate::plan::MAX_STATE_BYTES;
use crate::reduction::{NAME, Op};
use crate::totals::wanted::{Wanted, WantedElement, quantile_rank};
use crate::totals::{Row, Rule, Totals, add_counts, domain, put_counts};
use crate::values::{Number, with_values};

/// Bits that a pass may settle, most first. Each divides the number of bits of every type, or exceeds it.
const DIGITS: [u32; 5] = [16, 8, 4, 2, 1];

/// Most bytes that a cell adds to a saved state, and to memory.
pub(crate) const fn cell_bytes(quantiles: u64, digit: u32) -> (u64, u64) {
    let tables = quantiles.saturating_mul(8 << digit);
    let state = tables.saturating_add(9);
    (state, state.saturating_add(quantiles.saturating_mul(17)))
}

/// Returns the number of bits that a pass settles for `cells` cells with `quantiles` quantiles each.
pub(crate) fn digit(cells: u64, quantiles: u64) -> u32 {
    let fits = |digit: &u32| {
        cells.checked_mul(cell_bytes(quantiles, *digit).1).is_some_and(|all| all <= MAX_STATE_BYTES)
    };
    DIGITS.into_iter().find(fits).unwrap_or(1)
}

/// Returns the most passes that quantiles take, and the most bytes of the state of a pass. There are `cells` cells with
/// `quantiles` quantiles each, and elements of `bits` bits.
///
/// ```
/// // The median of a whole array of f32, and medians along one of its axes.
/// assert_eq!(gristmill_array::quantile_passes(1, 1, 32).0, 3);
/// assert_eq!(gristmill_array::quantile_passes(180 * 360, 1, 32).0, 9);
/// ```
pub fn quantile_passes(cells: u64, quantiles: u64, bits: u32) -> (u32, u64) {
    let digit = digit(cells, quantiles).min(bits).max(1);
    (bits.div_ceil(digit) + 1, cells.saturating_mul(cell_bytes(quantiles, digit).0))
}

pub(crate) struct Rank {
    rule: Rule,
    quantiles: usize,
    stage: Stage,
    /// Only in the first pass.
    counts: Vec<u64>,
    nans: Vec<bool>,
    wanted: Wanted,
    /// Counts by the next bits: a table for each cell in the first pass, then a table for each quantile. In the last
    /// pass the larger key of each quantile.
    tables: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// Number of bits below those by which this pass counts.
    Digit {
        left: u32,
    },
    Larger,
}

impl Rank {
    pub(crate) fn new(rule: &Rule, cells: usize, wanted: Option<&Wanted>) -> Rank {
        let quantiles = match &rule.op {
            Op::Quantile(shares) => shares.len(),
            _ => 0,
        };
        let bits = 8 * rule.column.size() as u32;
        let digit = rule.digit.min(bits);
        let first = wanted.is_none();
        let stage = match bits.checked_sub(digit * (rule.round + 1)) {
            Some(left) => Stage::Digit { left },
            None => Stage::Larger,
        };
        let tables = match stage {
            Stage::Digit { .. } => vec![0; (cells * if first { 1 } else { quantiles }) << digit],
            Stage::Larger => vec![u64::MAX; cells * quantiles],
        };
        let size = if first { cells } else { 0 };
        Rank {
            rule: rule.clone(),
            quantiles,
            stage,
            counts: vec![0; size],
            nans: vec![false; size],
            wanted: wanted.cloned().unwrap_or_default(),
            tables,
        }
    }

    fn digit(&self) -> u32 {
        self.rule.digit.min(8 * self.rule.column.size() as u32)
    }

    fn is_first(&self) -> bool {
        self.wanted.each.is_empty()
    }

    #[inline]
    fn take<T: Number>(&mut self, at: usize, x: T) {
        if x.is_nan() {
            if let Some(nan) = self.nans.get_mut(at) {
                *nan = true;
            }
            return;
        }
        let (key, digit) = (x.key(), self.digit());
        let mask = (1u64 << digit) - 1;
        match self.stage {
            Stage::Digit { left } if self.is_first() => {
                self.counts[at] = self.counts[at].wrapping_add(1);
                let n = &mut self.tables[(at << digit) + (key >> left & mask) as usize];
                *n = n.wrapping_add(1);
            }
            Stage::Digit { left } => {
                for q in at * self.quantiles..(at + 1) * self.quantiles {
                    if self.wanted.each[q].prefix == key >> (left + digit) {
                        let n = &mut self.tables[(q << digit) + (key >> left & mask) as usize];
                        *n = n.wrapping_add(1);
                    }
                }
            }
            Stage::Larger => {
                for q in at * self.quantiles..(at + 1) * self.quantiles {
                    if key > self.wanted.each[q].prefix && key < self.tables[q] {
                        self.tables[q] = key;
                    }
                }
            }
        }
    }

    /// Returns the wanted elements after a pass over all chunks, and whether another pass is needed.
    pub(crate) fn judge(&self) -> Result<(Wanted, bool), KernelError> {
        let mut wanted = self.wanted.clone();
        let Op::Quantile(shares) = &self.rule.op else { return Ok((wanted, false)) };
        let Stage::Digit { left } = self.stage else {
            for (one, larger) in wanted.each.iter_mut().zip(&self.tables) {
                one.larger = if one.next { *larger } else { one.prefix };
            }
            return Ok((wanted, false));
        };
        if self.is_first() {
            wanted.cells = self.counts.iter().copied().zip(self.nans.iter().copied()).collect();
            let ranks = |n: &u64| {
                shares
                    .iter()
                    .map(|q| WantedElement { rank: quantile_rank(*n, *q).0, ..WantedElement::default() })
                    .collect::<Vec<_>>()
            };
            wanted.each = self.counts.iter().flat_map(ranks).collect();
        }
        let digit = self.digit();
        for (at, one) in wanted.each.iter_mut().enumerate() {
            let (cell, q) = (at / self.quantiles, at % self.quantiles);
            let n = wanted.cells[cell].0;
            if n == 0 {
                continue;
            }
            let table = if self.is_first() { cell } else { at };
            let table = &self.tables[table << digit..(table + 1) << digit];
            let mut found = None;
            for (place, n) in (0u64..).zip(table) {
                if one.rank < *n {
                    found = Some((place, *n));
                    break;
                }
                one.rank -= n;
            }
            let (place_found, equal) = found.ok_or_else(|| KernelError::BadState {
                kernel: NAME,
                why: "a wanted element is not among those counted".into(),
            })?;
            one.prefix = if digit < 64 { one.prefix << digit | place_found } else { place_found };
            if left == 0 {
                one.larger = one.prefix;
                one.next = quantile_rank(n, shares[q]).1 > 0.0 && one.rank + 1 >= equal;
            }
        }
        let further = wanted.cells.iter().any(|(n, _)| *n > 0) && (left > 0 || wanted.wants_next());
        Ok((wanted, further))
    }
}

impl Totals for Rank {
    fn row(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        with_values!(row.values, values => {
            for (i, x) in values[row.from..row.to].iter().enumerate() {
                self.take(at + i, *x);
            }
        });
        Ok(())
    }

    fn run(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        with_values!(row.values, values => values[row.from..row.to].iter().for_each(|x| self.take(at, *x)));
        Ok(())
    }

    /// Saves the tables sparsely, as (index, count), if that is shorter.
    fn save(&self, out: &mut Vec<u8>) {
        put_counts(&self.counts, out);
        self.nans.iter().for_each(|nan| out.put_flag(*nan));
        let empty = if self.stage == Stage::Larger { u64::MAX } else { 0 };
        let used = self.tables.iter().filter(|n| **n != empty).count();
        let sparse = 2 * used < self.tables.len();
        out.put_flag(sparse);
        if !sparse {
            return put_counts(&self.tables, out);
        }
        out.put_u64(used as u64);
        for (place, n) in self.tables.iter().enumerate().filter(|(_, n)| **n != empty) {
            out.put_u64(place as u64);
            out.put_u64(*n);
        }
    }

    fn merge(&mut self, read: &mut StateReader<'_>) -> Result<(), KernelError> {
        add_counts(&mut self.counts, read)?;
        for nan in &mut self.nans {
            *nan |= read.flag()?;
        }
        let least = self.stage == Stage::Larger;
        let join = |held: &mut u64, n: u64| *held = if least { n.min(*held) } else { held.saturating_add(n) };
        if !read.flag()? {
            for held in &mut self.tables {
                join(held, read.u64()?);
            }
            return Ok(());
        }
        for _ in 0..read.u64()? {
            let (place, n) = (read.u64()?, read.u64()?);
            let Some(held) = usize::try_from(place).ok().and_then(|place| self.tables.get_mut(place)) else {
                return Err(read.bad("a place beyond the tables"));
            };
            join(held, n);
        }
        Ok(())
    }

    /// Returns an error: [`Rank::judge`] gives the answer of quantiles.
    fn answer(&self, _: usize, _: usize, _: &mut Vec<u8>) -> Result<(), KernelError> {
        Err(domain("quantiles take several passes"))
    }
}
