//! The report of a request.

use std::time::Duration;

use gristmill_kernel::RecordRule;

use crate::prepare::Prepared;
use crate::{ClientShare, Tally};

/// A report about where and how an answer was computed.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Wall-clock time from the first read to the answer.
    pub elapsed: Duration,
    /// Passes over the records.
    pub rounds: u32,
    /// Threads that folded.
    pub lanes: usize,
    /// Bytes that folds got, in all passes, as they lie in the parts. Other bytes that are read because they lie between
    /// these are not counted.
    pub bytes_read: u64,
    /// Chunks of an array that were answered from their statistics, unread, in all passes.
    pub chunks_settled: u64,
    /// Bytes among these that storage daemons folded, behind the storage nodes.
    pub bytes_folded_in_storage: u64,
    /// Bytes that one target pulled from another.
    pub bytes_moved: u64,
    /// Messages between targets that this took.
    pub messages: u64,
    /// Bytes that came over a network to the client: answers of storage nodes, or all bytes that were read.
    pub bytes_to_client: u64,
    /// Bytes that a plain read over a network would have moved in addition; 0 if there is no network.
    pub bytes_not_moved: u64,
    /// Bytes that lanes of this process folded, in all passes, and the processor time that they used for it.
    pub folded_locally: (u64, Duration),
    /// One entry for each target, and one more for a target of which a part was folded somewhere else.
    pub places: Vec<PlaceReport>,
    /// Decisions that changed while the request ran.
    pub revisions: Vec<RevisionReport>,
    /// Nodes of which other work than folds used most of the processors in the seconds before the request began. Known only
    /// if the nodes were asked for their load.
    pub shortages: Vec<Shortage>,
}

/// A node that was short of processors.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortage {
    /// The node.
    pub node: String,
    /// Share of its processors that other work than folds used, 0 to 1.
    pub others: f64,
}

/// A changed decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionReport {
    /// The targets whose records have been folded somewhere else since then.
    pub nodes: Vec<String>,
    /// The new place: `client`.
    pub place: &'static str,
    /// Time since the request began.
    pub after: Duration,
    /// The reason, in one sentence.
    pub why: String,
}

/// The work that was done at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceReport {
    /// `storage` or `client`.
    pub place: &'static str,
    /// The target.
    pub node: String,
    /// Records folded there in one pass; `None` for lines, which are not counted.
    pub records: Option<u64>,
    /// Bytes read there in all passes.
    pub bytes: u64,
    /// The reason why the folds ran there.
    pub why: String,
}

impl Report {
    /// The report of a request after `rounds` passes. `client_share` is the part that the client folded instead of the place
    /// of the job.
    pub(crate) fn new(
        job: &Prepared,
        tally: &Tally,
        client_share: ClientShare,
        rounds: u32,
        elapsed: Duration,
    ) -> Report {
        let lines = job.input.record == RecordRule::Lines;
        let passes = u64::from(rounds.max(1));
        let node =
            |target: usize| job.file.parts.get(target).map_or_else(String::new, |part| part.describe());
        let places =
            |tally: &Tally, place: &'static str, why: &dyn Fn(usize) -> String| -> Vec<PlaceReport> {
                let each = tally.read.iter().zip(&tally.records).enumerate();
                let entry = |(target, (bytes, records)): (usize, (&u64, &u64))| PlaceReport {
                    place,
                    node: node(target),
                    records: (!lines).then_some(records / passes),
                    bytes: *bytes,
                    why: why(target),
                };
                each.map(entry).collect()
            };
        let mut all = places(tally, job.file.place.place, &|_| job.file.place.why.to_owned());
        let revised = |target: usize| {
            let concerns =
                |revision: &&crate::Revision| revision.targets.iter().any(|t| *t as usize == target);
            client_share
                .revisions
                .iter()
                .rfind(concerns)
                .map_or_else(String::new, |revision| revision.why.clone())
        };
        let moved = places(&client_share.tally, "client", &revised);
        all.extend(moved.into_iter().filter(|place| place.bytes > 0 || place.records.is_some_and(|n| n > 0)));
        let revision = |revision: &crate::Revision| RevisionReport {
            nodes: revision.targets.iter().map(|target| node(*target as usize)).collect(),
            place: "client",
            after: revision.after,
            why: revision.why.clone(),
        };
        let read_by_client: u64 = client_share.tally.read.iter().sum();
        let bytes_read = tally.read.iter().sum::<u64>().saturating_add(read_by_client);
        let bytes_to_client =
            if job.file.place.remote { bytes_read } else { tally.sent.saturating_add(read_by_client) };
        let across = bytes_to_client > 0;
        // Nodes fold with their own lanes.
        let on_nodes = across && !job.file.place.remote;
        Report {
            elapsed,
            rounds,
            lanes: job.options.lanes,
            bytes_read,
            chunks_settled: tally.settled.saturating_add(client_share.tally.settled),
            bytes_folded_in_storage: tally.in_storage,
            bytes_moved: tally.moved,
            messages: tally.messages.saturating_add(client_share.tally.messages),
            bytes_to_client,
            bytes_not_moved: if across { bytes_read.saturating_sub(bytes_to_client) } else { 0 },
            folded_locally: (
                if on_nodes { read_by_client } else { bytes_read },
                tally.lanes.saturating_add(client_share.tally.lanes),
            ),
            places: all,
            revisions: client_share.revisions.iter().map(revision).collect(),
            shortages: Vec::new(),
        }
    }
}
