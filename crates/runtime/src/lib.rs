//! Runs folds over the parts of a file, wherever these lie.
//!
//! A [`Request`] names a kernel, a file as [`FileParts`], and a [`Selection`]. [`run`] cuts the selected
//! records into units of work by the rule that *a record belongs to the target that holds its first byte*,
//! folds them on several lanes, joins the partial results ([`Partial`]) and asks the kernel what comes next,
//! pass by pass. Rows come out in the order of the file, in bounded memory. A request can be stopped between
//! any two blocks and resumed from its [`Checkpoint`].
//!
//! Nothing here knows a network or a clock that would matter to an answer: a part may be a plain file, an
//! object in a store, or what a server fetches from a neighbour.
//!
//! ```
//! use gristmill_kernel::{DType, Input, Value, catalog};
//! use gristmill_runtime::{Control, Discard, FileParts, Outcome, Request, run};
//!
//! let dir = tempfile::tempdir()?;
//! let path = dir.path().join("data.f64");
//! let bytes: Vec<u8> = (1..=1000).flat_map(|i| f64::from(i).to_le_bytes()).collect();
//! std::fs::write(&path, bytes)?;
//!
//! let input = Input::elements(DType::F64);
//! let request = Request::new(catalog::bind("sum", &[], &input)?, input, FileParts::plain(&path)?);
//! let Outcome::Done(answer) = run(request, &mut Discard, &Control::new())? else { unreachable!() };
//! assert_eq!(answer.value.get("sum"), Some(&Value::Float(500_500.0)));
//! assert_eq!(answer.report.bytes_read, 8000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assembly;
mod beside;
mod buffer;
mod checkpoint;
mod chunk_reader;
mod chunks;
mod cores;
mod crew;
mod error;
mod events;
mod extents;
mod fetch;
mod gather;
mod hand_back;
mod job;
mod joined;
mod lines;
mod machine;
mod options;
mod parts;
mod pass;
mod prepare;
mod pulls;
mod reader;
mod report;
mod rope;
mod rope_bytes;
mod row_lane;
mod rows;
mod selection;
mod shard;
mod statistics;
mod together;
mod units;
mod value_lane;

pub use beside::reads;
pub use checkpoint::Checkpoint;
pub use chunks::{Chunks, Share};
pub use cores::{thread_time, whole_cores};
pub use crew::{
    ClientShare, Crew, PassOrder, ShardEnd, TakeOver, TakeShard, UnitEvent, UnitOutput, UnitSource,
    merge_units,
};
pub use error::{ErrorKind, RunError};
pub use events::{EventOutput, EventSource};
pub use extents::ExtentSet;
pub use fetch::Tally;
pub use hand_back::{HandBack, Left, Revision};
pub use job::{Answer, Outcome, Request, SecondFile, resume, run, run_on};
pub use machine::Allowance;
pub use options::{Control, Held, MAX_BLOCK_BYTES, MAX_LANES, MAX_ROUNDS, Options, Pace};
pub use parts::{FileParts, Part, Placement, StorePart, Want, versions_as_one};
pub use prepare::keeps_bytes;
pub use report::{PlaceReport, Report, RevisionReport};
pub use rope::{MAX_PIECES, Partial, Piece};
pub use rows::{Discard, RowOutput, UnitEnd};
pub use selection::Selection;
pub use shard::{RowsEnd, Shard, ShardJob};
pub use statistics::Statistics;
pub use together::{Group, JoinEnds, Together, TogetherEnd};
