//! Runs of kernels over files of a cluster.

use std::io;
use std::time::{Duration, Instant};

use gristmill_kernel::{DEFAULT_MAX_RECORD, Output, Passes, RowBatch};
use gristmill_peers::{AT_CLIENT, Decision, Files, ON_STORAGE, Plan, Question, RetryBudget};
use gristmill_runtime::{
    Checkpoint, Control, Options, Outcome, Request, RowOutput, RunError, Shortage, resume, run, run_on,
};
use gristmill_wire::FoldPlace;

use crate::own_rates::ClientFold;
use crate::{ClientError, Cluster};

/// Bytes that are read at once if the client folds a plain read over the network. Smaller reads would spend much of
/// their time on requests.
const REMOTE_BLOCK: usize = 1 << 20;

/// Time between two checks whether the request was stopped, while the client waits for a busy node.
const LOOK: Duration = Duration::from_millis(50);

/// Waits, and fails as soon as the request is stopped.
fn pause(wait: Duration, control: &Control) -> Result<(), RunError> {
    let until = Instant::now() + wait;
    loop {
        if control.stopped() {
            return Err(RunError::given_up());
        }
        match until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => return Ok(()),
            left => std::thread::sleep(left.min(LOOK)),
        }
    }
}

/// An output of rows that notes whether there were any.
struct RowWatch<'a> {
    rows: &'a mut dyn RowOutput,
    any: bool,
}

impl RowOutput for RowWatch<'_> {
    fn rows(&mut self, batch: &RowBatch) -> io::Result<()> {
        self.any = true;
        self.rows.rows(batch)
    }
}

/// A planned request over opened files.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The request.
    pub question: Question,
    /// The opened files.
    pub files: Files,
    /// The placement, and the bytes that each placement moves.
    pub plan: Plan,
    /// The place that was asked for.
    pub wanted: FoldPlace,
    /// Whether nodes may hand their parts back to this process.
    pub movable: bool,
    /// The decision from the load of the nodes, if there was one.
    pub decision: Option<Decision>,
    /// Text of the request. A checkpoint can be resumed only by a request with the same text.
    pub identity: String,
}

/// The nodes that were short of processors when the request began, and folded a part of it.
fn shortages(planned: &Planned) -> Vec<Shortage> {
    let nodes = planned.decision.iter().flat_map(|decision| &decision.nodes);
    let short = nodes.filter(|node| !node.at_client);
    short.filter_map(|node| Some(Shortage { node: node.node.clone(), others: node.shortage()? })).collect()
}

impl Cluster {
    /// Opens a file and plans a request over it.
    ///
    /// # Errors
    /// Returns an error if the request is invalid or the file cannot be opened; for [`FoldPlace::Storage`] also if records
    /// fit stripes so badly that the nodes would move more than a plain read.
    pub fn plan(
        &self,
        path: &str,
        question: Question,
        place: FoldPlace,
        options: &Options,
    ) -> Result<Planned, ClientError> {
        question.bind().map_err(RunError::from)?;
        let opened = self.open(path)?;
        let files = Files::from(&opened);
        self.plan_files(files, question, place, options)
    }

    /// Plans a request over opened files; see [`plan`](Cluster::plan).
    ///
    /// # Errors
    /// It fails as [`plan`](Cluster::plan) does.
    pub fn plan_files(
        &self,
        files: Files,
        question: Question,
        place: FoldPlace,
        options: &Options,
    ) -> Result<Planned, ClientError> {
        let spec = question.bind().map_err(RunError::from)?.spec();
        question.check_files(&files)?;
        let layout = files.layout(&self.peers)?;
        let mut plan = Plan::make(&question, files.map(), &layout, place)?;
        let mut movable = place == FoldPlace::Auto && plan.place == FoldPlace::Storage;
        let decision = match movable {
            true => self.peers.decide(
                (&question.kernel, &spec),
                &plan,
                &files,
                &layout,
                &self.rates.asking(&question.kernel, options.lanes),
            ),
            false => None,
        };
        if decision.as_ref().is_some_and(Decision::all_at_client) {
            (plan.place, movable) = (FoldPlace::Client, false);
            plan.why = "the nodes have more to do than this process".into();
        }
        Ok(Planned { question, files, plan, wanted: place, movable, decision, identity: String::new() })
    }

    /// Runs a planned request. Rows go to `rows` in order while it runs. If a busy node refuses before anything was
    /// done, the request is repeated after the time that the node named, a few times
    /// ([`MAX_BUSY_RETRIES`](gristmill_peers::MAX_BUSY_RETRIES)), unless `control` is stopped meanwhile.
    ///
    /// # Errors
    /// Returns the first error of the request, its data, a node or `rows`. It also fails if a node stays busy, and if
    /// `control` is stopped while nodes fold or while it waits for them.
    pub fn run(
        &self,
        planned: &Planned,
        options: Options,
        rows: &mut dyn RowOutput,
        control: &Control,
    ) -> Result<Outcome, RunError> {
        let spec = planned.question.bind()?.spec();
        // Parts of a value are repeated one by one. For all other answers nodes wait for each other's parts.
        let by_parts = spec.output == Output::Value && spec.passes == Passes::One;
        let mut budget = RetryBudget::default();
        loop {
            let mut watch = RowWatch { rows: &mut *rows, any: false };
            let error = match self.run_once(planned, options.clone(), by_parts, &mut watch, control) {
                Err(error) if !by_parts && !watch.any => error,
                ended => return ended.map_err(|error| self.explain(planned.files.first(), error)),
            };
            match budget.wait_for(&error) {
                Some(wait) => pause(wait, control)?,
                None => return Err(self.explain(planned.files.first(), error)),
            }
        }
    }

    fn run_once(
        &self,
        planned: &Planned,
        options: Options,
        by_parts: bool,
        rows: &mut dyn RowOutput,
        control: &Control,
    ) -> Result<Outcome, RunError> {
        let before = self.peers.received().now();
        let mut outcome = self.run_where_planned(planned, options, by_parts, rows, control)?;
        if let Outcome::Done(answer) = &mut outcome {
            answer.report.shortages = shortages(planned);
            let (bytes, time) = answer.report.folded_locally;
            let received = self.peers.received().now().since(before);
            let folded = ClientFold { bytes, seconds: time.as_secs_f64(), received };
            self.rates.learn(&planned.question.kernel, folded);
        }
        Ok(outcome)
    }

    fn run_where_planned(
        &self,
        planned: &Planned,
        options: Options,
        by_parts: bool,
        rows: &mut dyn RowOutput,
        control: &Control,
    ) -> Result<Outcome, RunError> {
        let Planned { question, files, plan, wanted, movable, decision, .. } = planned;
        if plan.place == FoldPlace::Client {
            run(self.at_client(planned, options)?, rows, control)
        } else {
            let max_record = if options.max_record == 0 { DEFAULT_MAX_RECORD } else { options.max_record };
            let request = question.request(&self.peers, files, ON_STORAGE, options.clone());
            let crew = question.crew(&self.peers, files, max_record, None);
            let crew = crew.map(|crew| crew.with_statistics(options.statistics).with_place(*wanted));
            let crew = crew.map(|crew| match movable {
                true => {
                    let own = Options { block_bytes: REMOTE_BLOCK, max_record, ..options.clone() };
                    let here = decision.as_ref().map(Decision::client_targets).unwrap_or_default();
                    let why = "its node has more to do than this process".to_owned();
                    let rate = self.rates.asking(&question.kernel, options.lanes).rate_with_receiving();
                    let asker = self.peers.asker(options.lanes, rate);
                    crew.accepting_hand_backs(asker, own).folding_at_client(here, why)
                }
                false => crew,
            });
            let crew = crew.map(|crew| if by_parts { crew.with_busy_retries() } else { crew });
            request.and_then(|request| run_on(request, &crew?, rows, control))
        }
    }

    /// Returns the planned request for a fold at the client.
    fn at_client(&self, planned: &Planned, options: Options) -> Result<Request, RunError> {
        let options = Options { block_bytes: REMOTE_BLOCK, ..options };
        let request = planned.question.request(&self.peers, &planned.files, AT_CLIENT, options)?;
        Ok(Request { identity: planned.identity.clone(), ..request })
    }

    /// Resumes a request that stopped at a checkpoint. The client finishes it.
    ///
    /// # Errors
    /// It fails as [`gristmill_runtime::resume`] does, and if the nodes cannot be read.
    pub fn resume(
        &self,
        planned: &Planned,
        checkpoint: Checkpoint,
        options: Options,
        rows: &mut dyn RowOutput,
        control: &Control,
    ) -> Result<Outcome, RunError> {
        resume(self.at_client(planned, options)?, checkpoint, rows, control)
            .map_err(|error| self.explain(planned.files.first(), error))
    }
}
