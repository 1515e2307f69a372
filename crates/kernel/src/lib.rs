//! The fold contract and the built-in kernels.
//!
//! An analysis is a resumable fold whose partial results form a monoid. A [`Kernel`] begins folds. A [`Fold`]
//! takes aligned records. It can be saved and restored between any two of them. It merges the saved state of the
//! records that come next. A runtime decides where folds run, how many there are, which records each fold gets, and in
//! which order partials are merged. A kernel does not see any of this.
//!
//! # The laws
//! 1. Any split of the records into blocks gives the same result.
//! 2. [`Fold::save`] and [`Kernel::restore`] between any two records change nothing.
//! 3. [`Fold::merge`] is associative on adjacent extents. If [`Spec::order`] is [`Order::Any`], it may be done in any
//!    order. A fold from [`Kernel::begin`] is its identity on both sides.
//! 4. The bits of the answer do not depend on where the folds ran, for kernels of class [`Numerics::Exact`],
//!    [`Numerics::Binned`] and [`Numerics::Fixed`].
//!
//! The crate `gristmill-conformance` tests these laws for any kernel, built in or your own.
//!
//! # A kernel
//! This kernel counts the negative elements of an `f64` array:
//! ```
//! use gristmill_kernel::state::{StateReader, StateWriter};
//! use gristmill_kernel::*;
//!
//! struct Negative;
//! struct NegativeFold(u64);
//!
//! impl Kernel for Negative {
//!     fn spec(&self) -> Spec {
//!         Spec { order: Order::Any, ..Spec::fixed("negative", 8) }
//!     }
//!     fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
//!         Ok(Box::new(NegativeFold(0)))
//!     }
//!     fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
//!         Ok(Next::Done(StateReader::new("negative", whole).u64()?.into()))
//!     }
//! }
//!
//! impl Fold for NegativeFold {
//!     fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
//!         let (values, _) = block.data().as_chunks::<8>();
//!         self.0 += values.iter().filter(|x| f64::from_le_bytes(**x) < 0.0).count() as u64;
//!         Ok(Step::Took(block.count()))
//!     }
//!     fn save(&self, out: &mut Vec<u8>) {
//!         out.put_u64(self.0);
//!     }
//!     fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
//!         self.0 += StateReader::new("negative", later).u64()?;
//!         Ok(())
//!     }
//! }
//! # impl From<NegativeFold> for u64 { fn from(f: NegativeFold) -> u64 { f.0 } }
//!
//! // Two parts of [1, -2, -3] are folded separately and merged.
//! let ctx = Ctx::first(0..3);
//! let bytes = |values: &[f64]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
//! let mut left = Negative.begin(&ctx)?;
//! left.update(&Block::new(0, 2, &bytes(&[1.0, -2.0])), &mut NoRows)?;
//! let mut right = Negative.begin(&ctx)?;
//! right.update(&Block::new(2, 1, &bytes(&[-3.0])), &mut NoRows)?;
//! left.merge(&saved(&*right), &mut NoRows)?;
//! assert_eq!(Negative.advance(&ctx, &saved(&*left))?, Next::Done(Value::Int(2)));
//! # Ok::<(), KernelError>(())
//! ```
//!
//! # Built-in kernels
//! [`catalog::bind`] makes a kernel from its name, its parameters and its input:
//! ```
//! use gristmill_kernel::{Block, Ctx, DType, Input, Next, NoRows, Value, catalog, saved};
//!
//! let kernel = catalog::bind("sum", &[], &Input::elements(DType::F64))?;
//! let ctx = Ctx::first(0..3);
//! let mut fold = kernel.begin(&ctx)?;
//! let data: Vec<u8> = [1e100, 1.0, -1e100].iter().flat_map(|x: &f64| x.to_le_bytes()).collect();
//! fold.update(&Block::new(0, 3, &data), &mut NoRows)?;
//! let Next::Done(answer) = kernel.advance(&ctx, &saved(&*fold))? else { unreachable!() };
//! assert_eq!(answer.get("sum"), Some(&Value::Float(1.0)));
//! # Ok::<(), gristmill_kernel::KernelError>(())
//! ```

mod block;
mod element;
mod error;
mod fold;
mod input;
mod kernels;
mod lines;
mod nan;
mod other_names;
mod params;
mod row_batch;
mod sink;
mod spec;
mod tree;
mod value;

pub mod catalog;
mod convert;
pub mod state;

pub use block::{Block, MAX_SUMMARY_BYTES, Summary};
pub use error::KernelError;
pub use fold::{Ctx, DrainOutcome, Fold, Kernel, MAX_FULL_WITHOUT_PROGRESS, Next, Step, feed, saved};
pub use input::{ByteOrder, DType, Input, RecordRule};
pub use lines::{Lines, check_lines};
pub use params::{MAX_FILE_PARAM, ParamDecl, ParamKind, Params, inline_files};
pub use row_batch::{RowBatch, RowEnds};
pub use sink::{Full, NoRows, Position, RowBuffer, Sink};
pub use spec::{Numerics, Order, Output, Passes, Record, RowShape, RowValue, Spec};
pub use tree::Tree;
pub use value::{Array, ArrayType, Value};

/// Most bytes of one side input, which every fold holds whole.
pub const MAX_SIDE_BYTES: usize = 64 << 20;

/// Most rows that one merge may emit. Between two extents lies at most one line.
pub const MAX_MERGE_ROWS: usize = 4;

/// Most bytes of a record or line if the request sets no other bound.
pub const DEFAULT_MAX_RECORD: u64 = 4 << 20;
