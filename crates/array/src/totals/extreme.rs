//! The smallest or the largest element.

use gristmill_kernel::KernelError;
use gristmill_kernel::state::{StateReader, StateWriter};
use multiversion::multiversion;

use crate::statistics::ChunkStatistics;
use crate::totals::count::{count_row, count_run};
use crate::totals::{Row, Rule, Totals, add_counts, domain, put_counts};
use crate::truth::is_float;
use crate::values::{Number, Values, with_type, with_values};

/// The smallest or the largest element of each cell. Elements are compared by their keys, which are inverted if the
/// largest is wanted, so that the least key always wins. NaN is noted separately.
pub(crate) struct Extreme {
    rule: Rule,
    largest: bool,
    /// Number of elements of each cell that are not skipped.
    counts: Vec<u64>,
    keys: Vec<u64>,
    /// The least keys of rows of f32, in 32 bits; empty before the first row.
    narrow: Vec<u32>,
    /// Whether a cell has a NaN that does not count as missing.
    nans: Vec<bool>,
}

impl Extreme {
    pub(crate) fn new(rule: &Rule, cells: usize, largest: bool) -> Extreme {
        Extreme {
            rule: rule.clone(),
            largest,
            counts: vec![0; cells],
            keys: vec![u64::MAX; cells],
            narrow: Vec::new(),
            nans: vec![false; cells],
        }
    }

    /// Whether the smallest element of a cell equals the largest one, which `most` has.
    pub(crate) fn same_as(&self, most: &Extreme, at: usize) -> bool {
        self.least(at) == !most.least(at)
    }

    const fn turned(&self) -> u64 {
        if self.largest { u64::MAX } else { 0 }
    }

    /// The least key of a cell.
    fn least(&self, at: usize) -> u64 {
        let narrow = match self.narrow.get(at) {
            None | Some(&u32::MAX) => u64::MAX,
            Some(key) => u64::from(key ^ self.turned() as u32) ^ self.turned(),
        };
        self.keys[at].min(narrow)
    }
}

/// Takes the least keys of f32 in 32 bits. The key of an f32 that is not NaN is below `u32::MAX`, inverted or not.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx+avx2", "x86_64+sse4.2"))]
fn least_narrow(values: &[f32], turned: u32, cells: &mut [u32]) {
    for (least, x) in cells.iter_mut().zip(values) {
        let key = if x.is_nan() { u32::MAX } else { x.key() as u32 ^ turned };
        *least = key.min(*least);
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx+avx2", "x86_64+sse4.2"))]
fn least_of_rows<T: Number>(values: &[T], turned: u64, cells: &mut [u64]) {
    for (least, x) in cells.iter_mut().zip(values) {
        *least = key(*x, turned).min(*least);
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx+avx2", "x86_64+sse4.2"))]
fn note_nans<T: Number>(values: &[T], cells: &mut [bool]) {
    for (nan, x) in cells.iter_mut().zip(values) {
        *nan |= x.is_nan();
    }
}

#[inline(always)]
fn key<T: Number>(x: T, turned: u64) -> u64 {
    // NaN is skipped or noted separately, so its key is never the least.
    if x.is_nan() { u64::MAX } else { x.key() ^ turned }
}

impl Totals for Extreme {
    fn row(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        count_row(&mut self.counts[at..], row, self.rule.skip);
        let turned = self.turned();
        match row.values {
            Values::F32(values) => {
                self.narrow.resize(self.keys.len(), u32::MAX);
                least_narrow(&values[row.from..row.to], turned as u32, &mut self.narrow[at..]);
            }
            other => with_values!(other, values => {
                least_of_rows(&values[row.from..row.to], turned, &mut self.keys[at..]);
            }),
        }
        if is_float(self.rule.column) && !self.rule.skip {
            with_values!(row.values, values => note_nans(&values[row.from..row.to], &mut self.nans[at..]));
        }
        Ok(())
    }

    fn run(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        self.counts[at] = self.counts[at].wrapping_add(count_run(row, self.rule.skip));
        let turned = self.turned();
        with_values!(row.values, values => {
            let (mut least, mut nan) = (self.keys[at], false);
            for x in &values[row.from..row.to] {
                let key = key(*x, turned);
                least = if key < least { key } else { least };
                nan |= x.is_nan();
            }
            self.keys[at] = least;
            self.nans[at] |= nan && !self.rule.skip;
        });
        Ok(())
    }

    fn take(&mut self, at: usize, statistics: &ChunkStatistics) -> Result<(), KernelError> {
        let skip = self.rule.skip;
        let counted = statistics.elements - if skip { statistics.missing } else { 0 };
        self.counts[at] = self.counts[at].wrapping_add(counted);
        if let Some((least, largest)) = statistics.range {
            let key = if self.largest { !largest } else { least };
            self.keys[at] = self.keys[at].min(key);
        }
        self.nans[at] |= statistics.missing > 0 && !skip;
        Ok(())
    }

    fn save(&self, out: &mut Vec<u8>) {
        put_counts(&self.counts, out);
        (0..self.keys.len()).for_each(|at| out.put_u64(self.least(at)));
        self.nans.iter().for_each(|nan| out.put_flag(*nan));
    }

    fn merge(&mut self, read: &mut StateReader<'_>) -> Result<(), KernelError> {
        add_counts(&mut self.counts, read)?;
        for key in &mut self.keys {
            *key = (*key).min(read.u64()?);
        }
        for nan in &mut self.nans {
            *nan |= read.flag()?;
        }
        Ok(())
    }

    fn answer(&self, _: usize, at: usize, out: &mut Vec<u8>) -> Result<(), KernelError> {
        let n = self.counts[at];
        let turned = self.turned();
        let float = is_float(self.rule.column);
        if n == 0 && !float {
            return Err(domain("a cell of the answer has no element, and no integer says so; use f64(x)"));
        }
        let missing = n == 0 || n < self.rule.min_count && float;
        let key = if missing || self.nans[at] { f64::NAN.key() } else { self.least(at) ^ turned };
        with_type!(self.rule.column, T => {
            let x = if float && (missing || self.nans[at]) { T::of_key(nan_key::<T>()) } else { T::of_key(key) };
            x.put(out);
        });
        Ok(())
    }
}

/// The key of NaN in a float type.
fn nan_key<T: Number>() -> u64 {
    if T::TYPE.size() == 4 { f32::NAN.key() } else { f64::NAN.key() }
}
