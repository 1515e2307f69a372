//! Trials with the real runtime: distributed over stores, folded by several lanes, interrupted and resumed.

use std::sync::Arc;

use fastrand::Rng;
use gristmill_kernel::{ByteOrder, KernelError, Position, Record, RecordRule, RowBatch};
use gristmill_layout::{Layout, SegmentTable, Segments, Striped};
use gristmill_runtime::{
    Checkpoint, Control, Discard, FileParts, Options, Outcome, Part, Placement, Request, RunError,
    SecondFile, Selection, StorePart, resume, run as run_request, run_on,
};
use gristmill_store::{CreateOptions, MemoryStore, ObjectId, ObjectStore, StoreError, WriteOptions};

use crate::answer::Answer;
use crate::case::Case;
use crate::crew::MemoryCrew;
use crate::laws::MAX_LINE;

/// Most interruptions of one request.
const MAX_STOPS: u32 = 6;

/// Runs a case with a random setup. Returns the description of the setup, and the answer.
pub(crate) fn run_in_process(case: &Case, rng: &mut Rng) -> (String, Answer) {
    let (mut setup, request) = match random_request(case, rng) {
        Ok(made) => made,
        Err(error) => {
            return (
                "the request is set up".into(),
                Answer { value: Err(contract_error(case, &error)), rows: vec![] },
            );
        }
    };
    let mut rows = RowBatch::default();
    let value = match run_interrupted(case, rng, &request, &mut rows, &mut setup) {
        Ok(value) => Ok(value),
        Err(RunError::Kernel(error)) => Err(error),
        Err(error) => Err(contract_error(case, &error)),
    };
    (setup, Answer { value, rows: answer_rows(case, &rows) })
}

/// Runs a case with a random setup and a crew that folds the targets. Returns the description of the setup, and the
/// answer.
pub(crate) fn run_by_crew(case: &Case, rng: &mut Rng) -> (String, Answer) {
    let (mut setup, request) = match random_request(case, rng) {
        Ok(made) => made,
        Err(error) => {
            return (
                "the request is set up".into(),
                Answer { value: Err(contract_error(case, &error)), rows: vec![] },
            );
        }
    };
    let crew = MemoryCrew::new(&request, rng);
    setup.push_str(&format!(", {crew}"));
    let mut rows = RowBatch::default();
    let value = match run_on(request.clone(), &crew, &mut rows, &Control::new()) {
        Ok(Outcome::Done(answer)) => match crew.kept() {
            None => Ok(answer.value),
            Some(Ok(bytes)) => {
                rows.push(Position::of_record(0), &bytes);
                Ok(answer.value)
            }
            Some(Err(error)) => Err(contract_error(case, &error)),
        },
        Ok(Outcome::Stopped(_)) => Err(stopped_error(case)),
        Err(error) => {
            // The error must have the same text as in one process.
            let alone = run_request(request, &mut Discard, &Control::new());
            match (alone, error) {
                (Err(alone), error) if alone.to_string() != error.to_string() => {
                    setup.push_str(&format!(
                        ", and the error of a crew is \"{error}\" while the one of one process is \"{alone}\""
                    ));
                    Err(contract_error(case, &error))
                }
                (_, RunError::Kernel(error)) => Err(error),
                (_, error) => Err(contract_error(case, &error)),
            }
        }
    };
    (setup, Answer { value, rows: answer_rows(case, &rows) })
}

fn answer_rows(case: &Case, rows: &RowBatch) -> Vec<(Position, Vec<u8>)> {
    let rows = rows.iter().map(|(at, row)| (at, row.to_vec())).collect();
    crate::fold_trial::join_bytes(&case.kernel.spec(), rows)
}

fn contract_error(case: &Case, error: &RunError) -> KernelError {
    KernelError::Contract { kernel: case.kernel.spec().name, why: error.to_string() }
}

fn stopped_error(case: &Case) -> KernelError {
    let why = "a request stopped without a call to stop it".into();
    KernelError::Contract { kernel: case.kernel.spec().name, why }
}

fn random_request(case: &Case, rng: &mut Rng) -> Result<(String, Request), RunError> {
    let (bytes, selection, byte_order) = file_bytes(case, rng);
    let layout = random_layout(rng, bytes.len() as u64)?;
    let second_layout = random_layout(rng, case.data.len() as u64)?;
    let options = Options {
        lanes: rng.usize(1..4),
        block_bytes: rng.usize(1..100),
        unit_bytes: rng.u64(1..300),
        row_bytes: rng.usize(1..300),
        rows_ahead: rng.usize(1..5000),
        max_record: MAX_LINE,
        statistics: rng.bool(),
    };
    let setup = describe(&layout, &options, &selection, byte_order);
    let mut request = Request::new(case.kernel.clone(), case.input, memory_file(&bytes, layout)?);
    request.selection = selection;
    request.byte_order = byte_order;
    request.side = case.side.clone();
    request.options = options;
    if let Some(second) = &case.second {
        let file = memory_file(second, second_layout)?;
        request.second = Some(SecondFile { file, skip: 0, element: None, byte_order: ByteOrder::Little });
    }
    Ok((setup, request))
}

/// Describes a request in a clause of a sentence.
fn describe(layout: &Layout, options: &Options, selection: &Selection, byte_order: ByteOrder) -> String {
    let stripes = match layout {
        Layout::Striped(striped) => {
            format!("in stripes of {} bytes from target {}", striped.unit(), striped.first())
        }
        Layout::Segments(_) => "in pieces of many lengths".into(),
    };
    let header = match selection.skip {
        0 => String::new(),
        skip => format!(" behind a header of {skip} bytes"),
    };
    let order = if byte_order == ByteOrder::Big { ", big-endian" } else { "" };
    format!(
        "the file lies on {} targets {stripes}{header}{order}, {} lanes fold it in units of {} bytes and blocks of {}",
        layout.targets(),
        options.lanes,
        options.unit_bytes,
        options.block_bytes
    )
}

/// Runs a request, and stops and resumes it several times.
fn run_interrupted(
    case: &Case,
    rng: &mut Rng,
    request: &Request,
    rows: &mut RowBatch,
    setup: &mut String,
) -> Result<gristmill_kernel::Value, RunError> {
    let positions = case.positions();
    let stops = rng.u32(0..=MAX_STOPS);
    let mut checkpoint: Option<Checkpoint> = None;
    for n in 0..=stops {
        let control = match n {
            n if n < stops => {
                let after = rng.u64(0..=positions);
                setup.push_str(&format!(", it is stopped after {after} records"));
                Control::stop_after(after)
            }
            _ => Control::new(),
        };
        let outcome = match checkpoint.take() {
            None => run_request(request.clone(), rows, &control),
            // The checkpoint goes through bytes, as between machines.
            Some(checkpoint) => {
                resume(request.clone(), Checkpoint::decode(&checkpoint.encode())?, rows, &control)
            }
        };
        match outcome? {
            Outcome::Done(answer) => return Ok(answer.value),
            Outcome::Stopped(at) => checkpoint = Some(at),
        }
    }
    Err(stopped_error(case).into())
}

/// Puts the records into the bytes of a file: after a header, before a part of a record, in either byte order.
fn file_bytes(case: &Case, rng: &mut Rng) -> (Vec<u8>, Selection, ByteOrder) {
    let mut data = case.data.clone();
    let Record::Fixed(size) = case.kernel.spec().record else {
        return (data, Selection::default(), ByteOrder::Little);
    };
    let order = if rng.bool() { ByteOrder::Big } else { ByteOrder::Little };
    if let Some(element) = case.input.element {
        // Swapping is its own inverse.
        order.to_little(element.size(), &mut data);
    }
    if case.second.is_some() || case.input.record == RecordRule::Lines {
        return (data, Selection::default(), order);
    }
    let random_bytes =
        |rng: &mut Rng, below: u64| (0..rng.u64(0..below)).map(|_| rng.u8(..)).collect::<Vec<u8>>();
    let header = random_bytes(rng, 30);
    let range = (header.len() as u64, Some(data.len() as u64));
    let selection = Selection { skip: header.len() as u64, range: Some(range) };
    // The rest is less than a record. A whole record would be visible to the halo.
    (([header, data, random_bytes(rng, size)]).concat(), selection, order)
}

fn random_layout(rng: &mut Rng, length: u64) -> Result<Layout, RunError> {
    let targets = rng.u32(1..=7);
    let unit = match rng.u8(0..5) {
        0 => rng.u64(1..4),
        1 => rng.u64(1..40),
        2 => rng.u64(1..400),
        3 => return Ok(Striped::contiguous(length, targets)?.into()),
        _ => return Ok(random_segments(rng, length, targets)?.into()),
    };
    Ok(Striped::new(unit, targets, rng.u32(0..targets))?.into())
}

/// Draws pieces of any length on random targets.
fn random_segments(rng: &mut Rng, length: u64, targets: u32) -> Result<Segments, RunError> {
    let mut tables = vec![SegmentTable::default(); targets as usize];
    let mut at = 0;
    while at < length {
        let bytes = rng.u64(1..=50).min(length - at);
        tables[rng.usize(..targets as usize)].push(at..at + bytes, bytes)?;
        at += bytes;
    }
    let tables: Vec<_> = tables.into_iter().map(Some).collect();
    Ok(Segments::of_tables("data", &tables)?)
}

/// Distributes the bytes over memory stores, one for each target of the layout.
pub(crate) fn memory_file(data: &[u8], layout: Layout) -> Result<FileParts, RunError> {
    let object = ObjectId::new("data").map_err(StoreError::from)?;
    let mut parts: Vec<Arc<dyn Part>> = Vec::new();
    for target in 0..layout.targets() {
        let store = Arc::new(MemoryStore::new());
        store.create(&object, &CreateOptions::default())?;
        for run in layout.runs(target, 0..data.len() as u64) {
            let bytes = &data[run.file.start as usize..run.file.end as usize];
            store.write_at(&object, run.object_offset, bytes, WriteOptions::default())?;
        }
        parts.push(Arc::new(StorePart::open(store, object.clone(), format!("target {target}"))?));
    }
    let place = Placement { place: "storage", why: "a test", remote: false };
    Ok(FileParts { name: "data".into(), length: data.len() as u64, layout, parts, place })
}
