//! Where the smallest or the largest element is.

use gristmill_kernel::KernelError;
use gristmill_kernel::state::{StateReader, StateWriter};

use crate::reduction::Op;
use crate::totals::{Row, Rule, Totals, domain};
use crate::values::{Number, with_values};

/// The place of a cell without elements.
const NOWHERE: u64 = u64::MAX;

pub(crate) struct Place {
    rule: Rule,
    /// Keys, turned over where the largest is wanted, so that the least wins.
    keys: Vec<u64>,
    places: Vec<u64>,
}

impl Place {
    pub(crate) fn new(rule: &Rule, cells: usize) -> Place {
        Place { rule: rule.clone(), keys: vec![u64::MAX; cells], places: vec![NOWHERE; cells] }
    }

    /// Takes an element that is not missing.
    #[inline]
    fn take(&mut self, at: usize, key: u64, place: u64) {
        if (key, place) < (self.keys[at], self.places[at]) {
            (self.keys[at], self.places[at]) = (key, place);
        }
    }

    /// The key by which elements are compared, `None` for what is missing. NaN that is not missing comes before all; the
    /// zeros are equal.
    #[inline]
    fn key<T: Number>(&self, x: T) -> Option<u64> {
        if x.is_nan() {
            return (!self.rule.skip).then_some(0);
        }
        let key = if x == T::default() { T::default().key() } else { x.key() };
        // No key of a number is 0 or the largest but of integers, which have no NaN.
        Some(if self.rule.op == Op::ArgMax { !key } else { key })
    }
}

impl Totals for Place {
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
        self.places.iter().for_each(|place| out.put_u64(*place));
    }

    fn merge(&mut self, read: &mut StateReader<'_>) -> Result<(), KernelError> {
        let keys = (0..self.keys.len()).map(|_| read.u64()).collect::<Result<Vec<_>, _>>()?;
        for (at, key) in keys.into_iter().enumerate() {
            let place = read.u64()?;
            self.take(at, key, place);
        }
        Ok(())
    }

    fn answer(&self, _: usize, at: usize, out: &mut Vec<u8>) -> Result<(), KernelError> {
        if self.places[at] == NOWHERE {
            return Err(domain(
                "there is no place of the least or largest of no elements, or of none but NaN",
            ));
        }
        out.extend_from_slice(&self.places[at].to_le_bytes());
        Ok(())
    }
}
