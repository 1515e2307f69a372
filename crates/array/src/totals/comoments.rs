//! Sums of two columns, of their products and of their squares, for covariances and correlations.

use gristmill_exact::{Cells, products};
use gristmill_kernel::KernelError;
use gristmill_kernel::state::StateReader;

use crate::totals::{Row, Rule, Totals, add_counts, domain, put_counts};
use crate::values::{Number, Values, with_values};

/// Elements whose products are made at once.
const PIECE: usize = 512;

/// Cells of five bins. Products of nearly equal values keep all bits that their covariance needs, for any values of the
/// other column.
pub(crate) type PairCells = Cells<5>;

/// Sums that [`Comoments`] has for each cell: of x, y, x * y, x * x and y * y.
pub(crate) const SUMS: usize = 5;

/// The number of pairs of each cell, and the sums of x and y, of their products and of their squares.
pub(crate) struct Comoments {
    rule: Rule,
    counts: Vec<u64>,
    x: PairCells,
    y: PairCells,
    xy: PairCells,
    xx: PairCells,
    yy: PairCells,
}

impl Comoments {
    pub(crate) fn new(rule: &Rule, cells: usize) -> Comoments {
        let sums = || PairCells::new(cells);
        let counts = vec![0; cells];
        Comoments { rule: rule.clone(), counts, x: sums(), y: sums(), xy: sums(), xx: sums(), yy: sums() }
    }

    fn take(&mut self, at: usize, row: &Row<'_>, apart: bool) -> Result<(), KernelError> {
        let Some(second) = row.second else {
            return Err(domain("pairs have no second element; please report it"));
        };
        for from in (row.from..row.to).step_by(PIECE) {
            let count = PIECE.min(row.to - from);
            let (mut x, mut y) = ([0f64; PIECE], [0f64; PIECE]);
            let (x, y) = (&mut x[..count], &mut y[..count]);
            widened(row.values, from, x);
            widened(second, from, y);
            let mut pairs = 0;
            for (i, (x, y)) in x.iter_mut().zip(y.iter_mut()).enumerate() {
                let missing = self.rule.skip && (x.is_nan() || y.is_nan());
                if missing {
                    // Zeros add nothing.
                    (*x, *y) = (0.0, 0.0);
                } else if apart {
                    self.counts[at + from - row.from + i] += 1;
                } else {
                    pairs += 1;
                }
            }
            let cell = if apart { at + from - row.from } else { at };
            if !apart {
                self.counts[at] = self.counts[at].wrapping_add(pairs);
            }
            self.add(cell, x, y, apart)?;
        }
        Ok(())
    }

    fn add(&mut self, cell: usize, x: &[f64], y: &[f64], apart: bool) -> Result<(), KernelError> {
        let add = |sums: &mut PairCells, values: &[f64]| {
            if apart { sums.add_row(cell, values, false) } else { sums.add_run(cell, values, false) }
        };
        add(&mut self.x, x);
        add(&mut self.y, y);
        let (mut high, mut low) = ([0f64; PIECE], [0f64; PIECE]);
        let (high, low) = (&mut high[..x.len()], &mut low[..x.len()]);
        for (a, b, sums) in [(x, y, &mut self.xy), (x, x, &mut self.xx), (y, y, &mut self.yy)] {
            if !products(a, b, high, low) {
                return Err(domain(
                    "a covariance for each cell takes values below 2^500; divide them first, as in x / 1e200",
                ));
            }
            add(sums, high);
            add(sums, low);
        }
        Ok(())
    }

    fn all(&mut self) -> [&mut PairCells; SUMS] {
        [&mut self.x, &mut self.y, &mut self.xy, &mut self.xx, &mut self.yy]
    }

    /// The sum of squared distances from the mean, of the sums of a column and of its squares.
    fn m2(&self, sums: &PairCells, squares: &PairCells, at: usize) -> f64 {
        let m2 = sums.comoment(sums, squares, at, self.counts[at]).to_f64();
        // Bits that the cells dropped must not make it negative. NaN stays.
        if m2 < 0.0 { 0.0 } else { m2 }
    }
}

/// Writes the elements of a column from an index on as f64.
fn widened(values: &Values, from: usize, out: &mut [f64]) {
    with_values!(values, values => {
        for (out, value) in out.iter_mut().zip(&values[from..]) {
            *out = value.to_f64();
        }
    });
}

impl Totals for Comoments {
    fn row(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        self.take(at, row, true)
    }

    fn run(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        self.take(at, row, false)
    }

    fn save(&self, out: &mut Vec<u8>) {
        put_counts(&self.counts, out);
        [&self.x, &self.y, &self.xy, &self.xx, &self.yy].into_iter().for_each(|sums| sums.encode(out));
    }

    fn merge(&mut self, read: &mut StateReader<'_>) -> Result<(), KernelError> {
        add_counts(&mut self.counts, read)?;
        for sums in self.all() {
            let used = sums.merge_encoded(read.rest()).map_err(|error| read.bad(error.to_string()))?;
            read.bytes(used)?;
        }
        Ok(())
    }

    fn answer(&self, part: usize, at: usize, out: &mut Vec<u8>) -> Result<(), KernelError> {
        let low = |sums: &PairCells| sums.remainder(at, sums.exactly(at, 1).to_f64());
        match part {
            0 => out.extend_from_slice(&self.counts[at].to_le_bytes()),
            1 => self.x.exactly(at, 1).to_f64().put(out),
            2 => low(&self.x).put(out),
            3 => self.y.exactly(at, 1).to_f64().put(out),
            4 => low(&self.y).put(out),
            // Without pairs the sums of products are 0.
            _ if self.counts[at] == 0 => 0f64.put(out),
            6 => self.m2(&self.x, &self.xx, at).put(out),
            7 => self.m2(&self.y, &self.yy, at).put(out),
            _ => self.x.comoment(&self.y, &self.xy, at, self.counts[at]).to_f64().put(out),
        }
        Ok(())
    }
}
