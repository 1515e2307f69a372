//! How a file's bytes lie on storage targets, which target owns a record, and which bytes an owner must
//! pull from its neighbours. Arithmetic only: nothing here opens, reads or sends anything.
//!
//! Source: S. W. Son et al., *Enabling Active Storage on Parallel I/O Software Stacks* (MSST 2010), section on
//! data alignment: records do not end where stripes end, and a file may open with a header. Son lets a server
//! fetch the rest of a record from the next one; here a record may span any number of targets.
//!
//! # Rules
//! - Bytes are `0..2^63-1` ([`MAX_FILE_BYTES`]), ranges are half open, records and targets count from 0.
//! - A record belongs to the target that holds its **first byte**.
//! - The owner pulls what else it needs (the rest of the record, and the *halo*: so many whole records on each
//!   side) from the targets that hold it, at most one message for each pair of targets and each
//!   [`BATCH_WINDOW`] of file.
//! - A range whose end lies before its start is empty. A range that reaches past the end is cut there.
//!
//! # Where things are
//! [`Striped`] and [`Segments`] say where a byte lies; [`Layout`] is either. [`SegmentTable`] is what each target keeps
//! of a segments file. [`FixedRecords`] says where
//! records lie; [`fit_unit`] chooses a stripe unit that cuts none. [`owned`] lists what a target owns,
//! [`needs`] what one stretch of owned records lacks, [`batches`] what an owner asks for, message by message,
//! and [`traffic`] adds it all up for a planner.
//!
//! # Example
//! Son's records are 80 bytes (ten doubles) and lie in stripes of 64 KiB. The 820th (number 819) has 16 bytes
//! on the first server and 64 on the second.
//! ```
//! use gristmill_layout::{FixedRecords, Layout, Need, Striped, fit_unit, needs, owned, traffic};
//! # fn main() -> Result<(), gristmill_layout::LayoutError> {
//! let layout = Layout::Striped(Striped::new(65_536, 4, 0)?);
//! let records = FixedRecords::from_file_len(0, 80, 80_000_000)?;
//! assert_eq!(records.count(), 1_000_000);
//! assert_eq!(records.bytes(819..820), 65_520..65_600);
//!
//! // The first server owns it, for it holds the first byte, and pulls 64 bytes from the second.
//! let first = owned(&layout, &records, 0..records.count(), 0).next().unwrap();
//! assert_eq!(first.records, 0..820);
//! assert_eq!(first.run.file, 0..65_536);
//! let pulled = needs(&layout, &records, 0, first.records, 0, 0..records.count())?;
//! assert_eq!(pulled, [Need { target: 1, file: 65_536..65_600 }]);
//!
//! // Over the whole file the servers exchange 39 KB of 80 MB ...
//! let cost = traffic(&layout, &records, 0..records.count(), 0);
//! assert_eq!((cost.moved_bytes, cost.own_bytes, cost.estimated), (39_040, 79_960_960, false));
//!
//! // ... and nothing at all if the stripe unit is a whole number of records.
//! let unit = fit_unit(65_536, 80)?;
//! assert_eq!(unit, 65_600);
//! let fitted = Layout::Striped(Striped::new(unit, 4, 0)?);
//! assert_eq!(traffic(&fitted, &records, 0..records.count(), 0).moved_bytes, 0);
//! # Ok(())
//! # }
//! ```

mod batches;
mod components;
mod coverage;
mod error;
mod extents;
mod holders;
mod joined;
mod layout;
mod modular;
mod needs;
mod ownership;
mod records;
mod runs;
mod segment_table;
mod segments;
mod striped;
mod traffic;

pub use batches::{Batch, Batches, batches, batches_in_windows};
pub use components::Component;
pub use error::LayoutError;
pub use extents::{Extent, Extents};
pub use layout::Layout;
pub use needs::{Need, needs};
pub use ownership::{Owned, OwnedRuns, owned};
pub use records::{FixedRecords, fit_unit};
pub use runs::{Run, Runs};
pub use segment_table::{SEGMENT_FOOTER, SegmentFooter, SegmentTable};
pub use segments::{Segment, Segments};
pub use striped::Striped;
pub use traffic::{Traffic, traffic, traffic_in_windows};

/// Position of a target in a file's list of targets; below [`MAX_TARGETS`].
pub type TargetIndex = u32;

/// Longest file, in bytes: what a signed 64-bit offset can reach.
pub const MAX_FILE_BYTES: u64 = i64::MAX as u64;

/// Most targets one file may lie on.
pub const MAX_TARGETS: u32 = 65_536;

/// Largest stripe unit, in bytes. As large as a file, so that one piece per target is a stripe unit too.
pub const MAX_UNIT: u64 = MAX_FILE_BYTES;

/// Most pieces in one segment table (about 36 bytes of memory each).
pub const MAX_SEGMENTS: usize = 1 << 22;

/// Most entries of the cycle of a [`Component`].
pub const MAX_CYCLE: usize = 1 << 16;

/// Most components of a file in place.
pub const MAX_COMPONENTS: usize = 64;

/// Most stripes of a file in place that has components.
pub const MAX_STRIPES_IN_PLACE: usize = 1 << 16;

/// Longest object name in a segment table, in bytes.
pub const MAX_OBJECT_NAME: usize = 1_024;

/// Most pieces one call of [`needs`] lists.
pub const MAX_NEEDS: usize = 1 << 20;

/// File bytes served by one message between a pair of targets. Windows start at its multiples.
pub const BATCH_WINDOW: u64 = 1 << 20;

/// Steps [`traffic`] may take before it estimates, and once more to estimate: below a fifth of a second.
pub const MAX_TRAFFIC_STEPS: u64 = 1 << 19;
