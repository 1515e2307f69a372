//! Checks a request before it runs.

use std::ops::Range;
use std::sync::Arc;

use gristmill_kernel::{
    ByteOrder, Ctx, DType, Fold, Input, Kernel, KernelError, Lines, MAX_SIDE_BYTES, Next, Order, Output,
    Passes, Record, RecordRule, Spec,
};
use gristmill_layout::FixedRecords;
use gristmill_object_fold::{Binding, FoldPolicy};

use crate::chunks::{NumberedKernel, OwnedChunks};
use crate::lines::LineStarts;
use crate::options::MAX_BLOCK_BYTES;
use crate::selection::Domain;
use crate::units::Ownership;
use crate::{FileParts, Options, Request, RunError, SecondFile, Statistics, storage_folds};

/// A request that was checked and resolved.
pub(crate) struct Prepared {
    pub kernel: Arc<dyn Kernel>,
    pub spec: Spec,
    pub collapses: bool,
    pub input: Input,
    pub byte_order: ByteOrder,
    pub file: FileParts,
    pub second: Option<PreparedSecond>,
    pub domain: Domain,
    /// The chunks, if the records are chunks.
    pub chunks: Option<OwnedChunks>,
    /// The store of summaries of the chunks.
    pub statistics: Option<Arc<dyn Statistics>>,
    pub ownership: Option<Ownership>,
    /// Whether units are cut at line ends and their lines are pulled whole.
    pub whole_lines: bool,
    pub line_starts: LineStarts,
    pub side: Vec<Arc<[u8]>>,
    pub options: Options,
    /// The kernel as the storage of parts folds it, if it may.
    pub in_storage: Option<Binding>,
    pub fold_policy: FoldPolicy,
    pub identity: String,
}

pub(crate) struct PreparedSecond {
    pub file: FileParts,
    pub records: FixedRecords,
    pub element: Option<DType>,
    pub byte_order: ByteOrder,
}

impl Prepared {
    /// Whether folds give rows or bytes, and not only a value.
    pub fn gives_rows(&self) -> bool {
        self.spec.output != Output::Value
    }
}

/// A kernel that gives only its value here, without its rows or bytes. A kernel of several passes runs this way in all passes
/// but the last. A kernel whose bytes are kept where they are made runs this way too.
pub(crate) struct ValueOnly(pub Arc<dyn Kernel>);

/// Whether the bytes of such a kernel can be kept by the node that makes them. Partials are merged in any order, so a merge
/// gives no bytes, and the bytes of each extent are exactly those that its fold gave.
pub fn keeps_bytes(spec: &Spec) -> bool {
    spec.output == Output::Bytes && spec.order == Order::Any && spec.record != Record::Line
}

impl Kernel for ValueOnly {
    fn spec(&self) -> Spec {
        Spec { output: Output::Value, ..self.0.spec() }
    }
    fn begin(&self, ctx: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        self.0.begin(ctx)
    }
    fn restore(&self, ctx: &Ctx, state: &[u8]) -> Result<Box<dyn Fold>, KernelError> {
        self.0.restore(ctx, state)
    }
    fn advance(&self, ctx: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        self.0.advance(ctx, whole)
    }
}

/// Checks a request. `select`: the records, if they are known, so that no bytes are read to find them. `last`: whether the
/// pass is the last of several. `keeps`: whether the bytes that the kernel gives are kept where they are made.
pub(crate) fn prepare(
    request: Request,
    select: Option<Range<u64>>,
    last: bool,
    keeps: bool,
) -> Result<Prepared, RunError> {
    let Request {
        kernel,
        input,
        byte_order,
        file,
        selection,
        chunks,
        statistics,
        second,
        side,
        options,
        binding,
        fold_policy,
        identity,
    } = request;
    let statistics = statistics.filter(|_| options.statistics);
    options.check()?;
    let spec = kernel.spec();
    if keeps {
        check_keeps(&spec)?;
    }
    let value_only = keeps || spec.passes == Passes::Several && !last && spec.output != Output::Value;
    let kernel = if value_only { Arc::new(ValueOnly(kernel)) } else { kernel };
    let spec = kernel.spec();
    let chunks = chunks.map(|chunks| OwnedChunks::new(chunks, &file)).transpose()?;
    check_input(&spec, &input, chunks.as_ref())?;
    let (kernel, domain) = match &chunks {
        None => (kernel, selection.resolve(&file, &input, &spec, options.max_record, select)?),
        Some(owned) => {
            let kernel = Arc::new(NumberedKernel::new(kernel, &owned.chunks)) as Arc<dyn Kernel>;
            (kernel, Domain::of_chunks(owned.chunks.len(), select)?)
        }
    };
    // Rows leave in order, so the owner of a line pulls its end. A value needs no such traffic, because
    // fragments of lines travel in the partial.
    let whole_lines = spec.record == Record::Line && spec.output != Output::Value;
    let kernel = if spec.record == Record::Line && !whole_lines {
        Arc::new(Lines::new(kernel, options.max_record))
    } else {
        kernel
    };
    let spec = kernel.spec();
    let ownership = match &domain.records {
        None => None,
        Some(records) => {
            let bytes = records.size().saturating_mul(spec.halo.saturating_mul(2).saturating_add(1));
            let bytes = bytes.max(spec.second.unwrap_or(0));
            if bytes > MAX_BLOCK_BYTES {
                return Err(RunError::RecordTooLong { bytes, max: MAX_BLOCK_BYTES });
            }
            file.layout.check_records(records)?;
            Some(Ownership::new(records, spec.grain)?)
        }
    };
    if let Some(side) = side.iter().find(|side| side.len() > MAX_SIDE_BYTES) {
        let why = format!("a side input has {} bytes; the limit is {MAX_SIDE_BYTES} bytes", side.len());
        return Err(RunError::SecondInput { kernel: spec.name, why });
    }
    let second = prepare_second(&spec, second, domain.records.as_ref())?;
    let collapses = crate::rope::collapses(&*kernel);
    let mut job = Prepared {
        kernel,
        spec,
        collapses,
        input,
        byte_order,
        file,
        second,
        domain,
        chunks,
        statistics,
        ownership,
        whole_lines,
        line_starts: LineStarts::default(),
        side,
        options,
        in_storage: None,
        fold_policy,
        identity,
    };
    job.in_storage = storage_folds::allowed(binding, &job, last)?;
    Ok(job)
}

/// Checks that the bytes of a kernel can be kept where they are made.
pub(crate) fn check_keeps(spec: &Spec) -> Result<(), RunError> {
    if keeps_bytes(spec) { Ok(()) } else { Err(RunError::CannotKeep { kernel: spec.name }) }
}

/// Checks that the kernel was bound to such records.
fn check_input(spec: &Spec, input: &Input, chunks: Option<&OwnedChunks>) -> Result<(), RunError> {
    if let Some(chunks) = chunks {
        // Chunks are given one by one, in any order.
        if spec.record == Record::Fixed(chunks.bytes) && spec.order == Order::Any && spec.halo == 0 {
            return Ok(());
        }
        let why = "it does not take the chunks of this array one by one; bind it to the array".into();
        return Err(KernelError::Contract { kernel: spec.name, why }.into());
    }
    let fits = match (spec.record, input.record) {
        (Record::Fixed(kernel), RecordRule::Fixed(file)) => kernel == file,
        // A kernel over bytes splits lines itself.
        (Record::Line | Record::Fixed(1), RecordRule::Lines) | (Record::Index(_), _) => true,
        _ => false,
    };
    if fits {
        return Ok(());
    }
    let why = format!(
        "its records are {:?} and the records of the request are {:?}; bind it to the input of the request",
        spec.record, input.record
    );
    Err(KernelError::Contract { kernel: spec.name, why }.into())
}

fn prepare_second(
    spec: &Spec,
    second: Option<SecondFile>,
    records: Option<&FixedRecords>,
) -> Result<Option<PreparedSecond>, RunError> {
    let refuse = |why: String| Err(RunError::SecondInput { kernel: spec.name, why });
    match (spec.second, second, records) {
        (None, None, _) => Ok(None),
        (None, Some(_), _) => refuse("it reads one file, and two were given; leave the second out".into()),
        (Some(_), None, _) => refuse("it reads two files side by side; name the second file".into()),
        (Some(_), _, None) => {
            refuse("it has no records that can be read side by side with a second file".into())
        }
        (Some(size), Some(file), Some(first)) => {
            let records = FixedRecords::from_file_len(file.skip, size, file.file.length)?;
            if records.count() != first.count() {
                return refuse(format!(
                    "the first file has {} records and the second has {}; give files with the same number of records",
                    first.count(),
                    records.count()
                ));
            }
            let SecondFile { file, element, byte_order, .. } = file;
            Ok(Some(PreparedSecond { file, records, element, byte_order }))
        }
    }
}
