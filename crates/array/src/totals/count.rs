//! Number of elements that are not NaN.

use gristmill_kernel::KernelError;
use gristmill_kernel::state::StateReader;

use crate::statistics::ChunkStatistics;
use crate::totals::{Row, Totals, add_counts, put_counts};
use crate::values::{Number, with_values};

pub(crate) struct Count(Vec<u64>);

impl Count {
    pub(crate) fn new(cells: usize) -> Count {
        Count(vec![0; cells])
    }
}

impl Totals for Count {
    fn row(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        count_row(&mut self.0[at..], row, true);
        Ok(())
    }

    fn run(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        self.0[at] = self.0[at].wrapping_add(count_run(row, true));
        Ok(())
    }

    fn take(&mut self, at: usize, statistics: &ChunkStatistics) -> Result<(), KernelError> {
        self.0[at] = self.0[at].wrapping_add(statistics.elements - statistics.missing);
        Ok(())
    }

    fn save(&self, out: &mut Vec<u8>) {
        put_counts(&self.0, out);
    }

    fn merge(&mut self, read: &mut StateReader<'_>) -> Result<(), KernelError> {
        add_counts(&mut self.0, read)
    }

    fn answer(&self, _: usize, at: usize, out: &mut Vec<u8>) -> Result<(), KernelError> {
        out.extend_from_slice(&self.0[at].to_le_bytes());
        Ok(())
    }
}

/// Counts each element of a row in its own cell. NaN counts only without `skip`.
pub(crate) fn count_row(counts: &mut [u64], row: &Row<'_>, skip: bool) {
    with_values!(row.values, values => {
        for (n, x) in counts.iter_mut().zip(&values[row.from..row.to]) {
            *n = n.wrapping_add(u64::from(!(skip && x.is_nan())));
        }
    });
}

/// Returns the number of elements of a row. NaN counts only without `skip`.
pub(crate) fn count_run(row: &Row<'_>, skip: bool) -> u64 {
    with_values!(row.values, values => {
        values[row.from..row.to].iter().map(|x| u64::from(!(skip && x.is_nan()))).sum()
    })
}
