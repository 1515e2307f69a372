//! A kernel over a file by path, coordinated by this node for clients without knowledge of layouts.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use gristmill_kernel::{Output, RowBatch, RowShape};
use gristmill_peers::{Files, ON_STORAGE, Plan, Question};
use gristmill_runtime::{Control, ErrorKind, Outcome, Report, RowOutput, RunError, run_on};
use gristmill_wire::action::Open;
use gristmill_wire::{FoldPlace, RunRequest};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::answer::{row_batch, row_schema, value_batch};
use crate::error::{Answer, Refusal};
use crate::frames::stalled;
use crate::limits::ROWS_STALL;
use crate::requester::Requester;
use crate::shared::Shared;

/// Sender of record batches.
pub(crate) type Batches = mpsc::Sender<Result<RecordBatch, Refusal>>;

/// A request by path, checked and ready to run.
pub(crate) struct Run {
    shared: Arc<Shared>,
    question: Question,
    files: Files,
    shape: Option<RowShape>,
    place: FoldPlace,
    pub control: Arc<Control>,
}

impl Run {
    /// Checks a request. Blocks: it reads the namespace.
    pub fn new(shared: &Arc<Shared>, requester: Requester<'_>, request: &RunRequest) -> Answer<Run> {
        if request.place == FoldPlace::Client {
            let text =
                "place client means that the client reads and folds itself; ask a node for storage or auto";
            return Err(Refusal::new(ErrorKind::Usage, text));
        }
        let question = Question {
            kernel: request.kernel.clone(),
            params: request.params(),
            input: request.input(),
            range: request.range,
            array: None,
        };
        let spec = question.bind().map_err(RunError::from)?.spec();
        let opened = shared.open(requester, &Open::new(&*request.path))?;
        // The fold always stays on storage: this node must not read the bytes itself.
        let files = Files::from(&opened);
        let layout = files.layout(&shared.peers)?;
        Plan::make(&question, files.map(), &layout, FoldPlace::Storage)?;
        let shape = match spec.output {
            Output::Rows(shape) => Some(shape),
            Output::Value => None,
            Output::Bytes => {
                let text =
                    "gives bytes, which have no columns; use the command gristmill or the Python module";
                return Err(Refusal::new(ErrorKind::Usage, format!("kernel '{}' {text}", spec.name)));
            }
        };
        let control = Arc::new(Control::new());
        Ok(Run { shared: shared.clone(), question, files, shape, place: request.place, control })
    }

    /// Schema of the rows. `None` for a value, whose columns are known only with the value.
    pub fn schema(&self) -> Option<SchemaRef> {
        self.shape.as_ref().map(row_schema)
    }

    /// Runs the request. Batches go to `out` and, after rows, the report to `done`. Blocks.
    pub fn run(&self, out: &Batches, done: oneshot::Sender<String>) {
        if let Err(refusal) = self.answer(out, done) {
            // Sending fails if the client is gone.
            let _ = out.blocking_send(Err(refusal));
        }
    }

    fn answer(&self, out: &Batches, done: oneshot::Sender<String>) -> Answer<()> {
        let options = self.shared.options(gristmill_kernel::DEFAULT_MAX_RECORD, &self.question.kernel);
        let max_record = options.max_record;
        let request = self.question.request(&self.shared.peers, &self.files, ON_STORAGE, options)?;
        let crew = self.question.crew(&self.shared.peers, &self.files, max_record, None)?;
        let crew = crew.with_place(self.place);
        let schema = self.shape.as_ref().map(row_schema);
        let runtime = self.shared.peers.runtime();
        let mut rows = ArrowRows { out, shape: self.shape.as_ref().zip(schema), runtime };
        let Outcome::Done(answer) = run_on(request, &crew, &mut rows, &self.control)? else {
            return Err(Refusal::new(ErrorKind::Failed, "the request was given up"));
        };
        let metadata = report(&answer.report);
        if rows.shape.is_some() {
            // The schema was sent before, so the report follows the rows. Sending fails if the client is gone.
            let _ = done.send(metadata);
            return Ok(());
        }
        let batch = value_batch(&answer.value).map_err(arrow_refusal)?;
        let schema = arrow_schema::Schema::new_with_metadata(
            batch.schema().fields().clone(),
            std::collections::HashMap::from([("gristmill.report".to_owned(), metadata)]),
        );
        let batch = batch.with_schema(Arc::new(schema)).map_err(arrow_refusal)?;
        let _ = out.blocking_send(Ok(batch));
        Ok(())
    }
}

fn arrow_refusal(error: ArrowError) -> Refusal {
    Refusal::new(ErrorKind::Failed, error.to_string())
}

/// Report of a request, as JSON.
fn report(report: &Report) -> String {
    json!({
        "elapsed_seconds": report.elapsed.as_secs_f64(),
        "rounds": report.rounds,
        "bytes_read": report.bytes_read,
        "bytes_moved": report.bytes_moved,
    })
    .to_string()
}

struct ArrowRows<'a> {
    out: &'a Batches,
    shape: Option<(&'a RowShape, SchemaRef)>,
    runtime: &'a Handle,
}

impl RowOutput for ArrowRows<'_> {
    fn rows(&mut self, batch: &RowBatch) -> std::io::Result<()> {
        let Some((shape, schema)) = &self.shape else { return Ok(()) };
        let batch = row_batch(schema, shape, batch).map_err(std::io::Error::other)?;
        let sending = async { tokio::time::timeout(ROWS_STALL, self.out.send(Ok(batch))).await };
        let sent = self.runtime.block_on(sending).map_err(|_| std::io::Error::other(stalled()))?;
        sent.map_err(|_| std::io::Error::from(std::io::ErrorKind::BrokenPipe))
    }
}
