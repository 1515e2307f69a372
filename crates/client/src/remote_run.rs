//! Running a kernel over a file of a cluster.

use gristmill_kernel::DEFAULT_MAX_RECORD;
use gristmill_peers::{AT_CLIENT, Decision, ON_STORAGE, Plan, Question};
use gristmill_runtime::{Checkpoint, Control, Options, Outcome, RowOutput, RunError, resume, run, run_on};
use gristmill_wire::Place;
use gristmill_wire::action::Opened;

use crate::{ClientError, Cluster};

/// Bytes that are read at once where a plain read over the network is folded: a question and its answer are worth
/// more than that.
const REMOTE_BLOCK: usize = 1 << 20;

/// A kernel over an opened file, planned.
#[derive(Clone, Debug)]
pub struct Planned {
    /// What is asked.
    pub question: Question,
    /// Of which file.
    pub opened: Opened,
    /// Where it is to run, and what either place moves.
    pub plan: Plan,
    /// Nodes may hand their parts back to this process.
    pub movable: bool,
    /// What was decided from the load of the nodes, where something was.
    pub decision: Option<Decision>,
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
        let spec = question.bind().map_err(RunError::from)?.spec();
        let opened = self.open(path)?;
        let file = &opened.info.file;
        let layout = self.peers.layout(file, &opened.grant.as_str().into())?;
        let mut plan = Plan::make(&question, file, &layout, place)?;
        let mut movable = place == Place::Auto && plan.place == Place::Storage;
        let decision = match movable {
            true => self.peers.decide(&spec, &plan, &opened, &layout, options.lanes),
            false => None,
        };
        if decision.as_ref().is_some_and(Decision::all_here) {
            (plan.place, movable) = (Place::Client, false);
            plan.why = "the nodes have more to do than this process".into();
        }
        Ok(Planned { question, opened, plan, movable, decision })
    }

    /// Runs what was planned. Rows go to `rows` in order while it runs.
    pub fn run(
        &self,
        planned: &Planned,
        options: Options,
        rows: &mut dyn RowOutput,
        control: &Control,
    ) -> Result<Outcome, RunError> {
        let Planned { question, opened, plan, movable, decision } = planned;
        let outcome = if plan.place == Place::Client {
            let options = Options { block_bytes: REMOTE_BLOCK, ..options };
            question.request(&self.peers, opened, AT_CLIENT, options).and_then(|r| run(r, rows, control))
        } else {
            let max_record = if options.max_record == 0 { DEFAULT_MAX_RECORD } else { options.max_record };
            let request = question.request(&self.peers, opened, ON_STORAGE, options.clone());
            let crew = question.crew(&self.peers, opened, max_record, None).map(|crew| match movable {
                true => {
                    let own = Options { block_bytes: REMOTE_BLOCK, max_record, ..options.clone() };
                    let here = decision.as_ref().map(Decision::here).unwrap_or_default();
                    let why = "its node has more to do than this process".to_owned();
                    crew.taking_over(self.peers.asker(options.lanes), own).folding_here(here, why)
                }
                false => crew,
            });
            request.and_then(|request| run_on(request, &crew?, rows, control))
        };
        outcome.map_err(|error| self.explain(opened, error))
    }

    /// Goes on with a request that stopped at a checkpoint; it is finished at the client.
    pub fn resume(
        &self,
        planned: &Planned,
        identity: String,
        checkpoint: Checkpoint,
        options: Options,
        rows: &mut dyn RowOutput,
        control: &Control,
    ) -> Result<Outcome, RunError> {
        let options = Options { block_bytes: REMOTE_BLOCK, ..options };
        let mut request = planned.question.request(&self.peers, &planned.opened, AT_CLIENT, options)?;
        request.identity = identity;
        resume(request, checkpoint, rows, control).map_err(|error| self.explain(&planned.opened, error))
    }
}
