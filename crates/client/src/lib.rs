//! Files by the names that users give: plain files, files striped over targets of this machine, files of a cluster, and files of object
//! stores and web servers.
//!
//! A striped file is a *layout file*, a small JSON document whose name ends in `.grist`, and one object in the
//! store of each target. The layout file is what makes it visible: [`put`] writes and flushes all objects
//! first and then puts the layout file in place with one rename, so an interrupted put leaves no visible file
//! and a reader never sees half of one. Overwriting is the same: new objects, one rename, then the old objects
//! go. Objects of an interrupted put are removed by the next put to the same target.
//!
//! ```
//! use gristmill_client::{PutOptions, open, put, read_to};
//!
//! let dir = tempfile::tempdir()?;
//! let source = dir.path().join("data.bin");
//! std::fs::write(&source, vec![7u8; 100_000])?;
//!
//! let targets = (0..3).map(|n| dir.path().join(format!("target{n}"))).collect();
//! let layout = dir.path().join("data.grist");
//! let options = PutOptions { targets, unit: 4096, record: Some(80) };
//! let put = put(&source, &layout, &options, &mut |_| ())?;
//! assert_eq!(put.unit, 4160); // rounded up to whole records
//!
//! let file = open(&layout)?;
//! assert_eq!((file.length, file.parts.len()), (100_000, 3));
//! let mut copy = Vec::new();
//! read_to(&file, &mut copy, &mut |_| ())?;
//! assert_eq!(copy, vec![7u8; 100_000]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod array;
mod chunk_unit;
mod cluster;
mod cluster_options;
mod copy;
mod descriptor;
mod entry_retries;
mod entry_unreachable;
mod error;
mod file_states;
mod fsck;
mod here;
mod location;
mod node_state;
mod open;
mod own_rates;
mod put;
mod registered_entry;
mod remote_folder;
mod remote_get;
mod remote_keep;
mod remote_names;
mod remote_put;
mod remote_put_many;
mod remote_run;
mod remote_tree;
mod remote_trees;
mod remote_walk;
mod scrub;
mod staged_folder;

pub use array::{
    AnswerAxis, ArrayFile, ArrayPlan, ArrayQuestion, AxisCoordinate, AxisSelection, COSINE_OF_LATITUDE,
    Calendar, Date, Folder, Frequency, Instant, Labels, MAX_SLAB_BYTES, Mapping, Operands, PartialDate,
    ReductionPlan, Share, Slab, TimeUnits, VariableError, empty_file, joined_files, joined_parts, meaning_of,
    plan_array, plan_dataset, plan_reduction, read_dataset, read_slab, shares, write_variable,
};
pub use chunk_unit::chunk_unit;
pub use cluster::Cluster;
pub use cluster_options::{ClusterOptions, parse_wait};
pub use copy::{get, read_to, write_whole};
pub use descriptor::{Descriptor, EXTENSION, MAX_DESCRIPTOR_BYTES};
pub use entry_retries::{COMMIT_PATIENCE, ENTRY_PATIENCE, MAX_WAIT};
pub use error::ClientError;
pub use fsck::{FsckReport, NodeCheck};
pub use gristmill_backend::{Content as OutsideContent, Entry as OutsideEntry};
pub use gristmill_sources::SourceUrl;
pub use here::{
    Here, MAX_OUTSIDE_NAMES, OutsideNames, growing_records, is_zarr, list_outside, open_file, open_growing,
};
pub use location::{Location, Url};
pub use node_state::NodeState;
pub use open::{open, open_with};
pub use put::{DEFAULT_UNIT, MAX_LOCAL_TARGETS, PutOptions, put, remove};
pub use remote_folder::Copied;
pub use remote_put::RemotePut;
pub use remote_run::Planned;
pub use remote_tree::{RemoteDataset, files_below};
pub use scrub::{Damage, ScrubPace, ScrubReport, scrub_local};
pub use staged_folder::{MAX_STAGED_FILES, StagedFolder};
