//! Variances of floats, and the five moments at once.

use gristmill_exact::{BinnedCells, ExactNumber, Moments, Real, SquareCells, squares};
use gristmill_kernel::KernelError;
use gristmill_kernel::state::{StateReader, StateWriter};

use crate::reduction::{NAME, Op};
use crate::totals::count::{count_row, count_run};
use crate::totals::extreme::Extreme;
use crate::totals::integer::{IntegerMoments, put_sum};
use crate::totals::{Row, Rule, Totals, add_counts, domain, put_counts, put_float};
use crate::truth::is_float;
use crate::values::{Number, Values};

/// Values whose squares are made at once.
const PIECE: usize = 512;

/// Sums of values and of their squares, for each cell.
enum SquareSums {
    Exact(Box<Moments>),
    Binned(Box<(BinnedCells, SquareCells)>),
}

pub(crate) struct FloatMoments {
    rule: Rule,
    counts: Vec<u64>,
    sums: SquareSums,
}

impl FloatMoments {
    pub(crate) fn new(rule: &Rule, cells: usize) -> FloatMoments {
        let sums = if rule.single {
            SquareSums::Exact(Box::default())
        } else {
            SquareSums::Binned(Box::new((BinnedCells::new(cells), SquareCells::new(cells))))
        };
        FloatMoments { rule: rule.clone(), counts: vec![0; cells], sums }
    }

    fn take<T: Real + Number>(&mut self, at: usize, values: &[T], apart: bool) -> Result<(), KernelError> {
        let skip = self.rule.skip;
        match &mut self.sums {
            SquareSums::Exact(moments) => {
                for piece in values.chunks(PIECE) {
                    let mut bytes = [0u8; 8 * PIECE];
                    let used = &mut bytes[..8 * piece.len()];
                    for (out, x) in used.as_chunks_mut::<8>().0.iter_mut().zip(piece) {
                        *out = x.widen().to_le_bytes();
                    }
                    moments.add_f64_le(used);
                }
            }
            SquareSums::Binned(cells) => {
                let (sums, both) = &mut **cells;
                let mut from = at;
                for piece in values.chunks(PIECE) {
                    let (mut wide, mut high, mut low) = ([0f64; PIECE], [0f64; PIECE], [0f64; PIECE]);
                    let n = piece.len();
                    wide.iter_mut().zip(piece).for_each(|(wide, x)| *wide = x.widen());
                    if !squares(&wide[..n], &mut high[..n], &mut low[..n]) {
                        return Err(domain(
                            "a variance for each of many cells takes values below 2^500; divide them first, as in x / 1e200",
                        ));
                    }
                    if apart {
                        sums.add_row(from, piece, skip);
                        both.add_row(from, &high[..n], skip);
                        both.add_row(from, &low[..n], skip);
                        from += n;
                    } else {
                        sums.add_run(at, piece, skip);
                        both.add_run(at, &high[..n], skip);
                        both.add_run(at, &low[..n], skip);
                    }
                }
            }
        }
        Ok(())
    }

    fn variance(&self, at: usize, ddof: u64) -> ExactNumber {
        let n = self.counts[at];
        match &self.sums {
            SquareSums::Exact(moments) => moments.variance_exactly(n, ddof, self.rule.skip),
            SquareSums::Binned(cells) => cells.0.variance(&cells.1, at, n, ddof),
        }
    }

    fn sum(&self, at: usize) -> ExactNumber {
        match &self.sums {
            SquareSums::Exact(moments) => moments.sum().exactly(1, self.rule.skip),
            SquareSums::Binned(cells) => cells.0.exactly(at, 1),
        }
    }

    /// Returns the error of rounding the sum to f64.
    fn sum_low(&self, at: usize) -> f64 {
        match &self.sums {
            SquareSums::Exact(moments) => {
                moments.sum().remainder(moments.sum().exactly(1, self.rule.skip).to_f64())
            }
            SquareSums::Binned(cells) => cells.0.remainder(at, cells.0.exactly(at, 1).to_f64()),
        }
    }
}

impl Totals for FloatMoments {
    fn row(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        count_row(&mut self.counts[at..], row, self.rule.skip);
        match row.values {
            Values::F32(values) => self.take(at, &values[row.from..row.to], true),
            Values::F64(values) => self.take(at, &values[row.from..row.to], true),
            _ => Ok(()),
        }
    }

    fn run(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        self.counts[at] = self.counts[at].wrapping_add(count_run(row, self.rule.skip));
        match row.values {
            Values::F32(values) => self.take(at, &values[row.from..row.to], false),
            Values::F64(values) => self.take(at, &values[row.from..row.to], false),
            _ => Ok(()),
        }
    }

    fn save(&self, out: &mut Vec<u8>) {
        put_counts(&self.counts, out);
        match &self.sums {
            SquareSums::Exact(moments) => moments.encode(out),
            SquareSums::Binned(cells) => {
                cells.0.encode(out);
                cells.1.encode(out);
            }
        }
    }

    fn merge(&mut self, read: &mut StateReader<'_>) -> Result<(), KernelError> {
        add_counts(&mut self.counts, read)?;
        let bad = |read: &StateReader<'_>, error: gristmill_exact::DecodeError| read.bad(error.to_string());
        match &mut self.sums {
            SquareSums::Exact(moments) => {
                let (other, used) = Moments::decode(read.rest()).map_err(|error| bad(read, error))?;
                moments.merge(&other);
                read.bytes(used)?;
            }
            SquareSums::Binned(cells) => {
                let used = cells.0.merge_encoded(read.rest()).map_err(|error| bad(read, error))?;
                read.bytes(used)?;
                let used = cells.1.merge_encoded(read.rest()).map_err(|error| bad(read, error))?;
                read.bytes(used)?;
            }
        }
        Ok(())
    }

    fn answer(&self, _: usize, at: usize, out: &mut Vec<u8>) -> Result<(), KernelError> {
        let variance = if self.counts[at] < self.rule.min_count {
            ExactNumber::NAN
        } else {
            self.variance(at, self.rule.ddof)
        };
        match (&self.rule.op, self.rule.column.size()) {
            (Op::Std, 4) => variance.sqrt_f32().put(out),
            (Op::Std, _) => variance.sqrt_f64().put(out),
            _ => put_float(self.rule.column, &variance, out),
        }
        Ok(())
    }
}

/// Count, sum, sum of squared distances, smallest and largest element of each cell.
pub(crate) struct AllMoments {
    rule: Rule,
    column_moments: ColumnMoments,
    least: Extreme,
    most: Extreme,
}

enum ColumnMoments {
    Float(Box<FloatMoments>),
    Integer(Box<IntegerMoments>),
}

impl AllMoments {
    pub(crate) fn new(rule: &Rule, cells: usize) -> AllMoments {
        let column_moments = if is_float(rule.column) {
            ColumnMoments::Float(Box::new(FloatMoments::new(rule, cells)))
        } else {
            ColumnMoments::Integer(Box::new(IntegerMoments::new(rule, cells)))
        };
        let (least, most) = (Extreme::new(rule, cells, false), Extreme::new(rule, cells, true));
        AllMoments { rule: rule.clone(), column_moments, least, most }
    }

    fn column_moments(&mut self) -> &mut dyn Totals {
        match &mut self.column_moments {
            ColumnMoments::Float(moments) => &mut **moments,
            ColumnMoments::Integer(moments) => &mut **moments,
        }
    }
}

impl Totals for AllMoments {
    fn row(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        self.column_moments().row(at, row)?;
        self.least.row(at, row)?;
        self.most.row(at, row)
    }

    fn run(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        self.column_moments().run(at, row)?;
        self.least.run(at, row)?;
        self.most.run(at, row)
    }

    fn save(&self, out: &mut Vec<u8>) {
        let mut column_moments = Vec::new();
        match &self.column_moments {
            ColumnMoments::Float(moments) => moments.save(&mut column_moments),
            ColumnMoments::Integer(moments) => moments.save(&mut column_moments),
        }
        out.put_blob(&column_moments);
        self.least.save(out);
        self.most.save(out);
    }

    fn merge(&mut self, read: &mut StateReader<'_>) -> Result<(), KernelError> {
        let mut inner = StateReader::new(NAME, read.blob()?);
        self.column_moments().merge(&mut inner)?;
        inner.end()?;
        self.least.merge(read)?;
        self.most.merge(read)
    }

    fn answer(&self, part: usize, at: usize, out: &mut Vec<u8>) -> Result<(), KernelError> {
        let n = match &self.column_moments {
            ColumnMoments::Float(moments) => moments.counts[at],
            ColumnMoments::Integer(moments) => moments.counts[at],
        };
        let too_few = n < self.rule.min_count;
        match (part, &self.column_moments) {
            (0, _) => out.extend_from_slice(&n.to_le_bytes()),
            (1, ColumnMoments::Float(_)) if too_few => put_float(self.rule.column, &ExactNumber::NAN, out),
            (2, ColumnMoments::Float(_)) if too_few => f64::NAN.put(out),
            (1, ColumnMoments::Float(moments)) => put_float(self.rule.column, &moments.sum(at), out),
            (1, ColumnMoments::Integer(moments)) => {
                return put_sum(self.rule.column, moments.moments[at].sum(), out);
            }
            // (n Sxx - Sx Sx) / n, which is 0 without elements.
            (2, _) if n == 0 => 0f64.put(out),
            (2, ColumnMoments::Float(moments)) => {
                let m2 = moments.variance(at, n - 1).to_f64();
                // Bits that the cells dropped must not make a distance between equal values.
                let none = m2.is_finite() && self.least.same_as(&self.most, at);
                (if none { 0.0 } else { m2 }).put(out);
            }
            (2, ColumnMoments::Integer(moments)) => {
                moments.moments[at].variance_exactly(n, n - 1).to_f64().put(out)
            }
            (3, _) => return self.least.answer(0, at, out),
            (4, _) => return self.most.answer(0, at, out),
            (_, ColumnMoments::Float(moments)) if !too_few => moments.sum_low(at).put(out),
            _ => 0f64.put(out),
        }
        Ok(())
    }
}
