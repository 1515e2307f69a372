//! Runs a request to its answer: passes, checkpoints, the report.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use gristmill_kernel::{ByteOrder, Ctx, DType, Input, Kernel, KernelError, Next, Passes, Value};

use gristmill_object_fold::{Binding, FoldPolicy};

use crate::crew::{Crew, PassOrder, crew_pass};
use crate::options::MAX_ROUNDS;
use crate::pass::run_pass;
use crate::prepare::{Prepared, prepare};
use crate::selection::Selection;
use crate::{
    Checkpoint, Chunks, Control, FileParts, Options, Partial, Report, RowOutput, RunError, Statistics, Tally,
};

/// A request: a kernel, a file, and the selected part of the file.
#[derive(Clone)]
pub struct Request {
    /// The kernel with its parameters bound.
    pub kernel: Arc<dyn Kernel>,
    /// The type and the rule of the records.
    pub input: Input,
    /// Byte order of the elements in the file.
    pub byte_order: ByteOrder,
    /// The file.
    pub file: FileParts,
    /// The selected part of the file.
    pub selection: Selection,
    /// The chunks, if the records are chunks of an array.
    pub chunks: Option<Chunks>,
    /// The store of summaries of chunks, if there is one.
    pub statistics: Option<Arc<dyn Statistics>>,
    /// A second file that is read record by record together with the first.
    pub second: Option<SecondFile>,
    /// Small inputs. Every fold gets all of their bytes.
    pub side: Vec<Arc<[u8]>>,
    /// Tuning of the request.
    pub options: Options,
    /// The kernel as storage daemons are told to run it, if they may. `None` for kernels that are not built in.
    pub binding: Option<Binding>,
    /// Whether the storage of the parts folds.
    pub fold_policy: FoldPolicy,
    /// Any text that differs between different requests (parameters, types, ranges). A checkpoint resumes only a request with
    /// the same text.
    pub identity: String,
}

/// The second input of a kernel that reads two files side by side: record i of one file with record i of the other.
#[derive(Clone)]
pub struct SecondFile {
    /// The file.
    pub file: FileParts,
    /// Bytes before its first record.
    pub skip: u64,
    /// Type of its elements, if they are made little-endian.
    pub element: Option<DType>,
    /// Byte order of its elements.
    pub byte_order: ByteOrder,
}

impl Request {
    /// A request over a whole file, with default options.
    pub fn new(kernel: Arc<dyn Kernel>, input: Input, file: FileParts) -> Request {
        Request {
            kernel,
            input,
            byte_order: ByteOrder::Little,
            file,
            selection: Selection::default(),
            chunks: None,
            statistics: None,
            second: None,
            side: Vec::new(),
            options: Options::default(),
            binding: None,
            fold_policy: FoldPolicy::Auto,
            identity: String::new(),
        }
    }
}

/// The end of a request.
#[derive(Debug)]
pub enum Outcome {
    /// The request has its answer.
    Done(Answer),
    /// The request was stopped. [`resume`] goes on from the checkpoint.
    Stopped(Checkpoint),
}

/// The answer of a request.
#[derive(Debug)]
pub struct Answer {
    /// The result.
    pub value: Value,
    /// Where and how the result was computed.
    pub report: Report,
}

/// Runs a request. Rows go to `rows` in order while it runs.
///
/// # Errors
/// Returns the first error. Rows that were delivered before it are right, but there may be more.
pub fn run(request: Request, rows: &mut dyn RowOutput, control: &Control) -> Result<Outcome, RunError> {
    let job = prepare(request.clone(), None, false, false)?;
    let ctx = Ctx { side: job.side.clone(), ..Ctx::first(job.domain.select.clone()) };
    passes(request, job, ctx, Partial::empty(0), None, None, rows, control)
}

/// Runs a request whose folds `crew` runs. The passes of the kernel, the joining of partials and the order of rows are
/// as in [`run`].
///
/// # Errors
/// It fails as [`run`] does, and if the crew fails.
pub fn run_on(
    request: Request,
    crew: &dyn Crew,
    rows: &mut dyn RowOutput,
    control: &Control,
) -> Result<Outcome, RunError> {
    let job = prepare(request.clone(), None, false, crew.keeps())?;
    let ctx = Ctx { side: job.side.clone(), ..Ctx::first(job.domain.select.clone()) };
    passes(request, job, ctx, Partial::empty(0), None, Some(crew), rows, control)
}

/// Goes on with an interrupted request. The file must not have changed.
///
/// # Errors
/// The error is [`RunError::OtherRequest`] if the checkpoint is of another request, and [`RunError::ChangedSince`] if
/// the file has changed. It also fails as [`run`] does.
pub fn resume(
    request: Request,
    checkpoint: Checkpoint,
    rows: &mut dyn RowOutput,
    control: &Control,
) -> Result<Outcome, RunError> {
    let job = prepare(request.clone(), None, checkpoint.last, false)?;
    let ctx = Ctx {
        round: checkpoint.partial.round,
        shared: checkpoint.shared.into(),
        last: checkpoint.last,
        extent: job.domain.select.clone(),
        side: job.side.clone(),
    };
    if checkpoint.kernel != job.spec.name
        || checkpoint.extent != ctx.extent
        || checkpoint.identity != job.identity
    {
        return Err(RunError::OtherRequest { kernel: checkpoint.kernel });
    }
    if checkpoint.versions != versions(&job) {
        return Err(RunError::ChangedSince { name: job.file.name.clone() });
    }
    passes(request, job, ctx, checkpoint.partial, checkpoint.delivered, None, rows, control)
}

/// Versions of all inputs: the parts of both files, and the side inputs.
fn versions(job: &Prepared) -> Vec<u64> {
    let mut versions: Vec<u64> = job.file.parts.iter().map(|part| part.version()).collect();
    if let Some(second) = &job.second {
        versions.push(second.records.header());
        versions.extend(second.file.parts.iter().map(|part| part.version()));
    }
    versions.extend(job.side.iter().map(|side| fnv1a(side)));
    versions
}

/// The FNV-1a hash, which is the same on all machines.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[expect(clippy::too_many_arguments, reason = "the beginning of a request, or of its resumption")]
fn passes(
    request: Request,
    mut job: Prepared,
    mut ctx: Ctx,
    mut partial: Partial,
    mut delivered: Option<gristmill_kernel::Position>,
    crew: Option<&dyn Crew>,
    rows: &mut dyn RowOutput,
    control: &Control,
) -> Result<Outcome, RunError> {
    let begun = Instant::now();
    let mut tally = Tally::new(job.file.parts.len());
    let first = ctx.round;
    let several = job.spec.passes == Passes::Several && !ctx.last;
    let keeps = crew.is_some_and(Crew::keeps);
    let mut group_end = match crew.filter(|_| several) {
        Some(crew) => crew.finish_as_group(&PassOrder { kernel: &job.kernel, ctx: &ctx, control })?,
        None => None,
    };
    for _ in 0..MAX_ROUNDS {
        let whole = if let Some(end) = group_end.take() {
            tally.add(&end.tally);
            (ctx.round, ctx.shared) = (end.round, end.shared);
            end.whole
        } else {
            let end = match crew {
                None => run_pass(&job, &ctx, std::mem::take(&mut partial), delivered, rows, control)?,
                Some(crew) => crew_pass(&job, &ctx, crew, rows, control)?,
            };
            tally.add(&end.tally);
            delivered = end.delivered;
            check_unchanged(&job)?;
            if control.stopped() && !is_complete(&end.partial, &ctx.extent)? {
                return Ok(Outcome::Stopped(Checkpoint {
                    kernel: job.spec.name.to_owned(),
                    extent: ctx.extent.clone(),
                    identity: job.identity.clone(),
                    versions: versions(&job),
                    shared: ctx.shared.to_vec(),
                    last: ctx.last,
                    partial: end.partial,
                    delivered,
                }));
            }
            end.partial.whole(&*job.kernel, &ctx)?
        };
        match job.kernel.advance(&ctx, &whole)? {
            Next::Done(value) => {
                let report = Report::new(
                    &job,
                    &tally,
                    crew.map(Crew::client_share).unwrap_or_default(),
                    ctx.round - first + 1,
                    begun.elapsed(),
                );
                return Ok(Outcome::Done(Answer { value, report }));
            }
            Next::Last(_) | Next::Again(_) if ctx.last => {
                let why = "it asked for one more pass after its last".into();
                return Err(KernelError::Contract { kernel: job.spec.name, why }.into());
            }
            Next::Last(_) | Next::Again(_) if delivered.is_some() || keeps && !several => {
                let why = "it gave rows before its last pass; only the last pass may give rows".into();
                return Err(KernelError::Contract { kernel: job.spec.name, why }.into());
            }
            Next::Again(shared) => {
                ctx = ctx.next(shared);
                partial = Partial::empty(ctx.round);
            }
            Next::Last(shared) => {
                ctx = ctx.last(shared);
                partial = Partial::empty(ctx.round);
                // The last pass gives rows.
                job = prepare(request.clone(), Some(ctx.extent.clone()), true, keeps)?;
            }
        }
    }
    Err(RunError::TooManyRounds { kernel: job.spec.name, max: MAX_ROUNDS })
}

/// Checks that no part of the files was changed.
pub(crate) fn check_unchanged(job: &Prepared) -> Result<(), RunError> {
    let second = job.second.as_ref().map(|second| &second.file);
    let mut parts = [Some(&job.file), second].into_iter().flatten().flat_map(|file| &file.parts);
    parts.try_for_each(|part| part.unchanged())
}

/// Whether a partial has all records that the request needs.
pub(crate) fn is_complete(partial: &Partial, extent: &Range<u64>) -> Result<bool, RunError> {
    let end = partial.enough_at.map_or(extent.end, |enough| enough.min(extent.end));
    Ok(partial.covered()?.gaps(extent.start..end).is_empty())
}
