//! What a request would move at either place, before it runs.

use std::ops::Range;

use gristmill_kernel::{Kernel, Order, Output, Passes, Record, RecordRule};
use gristmill_layout::{FixedRecords, Layout, fit_unit, traffic};
use gristmill_runtime::{ErrorKind, RunError, Share};
use gristmill_wire::{FileMap, Place};

use crate::{ExtraWork, Question};

/// Bytes that a piece of a partial takes beside its state.
const PIECE_BYTES: u64 = 40;

/// Bytes that a run of records takes in the set of those that a partial covers.
const RUN_BYTES: u64 = 32;

/// Bytes that a placement on storage may move beyond a plain read.
const SMALL: u64 = 64 << 10;

/// Bytes that cross the network at either place, as far as the layout tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Where the request is to run.
    pub place: Place,
    /// Why, in one sentence.
    pub why: String,
    /// Bytes of the file in which the wanted records begin.
    pub bytes: Range<u64>,
    /// Bytes that the selection has, which a plain read moves to the client.
    pub client_bytes: u64,
    /// Work of all storage nodes in addition to folding: pulled bytes and their messages.
    pub extra_work: ExtraWork,
    /// Bytes of partial results, or, for kernels that give rows, `None`: that depends on the data.
    pub answer_bytes: Option<u64>,
    /// Whether the figures were scaled up from a part of the file.
    pub estimated: bool,
    /// Whether the kernel takes several passes, each of which would move so much.
    pub several: bool,
    /// What each target has of the chunks of an array, in the order of the layout; empty for other records.
    pub shares: Vec<Share>,
}

impl Plan {
    /// Plans a question over a file that lies so.
    ///
    /// # Errors
    /// What the kernel or the layout refuse, and, where `wanted` is [`Place::Storage`], records that fit the stripes
    /// so badly that nodes would move more between them than a plain read moves.
    pub fn make(
        question: &Question,
        file: &FileMap,
        layout: &Layout,
        wanted: Place,
    ) -> Result<Plan, RunError> {
        let spec = question.bind()?.spec();
        if question.array.is_some() {
            return Plan::of_chunks(question, file, layout, wanted);
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
        // Runs of stripes, each a piece of its own until what lies between is known.
        let stripes = match layout {
            Layout::Striped(_) => client_bytes.div_ceil(file.unit.max(1)).max(1),
            Layout::Segments(segments) => segments.pieces().max(1) as u64,
        };
        let unit = if file.segments { client_bytes.div_ceil(stripes) } else { file.unit };
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
        // Where records lie across stripes, what a node covers is written down run by run.
        let cut = matches!(input.record, RecordRule::Fixed(size) if nodes > 1 && (file.segments || !file.unit.is_multiple_of(size)));
        let runs = if cut { stripes.saturating_mul(RUN_BYTES) } else { 0 };
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
            several: spec.passes == Passes::Several,
            shares: Vec::new(),
        };
        let moved = extra_work.pulled_bytes.saturating_add(answer_bytes.unwrap_or(0));
        let misfit = moved > client_bytes.saturating_add(SMALL);
        match wanted {
            Place::Client => Ok(plan(Place::Client, "asked for".into())),
            Place::Auto if misfit => {
                Ok(plan(Place::Client, misfit_text(spec.name, file, &input.record, moved, client_bytes)))
            }
            Place::Storage if misfit => Err(RunError::Remote {
                kind: ErrorKind::Usage,
                message: format!(
                    "{}; use --place client or auto, or put the file again{}",
                    misfit_text(spec.name, file, &input.record, moved, client_bytes),
                    better_unit(file, &input.record)
                ),
            }),
            Place::Storage => Ok(plan(Place::Storage, "asked for".into())),
            Place::Auto => Ok(plan(Place::Storage, "the nodes move less than a plain read would".into())),
        }
    }

    /// Plans a request over the chunks of an array.
    fn of_chunks(
        question: &Question,
        file: &FileMap,
        layout: &Layout,
        wanted: Place,
    ) -> Result<Plan, RunError> {
        let none = || RunError::BadPartial { why: "it has no chunks".into() };
        let work = question.array.as_ref().ok_or_else(none)?;
        let shares = work.chunks.shares(layout, file.length)?;
        let sum = |of: fn(&Share) -> u64| shares.iter().map(of).fold(0, u64::saturating_add);
        let (client_bytes, pulled_bytes) = (sum(|share| share.bytes), sum(|share| share.pulled));
        let owners = shares.iter().filter(|share| share.chunks > 0).count() as u64;
        let states = owners.saturating_mul(work.kernel.memory().state_bytes.saturating_add(PIECE_BYTES));
        let moved = pulled_bytes.saturating_add(states);
        let misfit = moved > client_bytes.saturating_add(SMALL);
        let text = format!(
            "'{}' over chunks in stripes of {} bytes would move about {moved} bytes from and between storage nodes, more \
             than the {client_bytes} bytes of a plain read",
            question.kernel, file.unit
        );
        let (place, why) = match wanted {
            Place::Client => (Place::Client, "asked for".into()),
            Place::Auto if misfit => (Place::Client, text),
            Place::Storage => (Place::Storage, "asked for".into()),
            Place::Auto => (Place::Storage, "the nodes move less than a plain read would".into()),
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
            several: work.kernel.spec().passes == Passes::Several,
            shares,
        })
    }

    /// Bytes that a target has of what is asked.
    pub fn on_target(&self, layout: &Layout, target: u32) -> u64 {
        match self.shares.get(target as usize) {
            Some(share) => share.bytes,
            None => layout.bytes_on(target, self.bytes.clone()),
        }
    }

    /// Bytes that the request is expected to move to the client where it runs on storage.
    pub fn storage_bytes(&self) -> u64 {
        self.extra_work.pulled_bytes.saturating_add(self.answer_bytes.unwrap_or(0))
    }
}

fn misfit_text(kernel: &str, file: &FileMap, record: &RecordRule, moved: u64, read: u64) -> String {
    let records = match record {
        RecordRule::Fixed(size) => format!("records of {size} bytes"),
        RecordRule::Lines => "lines".to_owned(),
    };
    let pieces = if file.segments { "pieces".into() } else { format!("stripes of {} bytes", file.unit) };
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
