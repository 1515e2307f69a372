//! Sums and means of floats.

use gristmill_exact::{BinnedCells, ExactNumber, Real, Sum};
use gristmill_kernel::KernelError;
use gristmill_kernel::state::StateReader;

use crate::reduction::Op;
use crate::statistics::ChunkStatistics;
use crate::totals::count::{count_row, count_run};
use crate::totals::{Row, Rule, Totals, add_counts, put_counts, put_float};
use crate::values::{Number, Values};

/// The sum of each cell: exact if the answer is a single number, else binned.
pub(crate) enum CellSums {
    Exact(Box<Sum>),
    Binned(BinnedCells),
}

impl CellSums {
    pub(crate) fn new(one: bool, cells: usize) -> CellSums {
        if one { CellSums::Exact(Box::default()) } else { CellSums::Binned(BinnedCells::new(cells)) }
    }

    pub(crate) fn row<T: Real + Number>(&mut self, at: usize, values: &[T], skip: bool) {
        match self {
            CellSums::Exact(sum) => add_exactly(sum, values),
            CellSums::Binned(cells) => cells.add_row(at, values, skip),
        }
    }

    pub(crate) fn run<T: Real + Number>(&mut self, at: usize, values: &[T], skip: bool) {
        match self {
            CellSums::Exact(sum) => add_exactly(sum, values),
            CellSums::Binned(cells) => cells.add_run(at, values, skip),
        }
    }

    pub(crate) fn save(&self, out: &mut Vec<u8>) {
        match self {
            CellSums::Exact(sum) => sum.encode(out),
            CellSums::Binned(cells) => cells.encode(out),
        }
    }

    pub(crate) fn merge(&mut self, read: &mut StateReader<'_>) -> Result<(), KernelError> {
        let used = match self {
            CellSums::Exact(sum) => {
                let (other, used) = Sum::decode(read.rest()).map_err(|error| read.bad(error.to_string()))?;
                sum.merge(&other);
                used
            }
            CellSums::Binned(cells) => {
                cells.merge_encoded(read.rest()).map_err(|error| read.bad(error.to_string()))?
            }
        };
        read.bytes(used).map(drop)
    }

    /// Returns the sum divided by `n`.
    pub(crate) fn exactly(&self, at: usize, n: u64, skip: bool) -> ExactNumber {
        match self {
            CellSums::Exact(sum) => sum.exactly(n, skip),
            CellSums::Binned(cells) => cells.exactly(at, n),
        }
    }
}

/// Adds floats to an exact sum, as bytes if the machine is little-endian.
pub(crate) fn add_exactly<T: Real + Number>(sum: &mut Sum, values: &[T]) {
    for piece in values.chunks(PIECE) {
        let mut bytes = [0u8; 8 * PIECE];
        let used = &mut bytes[..8 * piece.len()];
        for (out, x) in used.as_chunks_mut::<8>().0.iter_mut().zip(piece) {
            *out = x.widen().to_le_bytes();
        }
        sum.add_f64_le(used);
    }
}

/// A block of the exact sums.
const PIECE: usize = 2048;

pub(crate) struct FloatSum {
    rule: Rule,
    counts: Vec<u64>,
    sums: CellSums,
}

impl FloatSum {
    pub(crate) fn new(rule: &Rule, cells: usize) -> FloatSum {
        FloatSum { rule: rule.clone(), counts: vec![0; cells], sums: CellSums::new(rule.single, cells) }
    }
}

impl Totals for FloatSum {
    fn row(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        let skip = self.rule.skip;
        count_row(&mut self.counts[at..], row, skip);
        match row.values {
            Values::F32(values) => self.sums.row(at, &values[row.from..row.to], skip),
            Values::F64(values) => self.sums.row(at, &values[row.from..row.to], skip),
            _ => {}
        }
        Ok(())
    }

    fn run(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        let skip = self.rule.skip;
        self.counts[at] = self.counts[at].wrapping_add(count_run(row, skip));
        match row.values {
            Values::F32(values) => self.sums.run(at, &values[row.from..row.to], skip),
            Values::F64(values) => self.sums.run(at, &values[row.from..row.to], skip),
            _ => {}
        }
        Ok(())
    }

    fn take(&mut self, at: usize, statistics: &ChunkStatistics) -> Result<(), KernelError> {
        let skip = self.rule.skip;
        let counted = statistics.elements - if skip { statistics.missing } else { 0 };
        self.counts[at] = self.counts[at].wrapping_add(counted);
        match &mut self.sums {
            CellSums::Exact(sum) => statistics.exact.iter().for_each(|other| sum.merge(other)),
            CellSums::Binned(cells) => {
                statistics.binned.iter().for_each(|other| cells.merge_one(at, other));
                if statistics.missing > 0 && !skip {
                    cells.add_run(at, &[f64::NAN], false);
                }
            }
        }
        Ok(())
    }

    fn save(&self, out: &mut Vec<u8>) {
        put_counts(&self.counts, out);
        self.sums.save(out);
    }

    fn merge(&mut self, read: &mut StateReader<'_>) -> Result<(), KernelError> {
        add_counts(&mut self.counts, read)?;
        self.sums.merge(read)
    }

    fn answer(&self, part: usize, at: usize, out: &mut Vec<u8>) -> Result<(), KernelError> {
        let n = self.counts[at];
        if self.rule.op == Op::Totals {
            match part {
                0 => out.extend_from_slice(&n.to_le_bytes()),
                _ if n < self.rule.min_count => f64::NAN.put(out),
                _ => self.sums.exactly(at, 1, self.rule.skip).to_f64().put(out),
            }
            return Ok(());
        }
        let x = match self.rule.op {
            _ if n < self.rule.min_count => ExactNumber::NAN,
            Op::Mean => self.sums.exactly(at, n, self.rule.skip),
            _ => self.sums.exactly(at, 1, self.rule.skip),
        };
        put_float(self.rule.column, &x, out);
        Ok(())
    }
}
