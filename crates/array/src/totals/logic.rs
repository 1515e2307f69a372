//! Whether any, or all, of the elements are true.

use gristmill_kernel::KernelError;
use gristmill_kernel::state::StateReader;

use crate::settle::{any_false, any_true};
use crate::statistics::ChunkStatistics;
use crate::totals::{Row, Totals};
use crate::truth::is_true;
use crate::values::with_values;

pub(crate) struct Logic {
    /// Whether each cell is decided: by a true element for any, by a false one for all.
    found: Vec<bool>,
    all: bool,
}

impl Logic {
    pub(crate) fn new(cells: usize, all: bool) -> Logic {
        Logic { found: vec![false; cells], all }
    }
}

impl Totals for Logic {
    fn row(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        let all = self.all;
        with_values!(row.values, values => {
            for (found, x) in self.found[at..].iter_mut().zip(&values[row.from..row.to]) {
                *found |= is_true(*x) != all;
            }
        });
        Ok(())
    }

    fn run(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        let all = self.all;
        self.found[at] |= with_values!(row.values, values => {
            values[row.from..row.to].iter().any(|x| is_true(*x) != all)
        });
        Ok(())
    }

    fn take(&mut self, at: usize, statistics: &ChunkStatistics) -> Result<(), KernelError> {
        self.found[at] |= if self.all { any_false(statistics) == Some(true) } else { any_true(statistics) };
        Ok(())
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.extend(self.found.iter().map(|found| u8::from(*found)));
    }

    fn merge(&mut self, read: &mut StateReader<'_>) -> Result<(), KernelError> {
        for found in &mut self.found {
            *found |= read.flag()?;
        }
        Ok(())
    }

    fn answer(&self, _: usize, at: usize, out: &mut Vec<u8>) -> Result<(), KernelError> {
        out.push(u8::from(self.found[at] != self.all));
        Ok(())
    }
}
