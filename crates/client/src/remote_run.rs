//! Running a kernel over a file of a cluster.

use std::io;
use std::time::{Duration, Instant};

use gristmill_kernel::{DEFAULT_MAX_RECORD, Output, Passes, RowBatch};
use gristmill_peers::{AT_CLIENT, Decision, Files, ON_STORAGE, Patience, Plan, Question};
use gristmill_runtime::{
    Checkpoint, Control, Options, Outcome, Request, RowOutput, RunError, resume, run, run_on,
};
use gristmill_wire::Place;

use crate::own_rates::FoldedHere;
use crate::remote_keep::given_up;
use crate::{ClientError, Cluster};

/// Bytes that are read at once where a plain read over the network is folded: a question and its answer are worth
/// more than that.
const REMOTE_BLOCK: usize = 1 << 20;

/// How often somebody who waits for a busy node looks whether the request was given up.
const LOOK: Duration = Duration::from_millis(50);

/// Waits, and gives up as soon as the request is.
fn pause(wait: Duration, control: &Control) -> Result<(), RunError> {
    let until = Instant::now() + wait;
    loop {
        if control.stopped() {
            return Err(given_up());
        }
        match until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => return Ok(()),
            left => std::thread::sleep(left.min(LOOK)),
        }
    }
}

/// Tells whether any rows were given.
struct Counted<'a> {
    rows: &'a mut dyn RowOutput,
    any: bool,
}

impl RowOutput for Counted<'_> {
    fn rows(&mut self, batch: &RowBatch) -> io::Result<()> {
        self.any = true;
        self.rows.rows(batch)
    }
}

/// A kernel over an opened file, planned.
#[derive(Clone, Debug)]
pub struct Planned {
    /// What is asked.
    pub question: Question,
    /// Of which files.
    pub files: Files,
    /// Where it is to run, and what either place moves.
    pub plan: Plan,
    /// Nodes may hand their parts back to this process.
    pub movable: bool,
    /// What was decided from the load of the nodes, where something was.
    pub decision: Option<Decision>,
    /// What is asked, in the words of whoever asks: a checkpoint goes on only with the same.
    pub identity: String,
}

impl Cluster {
    /// Opens a file and plans a request over it.
    ///
    /// # Errors
    /// What is wrong with the request or the file; for [`Place::Storage`] also records and stripes that fit so
    /// badly that the nodes would move more than a plain read.
    pub fn plan(
        &self,
        path: &str,
        question: Question,
        place: Place,
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
    /// As [`plan`](Cluster::plan).
    pub fn plan_files(
        &self,
        files: Files,
        question: Question,
        place: Place,
        options: &Options,
    ) -> Result<Planned, ClientError> {
        let spec = question.bind().map_err(RunError::from)?.spec();
        question.check_files(&files)?;
        let layout = files.layout(&self.peers)?;
        let mut plan = Plan::make(&question, files.map(), &layout, place)?;
        let mut movable = place == Place::Auto && plan.place == Place::Storage;
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
        if decision.as_ref().is_some_and(Decision::all_here) {
            (plan.place, movable) = (Place::Client, false);
            plan.why = "the nodes have more to do than this process".into();
        }
        Ok(Planned { question, files, plan, movable, decision, identity: String::new() })
    }

    /// Runs what was planned. Rows go to `rows` in order while it runs. What a busy node refused before it was begun
    /// is asked for again when the node said, a few times ([`ASKED_AGAIN`](gristmill_peers::ASKED_AGAIN)), unless
    /// `control` is stopped meanwhile.
    ///
    /// # Errors
    /// The error is whatever went wrong first with the request, its data, a node or `rows`. It also fails if a node
    /// stays busy, and if `control` is stopped while nodes fold or are waited for.
    pub fn run(
        &self,
        planned: &Planned,
        options: Options,
        rows: &mut dyn RowOutput,
        control: &Control,
    ) -> Result<Outcome, RunError> {
        let spec = planned.question.bind()?.spec();
        // Parts of a value are asked for again one by one. Of all else, nodes wait for each other's parts.
        let by_parts = spec.output == Output::Value && spec.passes == Passes::One;
        let mut patience = Patience::default();
        loop {
            let mut counted = Counted { rows: &mut *rows, any: false };
            let error = match self.run_once(planned, options.clone(), by_parts, &mut counted, control) {
                Err(error) if !by_parts && !counted.any => error,
                ended => return ended.map_err(|error| self.explain(planned.files.first(), error)),
            };
            match patience.wait_for(&error) {
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
        let outcome = self.run_where_planned(planned, options, by_parts, rows, control)?;
        if let Outcome::Done(answer) = &outcome {
            let (bytes, time) = answer.report.folded_here;
            let received = self.peers.received().now().since(before);
            let folded = FoldedHere { bytes, seconds: time.as_secs_f64(), received };
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
        let Planned { question, files, plan, movable, decision, .. } = planned;
        if plan.place == Place::Client {
            run(self.at_client(planned, options)?, rows, control)
        } else {
            let max_record = if options.max_record == 0 { DEFAULT_MAX_RECORD } else { options.max_record };
            let request = question.request(&self.peers, files, ON_STORAGE, options.clone());
            let crew = question.crew(&self.peers, files, max_record, None);
            let crew = crew.map(|crew| crew.with_statistics(options.statistics)).map(|crew| match movable {
                true => {
                    let own = Options { block_bytes: REMOTE_BLOCK, max_record, ..options.clone() };
                    let here = decision.as_ref().map(Decision::here).unwrap_or_default();
                    let why = "its node has more to do than this process".to_owned();
                    let rate = self.rates.asking(&question.kernel, options.lanes).taken_in();
                    let asker = self.peers.asker(options.lanes, rate);
                    crew.taking_over(asker, own).folding_here(here, why)
                }
                false => crew,
            });
            let crew = crew.map(|crew| if by_parts { crew.patient() } else { crew });
            request.and_then(|request| run_on(request, &crew?, rows, control))
        }
    }

    /// What was planned, to be folded at the client.
    fn at_client(&self, planned: &Planned, options: Options) -> Result<Request, RunError> {
        let options = Options { block_bytes: REMOTE_BLOCK, ..options };
        let request = planned.question.request(&self.peers, &planned.files, AT_CLIENT, options)?;
        Ok(Request { identity: planned.identity.clone(), ..request })
    }

    /// Goes on with a request that stopped at a checkpoint; it is finished at the client.
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
