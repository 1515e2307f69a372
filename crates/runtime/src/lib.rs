//! Runs folds over the parts of a file, wherever the parts lie.
//!
//! A [`Request`] names a kernel, a file as [`FileParts`], and a [`Selection`]. [`run`] cuts the selected
//! records into units of work. The rule is that *a record belongs to the target that holds its first byte*.
//! Several lanes fold the units. [`run`] joins the partial results ([`Partial`]) and asks the kernel what
//! comes next, pass by pass. Rows come out in the order of the file, in bounded memory. A request can be
//! stopped between any two blocks and resumed from its [`Checkpoint`].
//!
//! Nothing here knows a network, and no answer depends on a clock. A part may be a plain file, an object in
//! a store, or bytes that a server fetches from a neighbour.
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

mod ahead;
mod assembly;
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
mod group_job;
mod hand_back;
mod job;
mod joined;
mod lane_threads;
mod lines;
mod machine;
mod object_part;
mod options;
mod other_variables;
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
mod storage_folds;
mod units;
mod value_lane;

pub use checkpoint::Checkpoint;
pub use chunks::{ChunkShare, Chunks};
pub use cores::{thread_time, whole_cores};
pub use crew::{
    ClientShare, Crew, PassOrder, ShardEnd, TakeOver, TakeShard, UnitEvent, UnitOutput, UnitSource,
    merge_units,
};
pub use error::{ErrorKind, RunError};
pub use events::{EventOutput, EventSource};
pub use extents::ExtentSet;
pub use fetch::Tally;
pub use group_job::{Group, GroupEnd, GroupJob, JoinEnds};
pub use hand_back::{HandBack, Revision, RowCut};
pub use job::{Answer, Outcome, Request, SecondFile, resume, run, run_on};
pub use machine::Allowance;
pub use object_part::ObjectPart;
pub use options::{Control, MAX_BLOCK_BYTES, MAX_LANES, MAX_ROUNDS, MemoryGuard, Options, Pace};
pub use other_variables::reads_per_chunk;
pub use parts::{FileParts, Part, PartRange, Placement, StorePart, combine_versions};
pub use prepare::keeps_bytes;
pub use report::{PlaceReport, Report, RevisionReport, Shortage};
pub use rope::{MAX_PIECES, Partial, Piece};
pub use rows::{Discard, RowOutput, UnitEnd};
pub use selection::Selection;
pub use shard::{RowsEnd, Shard, ShardJob};
pub use statistics::Statistics;
