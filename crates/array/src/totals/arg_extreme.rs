//! Positions of the smallest or the largest elements.

use gristmill_kernel::KernelError;
use gristmill_kernel::state::{StateReader, StateWriter};

use crate::reduction::Op;
use crate::totals::{Row, Rule, Totals, domain};
use crate::values::{Number, with_values};

/// Position of a cell without elements.
const NO_POSITION: u64 = u64::MAX;

/// The position of the smallest or the largest element of each cell.
pub(crate) struct ArgExtreme {
    rule: Rule,
    /// Keys, inverted if the largest is wanted, so that the least key wins.
    keys: Vec<u64>,
    positions: Vec<u64>,
}

impl ArgExtreme {
    pub(crate) fn new(rule: &Rule, cells: usize) -> ArgExtreme {
        ArgExtreme { rule: rule.clone(), keys: vec![u64::MAX; cells], positions: vec![NO_POSITION; cells] }
    }

    /// Takes an element that is not missing.
    #[inline]
    fn take(&mut self, at: usize, key: u64, position: u64) {
        if (key, position) < (self.keys[at], self.positions[at]) {
            (self.keys[at], self.positions[at]) = (key, position);
        }
    }

    /// Returns the key by which elements are compared, or `None` for a missing element. A NaN that is not missing comes
    /// first. -0.0 and +0.0 are equal.
    #[inline]
    fn key<T: Number>(&self, x: T) -> Option<u64> {
        if x.is_nan() {
            return (!self.rule.skip).then_some(0);
        }
        let key = if x == T::default() { T::default().key() } else { x.key() };
        // Only integers have the keys 0 and `u64::MAX`, and integers have no NaN.
        Some(if self.rule.op == Op::ArgMax { !key } else { key })
    }
}

impl Totals for ArgExtreme {
    fn row(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        with_values!(row.values, values => {
            for (i, x) in values[row.from..row.to].iter().enumerate() {
                if let Some(key) = self.key(*x) {
                    self.take(at + i, key, row.index + i as u64 * row.index_step);
                }
            }
        });
        Ok(())
    }

    fn run(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        with_values!(row.values, values => {
            for (i, x) in values[row.from..row.to].iter().enumerate() {
                if let Some(key) = self.key(*x) {
                    self.take(at, key, row.index + i as u64 * row.index_step);
                }
            }
        });
        Ok(())
    }

    fn save(&self, out: &mut Vec<u8>) {
        self.keys.iter().for_each(|key| out.put_u64(*key));
        self.positions.iter().for_each(|position| out.put_u64(*position));
    }

    fn merge(&mut self, read: &mut StateReader<'_>) -> Result<(), KernelError> {
        let keys = (0..self.keys.len()).map(|_| read.u64()).collect::<Result<Vec<_>, _>>()?;
        for (at, key) in keys.into_iter().enumerate() {
            let position = read.u64()?;
            self.take(at, key, position);
        }
        Ok(())
    }

    fn answer(&self, _: usize, at: usize, out: &mut Vec<u8>) -> Result<(), KernelError> {
        if self.positions[at] == NO_POSITION {
            return Err(domain(
                "a cell has no smallest or largest element, because it has no elements or only NaN",
            ));
        }
        out.extend_from_slice(&self.positions[at].to_le_bytes());
        Ok(())
    }
}
