//! Weighted sums and means.

use gristmill_exact::{BinnedCells, products};
use gristmill_kernel::KernelError;
use gristmill_kernel::state::StateReader;

use crate::reduction::Op;
use crate::totals::count::{count_row, count_run};
use crate::totals::{Row, Rule, Totals, add_counts, domain, put_counts};
use crate::values::{Number, with_values};

/// Elements whose products are made at once.
const PIECE: usize = 512;

pub(crate) struct Weighted {
    rule: Rule,
    counts: Vec<u64>,
    products: BinnedCells,
    /// Sums of the weights of elements that are not missing.
    weights: BinnedCells,
}

impl Weighted {
    pub(crate) fn new(rule: &Rule, cells: usize) -> Weighted {
        let (products, weights) = (BinnedCells::new(cells), BinnedCells::new(cells));
        Weighted { rule: rule.clone(), counts: vec![0; cells], products, weights }
    }

    fn take(&mut self, at: usize, row: &Row<'_>, apart: bool) -> Result<(), KernelError> {
        let n = row.to - row.from;
        for from in (0..n).step_by(PIECE) {
            let count = PIECE.min(n - from);
            let mut x = [0f64; PIECE];
            let x = &mut x[..count];
            with_values!(row.values, values => {
                for (x, value) in x.iter_mut().zip(&values[row.from + from..]) {
                    *x = value.to_f64();
                }
            });
            let Some(weights) = row.weights.get(from..from + count) else {
                return Err(domain("an element has no weight"));
            };
            let (mut high, mut low) = ([0f64; PIECE], [0f64; PIECE]);
            if !products(x, weights, &mut high[..count], &mut low[..count]) {
                return Err(domain("weighted values and weights must be below 2^500; divide them first"));
            }
            let mut counted = [0f64; PIECE];
            for ((counted, w), x) in counted.iter_mut().zip(weights).zip(&*x) {
                *counted = if self.rule.skip && x.is_nan() { 0.0 } else { *w };
            }
            let skip = self.rule.skip;
            if skip {
                // An infinite value times a weight of 0 is NaN, but not a missing value.
                for ((high, low), x) in high.iter_mut().zip(&mut low).zip(&*x) {
                    if x.is_nan() {
                        (*high, *low) = (0.0, 0.0);
                    }
                }
            }
            let (high, low, counted) = (&high[..count], &low[..count], &counted[..count]);
            if apart {
                self.products.add_row(at + from, high, false);
                self.products.add_row(at + from, low, false);
                self.weights.add_row(at + from, counted, false);
            } else {
                self.products.add_run(at, high, false);
                self.products.add_run(at, low, false);
                self.weights.add_run(at, counted, false);
            }
        }
        Ok(())
    }
}

impl Totals for Weighted {
    fn row(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        count_row(&mut self.counts[at..], row, self.rule.skip);
        self.take(at, row, true)
    }

    fn run(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        self.counts[at] = self.counts[at].wrapping_add(count_run(row, self.rule.skip));
        self.take(at, row, false)
    }

    fn save(&self, out: &mut Vec<u8>) {
        put_counts(&self.counts, out);
        self.products.encode(out);
        self.weights.encode(out);
    }

    fn merge(&mut self, read: &mut StateReader<'_>) -> Result<(), KernelError> {
        add_counts(&mut self.counts, read)?;
        for cells in [&mut self.products, &mut self.weights] {
            let used = cells.merge_encoded(read.rest()).map_err(|error| read.bad(error.to_string()))?;
            read.bytes(used)?;
        }
        Ok(())
    }

    fn answer(&self, part: usize, at: usize, out: &mut Vec<u8>) -> Result<(), KernelError> {
        let x = match self.rule.op {
            Op::Totals if part == 0 => self.weights.exactly(at, 1).to_f64(),
            _ if self.counts[at] < self.rule.min_count => f64::NAN,
            Op::Mean => self.products.quotient(&self.weights, at).to_f64(),
            _ => self.products.exactly(at, 1).to_f64(),
        };
        x.put(out);
        Ok(())
    }
}
