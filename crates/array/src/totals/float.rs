//! Sums and means of floats.

use gristmill_exact::{BinnedCells, Exactly, Real, Sum};
use gristmill_kernel::KernelError;
use gristmill_kernel::state::StateReader;

use crate::reduction::Op;
use crate::statistics::ChunkStatistics;
use crate::totals::count::{count_row, count_run};
use crate::totals::{Row, Rule, Totals, add_counts, put_counts, put_float};
use crate::values::{Number, Values};

/// Sums of values, one for each cell: exact where there is one cell of one number.
pub(crate) enum Sums {
    Exact(Box<Sum>),
    Binned(BinnedCells),
}

impl Sums {
    pub(crate) fn new(one: bool, cells: usize) -> Sums {
        if one { Sums::Exact(Box::default()) } else { Sums::Binned(BinnedCells::new(cells)) }
    }

    pub(crate) fn row<T: Real + Number>(&mut self, at: usize, values: &[T], skip: bool) {
        match self {
            Sums::Exact(sum) => add_exactly(sum, values),
            Sums::Binned(cells) => cells.add_row(at, values, skip),
        }
    }

    pub(crate) fn run<T: Real + Number>(&mut self, at: usize, values: &[T], skip: bool) {
        match self {
            Sums::Exact(sum) => add_exactly(sum, values),
            Sums::Binned(cells) => cells.add_run(at, values, skip),
        }
    }

    pub(crate) fn save(&self, out: &mut Vec<u8>) {
        match self {
            Sums::Exact(sum) => sum.encode(out),
            Sums::Binned(cells) => cells.encode(out),
        }
    }

    pub(crate) fn merge(&mut self, read: &mut StateReader<'_>) -> Result<(), KernelError> {
        let used = match self {
            Sums::Exact(sum) => {
                let (other, used) = Sum::decode(read.rest()).map_err(|error| read.bad(error.to_string()))?;
                sum.merge(&other);
                used
            }
            Sums::Binned(cells) => {
                cells.merge_encoded(read.rest()).map_err(|error| read.bad(error.to_string()))?
            }
        };
        read.bytes(used).map(drop)
    }

    /// The sum divided by `n`.
    pub(crate) fn exactly(&self, at: usize, n: u64, skip: bool) -> Exactly {
        match self {
            Sums::Exact(sum) => sum.exactly(n, skip),
            Sums::Binned(cells) => cells.exactly(at, n),
        }
    }
}

/// The bytes of floats, where the machine has them little-endian anyway.
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
    sums: Sums,
}

impl FloatSum {
    pub(crate) fn new(rule: &Rule, cells: usize) -> FloatSum {
        FloatSum { rule: rule.clone(), counts: vec![0; cells], sums: Sums::new(rule.one, cells) }
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
            Sums::Exact(sum) => statistics.exact.iter().for_each(|other| sum.merge(other)),
            Sums::Binned(cells) => {
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
            _ if n < self.rule.min_count => Exactly::NAN,
            Op::Mean => self.sums.exactly(at, n, self.rule.skip),
            _ => self.sums.exactly(at, 1, self.rule.skip),
        };
        put_float(self.rule.column, &x, out);
        Ok(())
    }
}
