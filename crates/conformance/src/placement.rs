//! The same case through the real runtime: dealt over stores, by several lanes, interrupted and resumed.

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

/// Interruptions of one request, at most.
const MAX_STOPS: u32 = 6;

/// A random world and what comes out in it.
pub(crate) fn run(case: &Case, rng: &mut Rng) -> (String, Answer) {
    let (mut world, request) = match random_request(case, rng) {
        Ok(made) => made,
        Err(error) => {
            return (
                "the request is set up".into(),
                Answer { value: Err(contract(case, &error)), rows: vec![] },
            );
        }
    };
    let mut rows = RowBatch::default();
    let value = match interrupted(case, rng, &request, &mut rows, &mut world) {
        Ok(value) => Ok(value),
        Err(RunError::Kernel(error)) => Err(error),
        Err(error) => Err(contract(case, &error)),
    };
    (world, Answer { value, rows: listed(case, &rows) })
}

/// A random world and what comes out in it if every target's records are folded by somebody else.
pub(crate) fn run_by_crew(case: &Case, rng: &mut Rng) -> (String, Answer) {
    let (mut world, request) = match random_request(case, rng) {
        Ok(made) => made,
        Err(error) => {
            return (
                "the request is set up".into(),
                Answer { value: Err(contract(case, &error)), rows: vec![] },
            );
        }
    };
    let crew = MemoryCrew::new(&request, rng);
    world.push_str(&format!(", {crew}"));
    let mut rows = RowBatch::default();
    let value = match run_on(request.clone(), &crew, &mut rows, &Control::new()) {
        Ok(Outcome::Done(answer)) => match crew.kept() {
            None => Ok(answer.value),
            Some(Ok(bytes)) => {
                rows.push(Position::of(0), &bytes);
                Ok(answer.value)
            }
            Some(Err(error)) => Err(contract(case, &error)),
        },
        Ok(Outcome::Stopped(_)) => Err(stopped(case)),
        Err(error) => {
            // Not only an error of the same kind, but the same one.
            let alone = run_request(request, &mut Discard, &Control::new());
            match (alone, error) {
                (Err(alone), error) if alone.to_string() != error.to_string() => {
                    world.push_str(&format!(
                        ", and a crew says \"{error}\" where one process says \"{alone}\""
                    ));
                    Err(contract(case, &error))
                }
                (_, RunError::Kernel(error)) => Err(error),
                (_, error) => Err(contract(case, &error)),
            }
        }
    };
    (world, Answer { value, rows: listed(case, &rows) })
}

fn listed(case: &Case, rows: &RowBatch) -> Vec<(Position, Vec<u8>)> {
    let rows = rows.iter().map(|(at, row)| (at, row.to_vec())).collect();
    crate::drive::joined(&case.kernel.spec(), rows)
}

fn contract(case: &Case, error: &RunError) -> KernelError {
    KernelError::Contract { kernel: case.kernel.spec().name, why: error.to_string() }
}

fn stopped(case: &Case) -> KernelError {
    let why = "a request that nobody stopped did not end".into();
    KernelError::Contract { kernel: case.kernel.spec().name, why }
}

fn random_request(case: &Case, rng: &mut Rng) -> Result<(String, Request), RunError> {
    let (bytes, selection, byte_order) = disguise(case, rng);
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
    let world = told(&layout, &options, &selection, byte_order);
    let mut request = Request::new(case.kernel.clone(), case.input, file(&bytes, layout)?);
    request.selection = selection;
    request.byte_order = byte_order;
    request.side = case.side.clone();
    request.options = options;
    if let Some(second) = &case.second {
        let file = file(second, second_layout)?;
        request.second = Some(SecondFile { file, skip: 0, element: None, byte_order: ByteOrder::Little });
    }
    Ok((world, request))
}

/// A request as a clause of a sentence.
fn told(layout: &Layout, options: &Options, selection: &Selection, byte_order: ByteOrder) -> String {
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

/// Runs a request that is stopped now and then.
fn interrupted(
    case: &Case,
    rng: &mut Rng,
    request: &Request,
    rows: &mut RowBatch,
    world: &mut String,
) -> Result<gristmill_kernel::Value, RunError> {
    let positions = case.positions();
    let stops = rng.u32(0..=MAX_STOPS);
    let mut checkpoint: Option<Checkpoint> = None;
    for n in 0..=stops {
        let control = match n {
            n if n < stops => {
                let after = rng.u64(0..=positions);
                world.push_str(&format!(", it is stopped after {after} records"));
                Control::stop_after(after)
            }
            _ => Control::new(),
        };
        let outcome = match checkpoint.take() {
            None => run_request(request.clone(), rows, &control),
            // Through bytes, as on the way to another machine.
            Some(checkpoint) => {
                resume(request.clone(), Checkpoint::decode(&checkpoint.encode())?, rows, &control)
            }
        };
        match outcome? {
            Outcome::Done(answer) => return Ok(answer.value),
            Outcome::Stopped(at) => checkpoint = Some(at),
        }
    }
    Err(stopped(case).into())
}

/// The records as they may lie in a file: behind a header, in front of a ragged end, in the other byte order.
fn disguise(case: &Case, rng: &mut Rng) -> (Vec<u8>, Selection, ByteOrder) {
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
    let junk = |rng: &mut Rng, below: u64| (0..rng.u64(0..below)).map(|_| rng.u8(..)).collect::<Vec<u8>>();
    let header = junk(rng, 30);
    let range = (header.len() as u64, Some(data.len() as u64));
    let selection = Selection { skip: header.len() as u64, range: Some(range) };
    // Less than a record, or it would be one more for the halo to see.
    (([header, data, junk(rng, size)]).concat(), selection, order)
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

/// Pieces of any length, dealt anyhow.
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

/// The bytes on as many memory stores as the layout has targets.
pub(crate) fn file(data: &[u8], layout: Layout) -> Result<FileParts, RunError> {
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
