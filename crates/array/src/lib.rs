//! Reductions of n-dimensional arrays where their chunks are stored, so that only the reduced array travels.
//!
//! An array is cut into chunks ([`Grid`]). A request selects a hyperslab of it ([`Selection`]), decodes its numbers by
//! the CF conventions ([`Meaning`]), computes an expression of each element ([`Expr`]), and reduces the results along
//! some axes ([`Reduction`]). [`ArrayReduce`] is the kernel of such a request. Its records are chunks: folds take
//! chunks in any order and on any node, and their states merge in any order to the same bits.
//!
//! ```
//! use gristmill_array::*;
//! use gristmill_kernel::{Array, Block, Ctx, DType, Fold, Kernel, Next, NoRows, Value, saved};
//!
//! // Two months of three days at two places, as i16 in tenths; 0 means missing.
//! let mut meaning = Meaning::plain(DType::I16);
//! meaning.missing = vec![Exact::Int(0)];
//! meaning.scale = Some(Factor { value: 0.1, dtype: FactorType::F64 });
//! let request = Request {
//!     grid: Grid::new(vec![6, 2], vec![2, 2], EdgeChunks::Whole)?,
//!     meaning,
//!     others: Vec::new(),
//!     constants: Vec::new(),
//!     selection: "1:".parse()?,
//!     expr: Some("where(x > 1, x, 1)".parse()?),
//!     reduction: Reduction {
//!         groups: vec![Groups { axis: 0, labels: vec![0, 0, 1, 1, 1], count: 2 }],
//!         ..Reduction::new(Op::Mean)
//!     },
//! };
//! let kernel = ArrayReduce::bind(request)?;
//! assert!(kernel.memory().state_bytes < 500);
//!
//! // Two folds take the chunks, in any order.
//! let ctx = Ctx::first(0..3);
//! let chunk = |values: [i16; 4]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
//! let (mut a, mut b) = (kernel.begin(&ctx)?, kernel.begin(&ctx)?);
//! a.update(&Block::new(2, 1, &chunk([5, 40, 30, 50])), &mut NoRows)?;
//! b.update(&Block::new(1, 1, &chunk([40, 0, 20, 60])), &mut NoRows)?;
//! b.update(&Block::new(0, 1, &chunk([90, 90, 20, 10])), &mut NoRows)?;
//! a.merge(&saved(&*b), &mut NoRows)?;
//! let Next::Done(answer) = kernel.advance(&ctx, &saved(&*a))? else { unreachable!() };
//! let Some(Value::Array(mean)) = answer.get("mean") else { unreachable!() };
//! assert_eq!(mean.shape, [2, 2]);
//! let means: Vec<Value> = mean.values().collect();
//! assert_eq!(means, [3.0, 1.0, 2.0, 5.0].map(Value::Float));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Accuracy
//! A single number is *exact*: the correctly rounded result. Counts, extremes, their positions, histograms, quantiles
//! and all results of integers are exact in grids too. Sums, means and variances of floats in grids are *binned*: they
//! have the same bits for any chunks, order and number of nodes, and their error is within the bounds of
//! [`BinnedCells`](gristmill_exact::BinnedCells). For a sum of n values the bound is `n * 2^-80 * max|x|` before its
//! one rounding, for a variance `2^-77 * n / (n - ddof) * max|x|^2`. Weighted sums and means are always binned.
//!
//! # Memory
//! A fold holds the cells of the tiles that its chunks touch, at most [`Memory::fold_bytes`]; a block of 4,096 elements
//! is decoded, computed and reduced at a time, so neither the chunk nor the expression adds to it. A request whose
//! state could exceed [`MAX_STATE_BYTES`] is refused before anything is read.

mod answer;
mod axes;
mod decode;
mod encoded_request;
mod error;
mod expr;
mod fold;
mod grid;
mod identity;
mod inputs;
mod kernel;
mod meaning;
mod measure;
mod plan;
mod reduction;
mod rows;
mod selection;
mod settle;
mod statistics;
mod statistics_plan;
mod totals;
mod truth;
mod values;
mod walk;

pub use encoded_request::EncodedRequest;
pub use error::ArrayError;
pub use expr::{Expr, MAX_DEPTH, MAX_TEXT, Typed};
pub use grid::{EdgeChunks, Grid, MAX_AXES, MAX_CHUNK_ELEMENTS};
pub use inputs::{Constant, MAX_CONSTANT_BYTES, MAX_INPUTS};
pub use kernel::ArrayReduce;
pub use meaning::{Exact, Factor, FactorType, MAX_MISSING, Meaning};
pub use plan::{BLOCK_ELEMENTS, MAX_STATE_BYTES, Memory, Request};
pub use reduction::{
    Boundary, Groups, MAX_BINS, MAX_LABELS, MAX_QUANTILES, MAX_WEIGHTS, Op, Reduction, Weights, Windows,
};
pub use selection::{Range, Selected, Selection, Take};
pub use statistics::ChunkStatistics;
pub use totals::quantile_passes;
pub use values::{Number, Values};
