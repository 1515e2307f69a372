//! Folds by the client of the parts that nodes hand back, over plain reads.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use gristmill_kernel::Output;
use gristmill_layout::Layout;
use gristmill_runtime::{
    ClientShare, Control, EventOutput, FileParts, HandBack, Options, Part, PassOrder, Request, Revision,
    RowsEnd, RunError, Selection, Shard, ShardEnd, ShardJob, Tally, UnitEvent, UnitSource,
};

use crate::read_ahead::ReadAhead;
use crate::{AT_CLIENT, Question, StorageCrew};

/// Most events of folded units that wait to be taken.
const EVENTS_AHEAD: usize = 4;

/// The options of the folds at the client, and the part of the request that these folded.
pub(crate) struct ClientFolds {
    options: Options,
    begun: Instant,
    share: Mutex<ClientShare>,
}

impl ClientFolds {
    pub fn new(options: Options, targets: usize) -> ClientFolds {
        let share = ClientShare { tally: Tally::new(targets), revisions: Vec::new() };
        ClientFolds { options, begun: Instant::now(), share: Mutex::new(share) }
    }

    /// Lanes of the request.
    pub fn lanes(&self) -> usize {
        self.options.lanes
    }

    pub fn share(&self) -> ClientShare {
        self.share.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add_cost(&self, tally: &Tally) {
        self.share.lock().unwrap_or_else(PoisonError::into_inner).tally.add(tally);
    }

    /// Notes why the client folds a part, once for all passes.
    pub fn note_revision(&self, hand_back: &HandBack) {
        let mut share = self.share.lock().unwrap_or_else(PoisonError::into_inner);
        if share.revisions.iter().any(|one| one.targets == hand_back.targets && one.why == hand_back.why) {
            return;
        }
        let (targets, why) = (hand_back.targets.clone(), hand_back.why.clone());
        let revision = Revision { targets, after: self.begun.elapsed(), why };
        share.revisions.push(revision);
    }
}

/// Adds read-ahead to the parts of a striped file, and of one that lies in place. Other files stay as they are.
fn with_read_ahead(mut file: FileParts) -> FileParts {
    let length = |target| match &file.layout {
        layout if layout.is_in_place() => Some(file.length),
        Layout::Striped(striped) => Some(striped.object_len(target, file.length)),
        Layout::Segments(_) => None,
    };
    let parts = (0..).zip(&file.parts).map(|(target, part)| match length(target) {
        Some(length) => Arc::new(ReadAhead::new(part.clone(), length)) as Arc<dyn Part>,
        None => part.clone(),
    });
    file.parts = parts.collect();
    file
}

impl StorageCrew {
    /// The job that folds the records of these targets at the client with so many lanes.
    fn client_shard(
        &self,
        folds: &ClientFolds,
        order: &PassOrder<'_>,
        targets: Vec<u32>,
        lanes: usize,
    ) -> Result<ShardJob, RunError> {
        let known = self.files.map().targets.len();
        if targets.iter().any(|target| *target as usize >= known) {
            let why = "a node handed back targets that the file does not have".into();
            return Err(RunError::BadPartial { why });
        }
        let question = Question::from_fold(&self.request, &mut |_| Ok(()))?;
        let (kernel, (input, byte_order)) = (question.bind()?, question.input.input()?);
        let mut file = self.files.parts(&self.peers, AT_CLIENT)?;
        if kernel.spec().output != Output::Value {
            file = with_read_ahead(file);
        }
        let input = input.for_kernel(&kernel.spec());
        let selection = Selection { skip: question.input.skip, range: None };
        let options = Options { lanes, ..folds.options.clone() };
        let chunks = question.array.as_ref().map(|work| work.chunks.clone());
        let request = Request { byte_order, selection, options, chunks, ..Request::new(kernel, input, file) };
        let ctx = order.ctx;
        let shard = Shard {
            targets,
            round: ctx.round,
            shared: ctx.shared.clone(),
            last: ctx.last,
            keep: false,
            select: ctx.extent.clone(),
        };
        ShardJob::new(request, shard)
    }

    /// Folds the records that a member handed back, with so many lanes, until `control` is stopped. Returns the
    /// member's end and the client's end, to be joined.
    pub(crate) fn finish_at_client(
        &self,
        folds: &ClientFolds,
        order: &PassOrder<'_>,
        mut end: ShardEnd,
        lanes: usize,
        control: &Control,
    ) -> Result<[ShardEnd; 2], RunError> {
        let handed_back = std::mem::take(&mut end.handed_back);
        let targets = handed_back.iter().flat_map(|hand_back| hand_back.targets.iter().copied()).collect();
        let (job, partial) = self.client_shard(folds, order, targets, lanes)?.resume_value(end.partial)?;
        end.partial = partial;
        let mut own = job.values(control)?;
        // A node that had folded everything when it stopped left no records.
        if own.tally.read.iter().chain(&own.tally.records).any(|n| *n > 0) {
            handed_back.iter().for_each(|hand_back| folds.note_revision(hand_back));
        }
        folds.add_cost(&std::mem::take(&mut own.tally));
        Ok([end, own])
    }

    /// Folds the rows that a member handed back.
    pub(crate) fn client_rows<'o>(
        &'o self,
        folds: &'o ClientFolds,
        order: &'o PassOrder<'_>,
        hand_back: HandBack,
    ) -> Result<ClientUnits<'o>, RunError> {
        folds.note_revision(&hand_back);
        let job =
            self.client_shard(folds, order, hand_back.targets, folds.lanes())?.resume_rows(hand_back.row_cut);
        let control = Arc::new(Control::new());
        let (sender, events) = sync_channel(EVENTS_AHEAD);
        let folding = control.clone();
        let fold = move || {
            let last = match job.rows(&mut EventOutput(&sender), &folding) {
                Ok(RowsEnd { tally, .. }) => UnitEvent::Finished(tally),
                Err(error) => UnitEvent::Failed(error),
            };
            // The receiver is gone once the request needs no more rows.
            let _ = sender.send(last);
        };
        std::thread::Builder::new().name("handed back".into()).spawn(fold).map_err(RunError::Lane)?;
        Ok(ClientUnits { events, folds, control, request_control: order.control, reported: 0 })
    }
}

/// Units that the client folds. A drop stops the folds.
pub(crate) struct ClientUnits<'o> {
    events: Receiver<UnitEvent>,
    folds: &'o ClientFolds,
    /// The control of the folds at the client.
    control: Arc<Control>,
    request_control: &'o Control,
    reported: u64,
}

impl Drop for ClientUnits<'_> {
    fn drop(&mut self) {
        self.control.stop();
    }
}

impl UnitSource for ClientUnits<'_> {
    fn next(&mut self) -> Result<UnitEvent, RunError> {
        if self.request_control.stopped() {
            return Err(RunError::given_up());
        }
        let ended =
            RunError::Internal { what: "the events of a fold at the client ended before its last unit" };
        let event = self.events.recv().map_err(|_| ended)?;
        let done = self.control.progress().0;
        self.request_control.folded(done.saturating_sub(self.reported));
        self.reported = done;
        Ok(match event {
            UnitEvent::Finished(tally) => {
                self.folds.add_cost(&tally);
                UnitEvent::Finished(Tally::default())
            }
            other => other,
        })
    }
}
