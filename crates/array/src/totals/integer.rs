//! Sums, means and variances of integers and booleans, exactly.

use gristmill_exact::{ExactNumber, IntMoments};
use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::{ArrayType, DType, KernelError};

use crate::reduction::Op;
use crate::statistics::ChunkStatistics;
use crate::totals::count::{count_row, count_run};
use crate::totals::{Row, Rule, Totals, add_counts, domain, put_counts};
use crate::values::{Number, with_values};

pub(crate) struct IntegerSum {
    rule: Rule,
    counts: Vec<u64>,
    sums: Vec<i128>,
}

impl IntegerSum {
    pub(crate) fn new(rule: &Rule, cells: usize) -> IntegerSum {
        IntegerSum { rule: rule.clone(), counts: vec![0; cells], sums: vec![0; cells] }
    }
}

impl Totals for IntegerSum {
    fn row(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        count_row(&mut self.counts[at..], row, false);
        with_values!(row.values, values => {
            for (sum, x) in self.sums[at..].iter_mut().zip(&values[row.from..row.to]) {
                *sum = sum.wrapping_add(x.to_i128());
            }
        });
        Ok(())
    }

    fn run(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        self.counts[at] = self.counts[at].wrapping_add(count_run(row, false));
        let sum = with_values!(row.values, values => run_sum(&values[row.from..row.to]));
        self.sums[at] = self.sums[at].wrapping_add(sum);
        Ok(())
    }

    fn take(&mut self, at: usize, statistics: &ChunkStatistics) -> Result<(), KernelError> {
        self.counts[at] = self.counts[at].wrapping_add(statistics.elements);
        self.sums[at] = self.sums[at].wrapping_add(statistics.whole.unwrap_or(0));
        Ok(())
    }

    fn save(&self, out: &mut Vec<u8>) {
        put_counts(&self.counts, out);
        self.sums.iter().for_each(|sum| out.put_i128(*sum));
    }

    fn merge(&mut self, read: &mut StateReader<'_>) -> Result<(), KernelError> {
        add_counts(&mut self.counts, read)?;
        for sum in &mut self.sums {
            *sum = sum.wrapping_add(read.i128()?);
        }
        Ok(())
    }

    fn answer(&self, part: usize, at: usize, out: &mut Vec<u8>) -> Result<(), KernelError> {
        match (&self.rule.op, part) {
            (Op::Mean, _) => {
                ExactNumber::quotient(self.sums[at], self.counts[at]).to_f64().put(out);
                return Ok(());
            }
            (Op::Totals, 0) => {
                out.extend_from_slice(&self.counts[at].to_le_bytes());
                return Ok(());
            }
            _ => {}
        }
        put_sum(self.rule.column, self.sums[at], out)
    }
}

/// Returns the sum of at most a block of elements. 64 bits hold the sum of numbers of 32 bits.
pub(crate) fn run_sum<T: Number>(values: &[T]) -> i128 {
    if T::TYPE.size() < 8 {
        let each = |x: &T| x.to_i128() as i64;
        return i128::from(values.iter().map(each).sum::<i64>());
    }
    values.iter().map(|x| x.to_i128()).sum()
}

/// Appends a sum in 64 bits: unsigned for unsigned elements, else signed.
pub(crate) fn put_sum(column: ArrayType, sum: i128, out: &mut Vec<u8>) -> Result<(), KernelError> {
    let beyond = |_| {
        domain(format!(
            "the sum {sum} is beyond 64 bits; sum f64(x) for it rounded, or over a part of the array"
        ))
    };
    match column {
        ArrayType::Number(DType::U8 | DType::U16 | DType::U32 | DType::U64) => {
            out.extend_from_slice(&u64::try_from(sum).map_err(beyond)?.to_le_bytes());
        }
        _ => out.extend_from_slice(&i64::try_from(sum).map_err(beyond)?.to_le_bytes()),
    }
    Ok(())
}

pub(crate) struct IntegerMoments {
    rule: Rule,
    pub(crate) counts: Vec<u64>,
    pub(crate) moments: Vec<IntMoments>,
}

impl IntegerMoments {
    pub(crate) fn new(rule: &Rule, cells: usize) -> IntegerMoments {
        IntegerMoments { rule: rule.clone(), counts: vec![0; cells], moments: vec![IntMoments::new(); cells] }
    }
}

impl Totals for IntegerMoments {
    fn row(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        count_row(&mut self.counts[at..], row, false);
        with_values!(row.values, values => {
            for (moments, x) in self.moments[at..].iter_mut().zip(&values[row.from..row.to]) {
                moments.add(x.to_i128());
            }
        });
        Ok(())
    }

    fn run(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        self.counts[at] = self.counts[at].wrapping_add(count_run(row, false));
        let moments = &mut self.moments[at];
        with_values!(row.values, values => values[row.from..row.to].iter().for_each(|x| moments.add(x.to_i128())));
        Ok(())
    }

    fn save(&self, out: &mut Vec<u8>) {
        put_counts(&self.counts, out);
        self.moments.iter().for_each(|moments| moments.encode(out));
    }

    fn merge(&mut self, read: &mut StateReader<'_>) -> Result<(), KernelError> {
        add_counts(&mut self.counts, read)?;
        for moments in &mut self.moments {
            let (other, used) =
                IntMoments::decode(read.rest()).map_err(|error| read.bad(error.to_string()))?;
            moments.merge(&other);
            read.bytes(used)?;
        }
        Ok(())
    }

    fn answer(&self, _: usize, at: usize, out: &mut Vec<u8>) -> Result<(), KernelError> {
        let variance = self.moments[at].variance_exactly(self.counts[at], self.rule.ddof);
        let x = if self.rule.op == Op::Std { variance.sqrt_f64() } else { variance.to_f64() };
        x.put(out);
        Ok(())
    }
}
