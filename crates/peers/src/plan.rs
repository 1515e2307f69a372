//! Plans: the bytes that a request would move at either place, before it runs.

use std::ops::Range;

use gristmill_kernel::{Kernel, Order, Output, Passes, Record, RecordRule};
use gristmill_layout::{FixedRecords, Layout, fit_unit, traffic};
use gristmill_runtime::{ChunkShare, ErrorKind, RunError};
use gristmill_wire::{FileMap, FoldPlace};

use crate::{ExtraWork, Question};

/// Bytes that a piece of a partial takes in addition to its state.
const PIECE_BYTES: u64 = 40;

/// Bytes of each run of records in the set of the records that a partial covers.
const RUN_BYTES: u64 = 32;

/// Most bytes that a placement on storage may move beyond a plain read.
const MAX_EXCESS_BYTES: u64 = 64 << 10;

/// The bytes that cross the network at either place, as far as the layout shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The place where the request will run.
    pub place: FoldPlace,
    /// The reason, in one sentence.
    pub why: String,
    /// Bytes of the file in which the wanted records begin.
    pub bytes: Range<u64>,
    /// Bytes of the selection, which a plain read moves to the client.
    pub client_bytes: u64,
    /// Work of all storage nodes in addition to folding: pulled bytes and their messages.
    pub extra_work: ExtraWork,
    /// Bytes of partial results. `None` for kernels that give rows, because their size depends on the data.
    pub answer_bytes: Option<u64>,
    /// Whether the numbers are extrapolated from a part of the file.
    pub estimated: bool,
    /// Whether the kernel takes several passes. Each pass would move these bytes.
    pub several_passes: bool,
    /// The share of each target in the chunks of an array, in the order of the layout. Empty for other records.
    pub shares: Vec<ChunkShare>,
}

impl Plan {
    /// Plans a question over a file with this layout.
    ///
    /// # Errors
    /// Returns an error if the kernel or the layout refuses the question. If `wanted` is [`FoldPlace::Storage`], it also
    /// fails for records that fit the stripes so badly that nodes would move more than a plain read.
    pub fn make(
        question: &Question,
        file: &FileMap,
        layout: &Layout,
        wanted: FoldPlace,
    ) -> Result<Plan, RunError> {
        let spec = question.bind()?.spec();
        if question.array.is_some() {
            return Plan::for_chunks(question, file, layout, wanted);
        }
        let input = question.input.input()?.0.for_kernel(&spec);
        let skip = question.input.skip.min(file.length);
        let (start, length) = question.range.unwrap_or((skip, None));
        let end = length.map_or(file.length, |length| start.saturating_add(length)).min(file.length);
        let start = start.clamp(skip, file.length);
        let bytes = start..end.max(start);
        let wanted_bytes = bytes.clone();
        let (mut extra_work, mut estimated) = (ExtraWork::default(), false);
        let mut client_bytes = bytes.end - bytes.start;
        let nodes = crate::shards(file).len() as u64;
        // Each run of stripes is a separate piece until the records between the runs are known.
        let stripes = match layout {
            Layout::Striped(_) => client_bytes.div_ceil(file.unit.max(1)).max(1),
            Layout::Segments(segments) => segments.pieces().max(1) as u64,
        };
        let has_table = file.segments || file.has_components();
        let unit = if has_table { client_bytes.div_ceil(stripes) } else { file.unit };
        let pieces = if nodes > 1 { stripes } else { 1 };
        match (spec.record, input.record) {
            (Record::Index(_), _) => client_bytes = 0,
            (_, RecordRule::Fixed(size)) => {
                let (records, _) = FixedRecords::fitting(skip, size, file.length)?;
                let select = records.starting_in(bytes);
                // A record that begins in the range is read to its end.
                let whole = records.bytes(select.clone());
                client_bytes = whole.end - whole.start;
                let cost = traffic(layout, &records, select, spec.halo);
                if spec.output != Output::Value {
                    extra_work = ExtraWork::for_rows(client_bytes, unit, nodes, false);
                }
                (extra_work.pulled_bytes, extra_work.messages) = (cost.moved_bytes, cost.messages);
                estimated = cost.estimated;
            }
            (_, RecordRule::Lines) if spec.output != Output::Value && nodes > 1 => {
                // The owner of a stripe's last line looks for its end.
                extra_work = ExtraWork::for_rows(client_bytes, unit, nodes, true);
                estimated = true;
            }
            _ => {}
        }
        let states = if spec.order == Order::Any { nodes } else { nodes.max(pieces) };
        // If records cross stripes, a partial lists the records that it covers run by run.
        let in_stripes = |size| !has_table && file.unit.is_multiple_of(size);
        let crosses_stripes =
            matches!(input.record, RecordRule::Fixed(size) if nodes > 1 && !in_stripes(size));
        let runs = if crosses_stripes { stripes.saturating_mul(RUN_BYTES) } else { 0 };
        let states = states.saturating_mul(spec.state_hint + PIECE_BYTES).saturating_add(runs);
        let answer_bytes = (spec.output == Output::Value).then_some(states);
        let plan = |place, why: String| Plan {
            place,
            why,
            bytes: wanted_bytes.clone(),
            client_bytes,
            extra_work,
            answer_bytes,
            estimated,
            several_passes: spec.passes == Passes::Several,
            shares: Vec::new(),
        };
        let moved = extra_work.pulled_bytes.saturating_add(answer_bytes.unwrap_or(0));
        let misfit = moved > client_bytes.saturating_add(MAX_EXCESS_BYTES);
        match wanted {
            FoldPlace::Client => Ok(plan(FoldPlace::Client, "asked for".into())),
            FoldPlace::Auto if misfit => {
                Ok(plan(FoldPlace::Client, misfit_text(spec.name, file, &input.record, moved, client_bytes)))
            }
            FoldPlace::Storage | FoldPlace::Osd if misfit => Err(RunError::Remote {
                kind: ErrorKind::Usage,
                message: format!(
                    "{}; use --place client or auto, or put the file again{}",
                    misfit_text(spec.name, file, &input.record, moved, client_bytes),
                    better_unit(file, &input.record)
                ),
            }),
            FoldPlace::Storage | FoldPlace::Osd => Ok(plan(FoldPlace::Storage, "asked for".into())),
            FoldPlace::Auto => {
                Ok(plan(FoldPlace::Storage, "the nodes move less than a plain read would".into()))
            }
        }
    }

    /// Plans a request over the chunks of an array.
    fn for_chunks(
        question: &Question,
        file: &FileMap,
        layout: &Layout,
        wanted: FoldPlace,
    ) -> Result<Plan, RunError> {
        let none = || RunError::BadPartial { why: "it has no chunks".into() };
        let work = question.array.as_ref().ok_or_else(none)?;
        let shares = work.chunks.shares(layout, file.length)?;
        let sum = |field: fn(&ChunkShare) -> u64| shares.iter().map(field).fold(0, u64::saturating_add);
        let (client_bytes, pulled_bytes) = (sum(|share| share.bytes), sum(|share| share.pulled));
        let owners = shares.iter().filter(|share| share.chunks > 0).count() as u64;
        let states = owners.saturating_mul(work.kernel.memory().state_bytes.saturating_add(PIECE_BYTES));
        let moved = pulled_bytes.saturating_add(states);
        let misfit = moved > client_bytes.saturating_add(MAX_EXCESS_BYTES);
        let text = format!(
            "'{}' over chunks in stripes of {} bytes would move about {moved} bytes from and between storage nodes, more \
             than the {client_bytes} bytes of a plain read",
            question.kernel, file.unit
        );
        let (place, why) = match wanted {
            FoldPlace::Client => (FoldPlace::Client, "asked for".into()),
            FoldPlace::Auto if misfit => (FoldPlace::Client, text),
            FoldPlace::Storage | FoldPlace::Osd => (FoldPlace::Storage, "asked for".into()),
            FoldPlace::Auto => (FoldPlace::Storage, "the nodes move less than a plain read would".into()),
        };
        Ok(Plan {
            place,
            why,
            bytes: 0..file.length,
            client_bytes,
            extra_work: ExtraWork {
                pulled_bytes,
                messages: sum(|share| share.pulls),
                ..ExtraWork::default()
            },
            answer_bytes: Some(states),
            estimated: false,
            several_passes: work.kernel.spec().passes == Passes::Several,
            shares,
        })
    }

    /// Bytes of the request on a target.
    pub fn bytes_on_target(&self, layout: &Layout, target: u32) -> u64 {
        match self.shares.get(target as usize) {
            Some(share) => share.bytes,
            None => layout.bytes_on(target, self.bytes.clone()),
        }
    }

    /// Bytes that the request is expected to move if it runs on storage.
    pub fn storage_bytes(&self) -> u64 {
        self.extra_work.pulled_bytes.saturating_add(self.answer_bytes.unwrap_or(0))
    }
}

fn misfit_text(kernel: &str, file: &FileMap, record: &RecordRule, moved: u64, read: u64) -> String {
    let records = match record {
        RecordRule::Fixed(size) => format!("records of {size} bytes"),
        RecordRule::Lines => "lines".to_owned(),
    };
    let pieces = if file.segments || file.has_components() {
        "pieces".into()
    } else {
        format!("stripes of {} bytes", file.unit)
    };
    format!(
        "'{kernel}' over {records} in {pieces} on {} targets would move about {moved} bytes from and between storage \
         nodes, more than the {read} bytes of a plain read",
        file.targets.len()
    )
}

fn better_unit(file: &FileMap, record: &RecordRule) -> String {
    let size = match record {
        RecordRule::Fixed(size) => *size,
        RecordRule::Lines => 1,
    };
    match fit_unit(file.unit.max(1 << 20), size) {
        Ok(unit) if size > 1 => format!(" with --record {size} (a stripe unit of {unit} bytes, for example)"),
        _ => " with larger stripes (--stripe 1MiB)".to_owned(),
    }
}
