//! What nodes hand back, folded by whoever asked over plain reads.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use gristmill_kernel::Output;
use gristmill_layout::Layout;
use gristmill_runtime::{
    Control, EventOutput, FileParts, HandBack, Here, Options, PassOrder, Request, Revision, RowsEnd,
    RunError, Selection, Shard, ShardEnd, ShardJob, Tally, UnitEvent, UnitSource,
};

use crate::answers::given_up;
use crate::read_ahead::ReadAhead;
use crate::{AT_CLIENT, Question, StorageCrew};

/// Units that are folded ahead of what is taken.
const EVENTS_AHEAD: usize = 4;

/// How whoever asks folds what is handed back, and what it came to.
pub(crate) struct TakesOver {
    options: Options,
    begun: Instant,
    here: Mutex<Here>,
}

impl TakesOver {
    pub fn new(options: Options, targets: usize) -> TakesOver {
        let here = Here { tally: Tally::new(targets), revisions: Vec::new() };
        TakesOver { options, begun: Instant::now(), here: Mutex::new(here) }
    }

    pub fn here(&self) -> Here {
        self.here.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, tally: &Tally) {
        self.here.lock().unwrap_or_else(PoisonError::into_inner).tally.add(tally);
    }

    /// Notes why something is folded here, once for all passes.
    pub fn revised(&self, hand_back: &HandBack) {
        let mut here = self.here.lock().unwrap_or_else(PoisonError::into_inner);
        if here.revisions.iter().any(|one| one.targets == hand_back.targets && one.why == hand_back.why) {
            return;
        }
        let (targets, why) = (hand_back.targets.clone(), hand_back.why.clone());
        let revision = Revision { targets, after: self.begun.elapsed(), why };
        here.revisions.push(revision);
    }
}

/// The parts of one file, each read ahead. Several files that are read as one stay as they are.
fn ahead(mut file: FileParts) -> FileParts {
    if let Layout::Striped(striped) = &file.layout {
        for (target, part) in (0..).zip(&mut file.parts) {
            let length = striped.object_len(target, file.length);
            *part = Arc::new(ReadAhead::of(part.clone(), length));
        }
    }
    file
}

impl StorageCrew {
    /// The records of these targets, to be folded here.
    fn shard_here(
        &self,
        takes: &TakesOver,
        order: &PassOrder<'_>,
        targets: Vec<u32>,
    ) -> Result<ShardJob, RunError> {
        let known = self.files.map().targets.len();
        if targets.iter().any(|target| *target as usize >= known) {
            let why = "a node handed back targets that the file has not".into();
            return Err(RunError::BadPartial { why });
        }
        let question = Question::of_fold(&self.request, &mut |_| Ok(()))?;
        let (kernel, (input, byte_order)) = (question.bind()?, question.input.input()?);
        let mut file = self.files.parts(&self.peers, AT_CLIENT)?;
        if kernel.spec().output != Output::Value {
            file = ahead(file);
        }
        let input = input.for_kernel(&kernel.spec());
        let selection = Selection { skip: question.input.skip, range: None };
        let options = takes.options.clone();
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

    /// Folds what a shard's end lacks because it was handed back. Gives the two parts, to be joined.
    pub(crate) fn finish_here(
        &self,
        takes: &TakesOver,
        order: &PassOrder<'_>,
        mut end: ShardEnd,
    ) -> Result<[ShardEnd; 2], RunError> {
        let handed_back = std::mem::take(&mut end.handed_back);
        let targets = handed_back.iter().flat_map(|hand_back| hand_back.targets.iter().copied()).collect();
        let (job, partial) = self.shard_here(takes, order, targets)?.after(end.partial)?;
        end.partial = partial;
        let mut own = job.values(order.control)?;
        // One that had just folded everything when it was told to stop left nothing.
        if own.tally.read.iter().chain(&own.tally.records).any(|n| *n > 0) {
            handed_back.iter().for_each(|hand_back| takes.revised(hand_back));
        }
        takes.note(&std::mem::take(&mut own.tally));
        Ok([end, own])
    }

    /// Folds the rows that are left.
    pub(crate) fn rows_here<'o>(
        &'o self,
        takes: &'o TakesOver,
        order: &'o PassOrder<'_>,
        hand_back: HandBack,
    ) -> Result<UnitsHere<'o>, RunError> {
        takes.revised(&hand_back);
        let job = self.shard_here(takes, order, hand_back.targets)?.from(hand_back.left);
        let control = Arc::new(Control::new());
        let (sender, events) = sync_channel(EVENTS_AHEAD);
        let folding = control.clone();
        let fold = move || {
            let last = match job.rows(&mut EventOutput(&sender), &folding) {
                Ok(RowsEnd { tally, .. }) => UnitEvent::Finished(tally),
                Err(error) => UnitEvent::Failed(error),
            };
            // Nobody listens once enough is known.
            let _ = sender.send(last);
        };
        std::thread::Builder::new().name("handed back".into()).spawn(fold).map_err(RunError::Lane)?;
        Ok(UnitsHere { events, takes, control, asked: order.control, told: 0 })
    }
}

/// Units that are folded here. Dropped, it ends their folds.
pub(crate) struct UnitsHere<'o> {
    events: Receiver<UnitEvent>,
    takes: &'o TakesOver,
    control: Arc<Control>,
    /// Of the request.
    asked: &'o Control,
    told: u64,
}

impl Drop for UnitsHere<'_> {
    fn drop(&mut self) {
        self.control.stop();
    }
}

impl UnitSource for UnitsHere<'_> {
    fn next(&mut self) -> Result<UnitEvent, RunError> {
        if self.asked.stopped() {
            return Err(given_up());
        }
        let event = self.events.recv().map_err(|_| RunError::Panicked)?;
        let done = self.control.progress().0;
        self.asked.folded(done.saturating_sub(self.told));
        self.told = done;
        Ok(match event {
            UnitEvent::Finished(tally) => {
                self.takes.note(&tally);
                UnitEvent::Finished(Tally::default())
            }
            other => other,
        })
    }
}
