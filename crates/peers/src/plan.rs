//! What a request would move at either place, before it runs.

use gristmill_kernel::{Output, Record, RecordRule};
use gristmill_layout::{FixedRecords, fit_unit, traffic};
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_wire::{FileMap, Place};

use crate::Question;

/// Bytes that cross the network at either place, as far as the layout tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Where the request is to run.
    pub place: Place,
    /// Why, in one sentence.
    pub why: String,
    /// Bytes that the selection has, which a plain read moves to the client.
    pub client_bytes: u64,
    /// Bytes that storage nodes would pull from each other.
    pub pulled_bytes: u64,
    /// Messages that this takes.
    pub pull_messages: u64,
    /// Bytes of partial results, or, for kernels that give rows, `None`: that depends on the data.
    pub answer_bytes: Option<u64>,
    /// Whether the figures were scaled up from a part of the file.
    pub estimated: bool,
}

impl Plan {
    /// Plans a question over a file.
    ///
    /// # Errors
    /// What the kernel or the layout refuse, and, where `wanted` is [`Place::Storage`], records that fit the stripes
    /// so badly that nodes would move more between them than a plain read moves.
    pub fn make(question: &Question, file: &FileMap, wanted: Place) -> Result<Plan, RunError> {
        let spec = question.bind()?.spec();
        let (input, _) = question.input.input()?;
        let layout = file.layout()?;
        let skip = question.input.skip.min(file.length);
        let (start, length) = question.range.unwrap_or((skip, None));
        let end = length.map_or(file.length, |length| start.saturating_add(length)).min(file.length);
        let bytes = start.clamp(skip, file.length)..end.max(start.clamp(skip, file.length));
        let (mut pulled, mut messages, mut estimated) = (0, 0, false);
        let client_bytes = match spec.record {
            Record::Index(_) => 0,
            _ => bytes.end - bytes.start,
        };
        if let RecordRule::Fixed(size) = input.record {
            let (records, _) = FixedRecords::fitting(skip, size, file.length)?;
            let cost = traffic(&layout, &records, records.starting_in(bytes), spec.halo);
            (pulled, messages, estimated) = (cost.moved_bytes, cost.messages, cost.estimated);
        }
        let nodes = crate::shards(file).len() as u64;
        let answer_bytes = (spec.output == Output::Value).then_some(nodes * spec.state_hint);
        let plan = |place, why: String| Plan {
            place,
            why,
            client_bytes,
            pulled_bytes: pulled,
            pull_messages: messages,
            answer_bytes,
            estimated,
        };
        let misfit = pulled > client_bytes;
        match wanted {
            Place::Client => Ok(plan(Place::Client, "asked for".into())),
            Place::Auto if misfit => {
                Ok(plan(Place::Client, misfit_text(file, &input.record, pulled, client_bytes)))
            }
            Place::Storage if misfit => Err(RunError::Remote {
                kind: ErrorKind::Usage,
                message: format!(
                    "{}; use --place client or auto, or put the file again{}",
                    misfit_text(file, &input.record, pulled, client_bytes),
                    better_unit(file, &input.record)
                ),
            }),
            Place::Storage => Ok(plan(Place::Storage, "asked for".into())),
            Place::Auto => Ok(plan(Place::Storage, "the nodes move less than a plain read would".into())),
        }
    }

    /// Bytes that the request is expected to move to the client where it runs on storage.
    pub fn storage_bytes(&self) -> u64 {
        self.pulled_bytes.saturating_add(self.answer_bytes.unwrap_or(0))
    }
}

fn misfit_text(file: &FileMap, record: &RecordRule, pulled: u64, read: u64) -> String {
    let size = match record {
        RecordRule::Fixed(size) => *size,
        RecordRule::Lines => 0,
    };
    format!(
        "records of {size} bytes in stripes of {} bytes on {} targets would move {pulled} bytes between storage nodes, \
         more than the {read} bytes of a plain read",
        file.unit,
        file.targets.len()
    )
}

fn better_unit(file: &FileMap, record: &RecordRule) -> String {
    let RecordRule::Fixed(size) = record else { return String::new() };
    match fit_unit(file.unit.max(1 << 20), *size) {
        Ok(unit) => format!(" with --record {size} (a stripe unit of {unit} bytes, for example)"),
        Err(_) => String::new(),
    }
}
