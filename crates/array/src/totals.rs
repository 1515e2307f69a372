//! The state of the cells of a tile: one file for each kind of operation.

mod arg_extreme;
mod comoments;
mod count;
mod extreme;
mod float;
mod histogram;
mod integer;
mod logic;
mod moments;
mod rank;
mod wanted;
mod weighted;

use gristmill_exact::{BinnedCells, SquareCells};
use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::{ArrayType, DType, KernelError};

use crate::reduction::{NAME, Op};
use crate::statistics::ChunkStatistics;
use crate::truth::is_float;
use crate::values::Values;

pub(crate) use float::add_exactly;
pub(crate) use histogram::bin_position;
pub(crate) use integer::run_sum;
pub use rank::quantile_passes;
pub(crate) use rank::{Rank, digit};
pub(crate) use wanted::Wanted;

/// Elements of one row: consecutive elements of a column.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    pub(crate) values: &'a Values,
    /// The first element in the column; `to` is the end.
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// The second element of each pair, if elements come in pairs: a column as long as `values`.
    pub(crate) second: Option<&'a Values>,
    /// The weight of each element; empty without weights.
    pub(crate) weights: &'a [f64],
    /// Position of the first element within the reduced axes.
    pub(crate) index: u64,
    /// Distance between the positions of elements.
    pub(crate) index_step: u64,
}

/// The state of the cells of one tile. A cell without elements is the identity of `merge`.
pub(crate) trait Totals: Send {
    /// Takes each element of a row into a cell of its own, from `at` on.
    fn row(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError>;
    /// Takes all elements of a row into one cell.
    fn run(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError>;
    /// Adds statistics of elements to one cell, as [`Totals::run`] adds the elements. [`Rule::takes`] holds for them.
    fn take(&mut self, _at: usize, _statistics: &ChunkStatistics) -> Result<(), KernelError> {
        Err(domain("statistics are not enough for this operation; please report it"))
    }
    /// Appends the state. Equal elements give equal bytes, in whatever order they came.
    fn save(&self, out: &mut Vec<u8>);
    /// Merges a saved state of the same number of cells.
    fn merge(&mut self, read: &mut StateReader<'_>) -> Result<(), KernelError>;
    /// Appends the little-endian elements of a part of the answer for one cell.
    fn answer(&self, part: usize, at: usize, out: &mut Vec<u8>) -> Result<(), KernelError>;
}

/// Properties that all cells of a request share.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) op: Op,
    /// Type of the reduced elements.
    pub(crate) column: ArrayType,
    /// Whether NaN is missing.
    pub(crate) skip: bool,
    pub(crate) ddof: u64,
    pub(crate) min_count: u64,
    /// Whether the answer is a single number, whose state is exact.
    pub(crate) single: bool,
    pub(crate) weighted: bool,
    /// Bits that a pass of quantiles settles.
    pub(crate) digit: u32,
    /// Number of the pass, from 0.
    pub(crate) round: u32,
    /// Whether a cell may get 2^24 values or more, which makes its saved sums longer.
    pub(crate) long: bool,
}

/// An array of the answer.
pub(crate) struct AnswerArray {
    pub(crate) name: &'static str,
    pub(crate) dtype: ArrayType,
    pub(crate) extra: Extra,
}

/// The axis that an operation adds to the answer, with its length.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Extra {
    None,
    First(usize),
    Last(usize),
}

impl Extra {
    /// Number of elements of a cell.
    pub(crate) const fn width(self) -> usize {
        match self {
            Extra::None => 1,
            Extra::First(width) | Extra::Last(width) => width,
        }
    }
}

const F64: ArrayType = ArrayType::Number(DType::F64);
const I64: ArrayType = ArrayType::Number(DType::I64);

impl Rule {
    /// Makes the cells of a tile. `wanted` has the tile's wanted elements in a pass of quantiles after the first.
    pub(crate) fn totals(&self, cells: usize, wanted: Option<&Wanted>) -> Box<dyn Totals> {
        if self.weighted {
            return Box::new(weighted::Weighted::new(self, cells));
        }
        match self.op {
            Op::Count => Box::new(count::Count::new(cells)),
            Op::Sum | Op::Mean | Op::Totals if is_float(self.column) => {
                Box::new(float::FloatSum::new(self, cells))
            }
            Op::Sum | Op::Mean | Op::Totals => Box::new(integer::IntegerSum::new(self, cells)),
            Op::Var | Op::Std if is_float(self.column) => Box::new(moments::FloatMoments::new(self, cells)),
            Op::Var | Op::Std => Box::new(integer::IntegerMoments::new(self, cells)),
            Op::Min | Op::Max => Box::new(extreme::Extreme::new(self, cells, self.op == Op::Max)),
            Op::ArgMin | Op::ArgMax => Box::new(arg_extreme::ArgExtreme::new(self, cells)),
            Op::Any | Op::All => Box::new(logic::Logic::new(cells, self.op == Op::All)),
            Op::Moments => Box::new(moments::AllMoments::new(self, cells)),
            Op::Comoments => Box::new(comoments::Comoments::new(self, cells)),
            Op::Quantile(_) => Box::new(rank::Rank::new(self, cells, wanted)),
            Op::Histogram(_) => Box::new(histogram::Histogram::new(self, cells)),
        }
    }

    /// Most bytes that a cell adds to a saved state, and to memory.
    pub(crate) fn cell_bytes(&self) -> (u64, u64) {
        const BINNED: u64 = BinnedCells::CELL_BYTES as u64;
        const SQUARES: u64 = SquareCells::CELL_BYTES as u64;
        const PAIRS: u64 = comoments::PairCells::CELL_BYTES as u64;
        const SUMS: u64 = comoments::SUMS as u64;
        let saved = |short: usize, long: usize| if self.long { long as u64 } else { short as u64 };
        let binned = saved(BinnedCells::SHORT_STATE_BYTES, BinnedCells::LONG_STATE_BYTES);
        let squares = saved(SquareCells::SHORT_STATE_BYTES, SquareCells::LONG_STATE_BYTES);
        let pairs = saved(comoments::PairCells::SHORT_STATE_BYTES, comoments::PairCells::LONG_STATE_BYTES);
        let exact = gristmill_exact::Moments::STATE_BYTES as u64;
        let float = is_float(self.column);
        match &self.op {
            _ if self.weighted => (8 + 2 * binned, 8 + 2 * BINNED),
            Op::Count => (8, 8),
            Op::Sum | Op::Mean | Op::Totals | Op::Var | Op::Std if self.single && float => {
                (8 + exact, 8 + 4 * exact)
            }
            Op::Sum | Op::Mean | Op::Totals if float => (8 + binned, 8 + BINNED),
            Op::Sum | Op::Mean | Op::Totals => (24, 24),
            Op::Var | Op::Std if float => (8 + binned + squares, 8 + BINNED + SQUARES),
            Op::Var | Op::Std => (49, 56),
            Op::Min | Op::Max => (17, 21),
            Op::ArgMin | Op::ArgMax => (17, 17),
            Op::Any | Op::All => (1, 1),
            Op::Moments if self.single => (42 + exact, 42 + 4 * exact),
            Op::Moments => (42 + binned + squares, 50 + BINNED + SQUARES),
            Op::Comoments => (8 + SUMS * pairs, 8 + SUMS * PAIRS),
            Op::Quantile(shares) => rank::cell_bytes(shares.len() as u64, self.digit),
            Op::Histogram(edges) => (8 * (edges.len() as u64 - 1), 8 * (edges.len() as u64 - 1)),
        }
    }

    /// The arrays of the answer.
    pub(crate) fn arrays(&self) -> Vec<AnswerArray> {
        let part = |name, dtype| AnswerArray { name, dtype, extra: Extra::None };
        let name = self.op.name();
        let mean = if is_float(self.column) && !self.weighted { self.column } else { F64 };
        let sum = match self.column {
            _ if self.weighted => F64,
            column if is_float(column) => column,
            ArrayType::Number(DType::U8 | DType::U16 | DType::U32 | DType::U64) => {
                ArrayType::Number(DType::U64)
            }
            _ => I64,
        };
        match &self.op {
            Op::Count | Op::ArgMin | Op::ArgMax => vec![part(name, I64)],
            Op::Sum => vec![part(name, sum)],
            Op::Mean | Op::Var | Op::Std => vec![part(name, mean)],
            Op::Min | Op::Max => vec![part(name, self.column)],
            Op::Any | Op::All => vec![part(name, ArrayType::Bool)],
            Op::Totals if self.weighted => vec![part("weights", F64), part("sum", F64)],
            Op::Totals => vec![part("n", I64), part("sum", if is_float(self.column) { F64 } else { sum })],
            Op::Moments => {
                let mut parts = vec![
                    part("n", I64),
                    part("sum", sum),
                    part("m2", F64),
                    part("min", self.column),
                    part("max", self.column),
                ];
                if self.column == F64 {
                    parts.push(part("sum_low", F64));
                }
                parts
            }
            Op::Comoments => vec![
                part("n", I64),
                part("x", F64),
                part("x_low", F64),
                part("y", F64),
                part("y_low", F64),
                part("xy", F64),
                part("x_m2", F64),
                part("y_m2", F64),
            ],
            Op::Quantile(shares) => vec![AnswerArray { name, dtype: F64, extra: Extra::First(shares.len()) }],
            Op::Histogram(edges) => {
                vec![AnswerArray { name, dtype: I64, extra: Extra::Last(edges.len() - 1) }]
            }
        }
    }
}

pub(crate) fn domain(why: impl Into<String>) -> KernelError {
    KernelError::Domain { kernel: NAME, why: why.into() }
}

/// Appends a float of an answer: as f32 if the column is f32, else as f64.
fn put_float(column: ArrayType, x: &gristmill_exact::ExactNumber, out: &mut Vec<u8>) {
    use crate::values::Number;
    match column {
        ArrayType::Number(DType::F32) => x.to_f32().put(out),
        _ => x.to_f64().put(out),
    }
}

/// Appends counts as they are saved.
fn put_counts(counts: &[u64], out: &mut Vec<u8>) {
    counts.iter().for_each(|n| out.put_u64(*n));
}

fn add_counts(counts: &mut [u64], read: &mut StateReader<'_>) -> Result<(), KernelError> {
    for n in counts {
        *n = n.saturating_add(read.u64()?);
    }
    Ok(())
}
