//! Running a kernel over a file of a cluster.

use gristmill_kernel::DEFAULT_MAX_RECORD;
use gristmill_peers::{AT_CLIENT, ON_STORAGE, Plan, Question};
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
}

impl Cluster {
    /// Opens a file and plans a request over it.
    ///
    /// # Errors
    /// What is wrong with the request or the file; for [`Place::Storage`] also records and stripes that fit so
    /// badly that the nodes would move more than a plain read.
    pub fn plan(&self, path: &str, question: Question, place: Place) -> Result<Planned, ClientError> {
        question.bind().map_err(RunError::from)?;
        let opened = self.open(path)?;
        let file = &opened.info.file;
        let layout = self.peers.layout(file, &opened.grant.as_str().into())?;
        let plan = Plan::make(&question, file, &layout, place)?;
        Ok(Planned { question, opened, plan })
    }

    /// Runs what was planned. Rows go to `rows` in order while it runs.
    pub fn run(
        &self,
        planned: &Planned,
        options: Options,
        rows: &mut dyn RowOutput,
        control: &Control,
    ) -> Result<Outcome, RunError> {
        let Planned { question, opened, plan } = planned;
        let outcome = if plan.place == Place::Client {
            let options = Options { block_bytes: REMOTE_BLOCK, ..options };
            question.request(&self.peers, opened, AT_CLIENT, options).and_then(|r| run(r, rows, control))
        } else {
            let max_record = if options.max_record == 0 { DEFAULT_MAX_RECORD } else { options.max_record };
            let request = question.request(&self.peers, opened, ON_STORAGE, options);
            let crew = question.crew(&self.peers, opened, max_record, None);
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
