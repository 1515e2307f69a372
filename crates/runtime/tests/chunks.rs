//! Reductions of arrays over chunks: the bits are the same wherever chunks lie, and errors name the chunk.
#![allow(clippy::unwrap_used)] // in functions that tests share

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use gristmill_array::{
    ArrayReduce, EdgeChunks, Grid, Meaning, Op, Reduction, Request as ArrayRequest, Selection,
};
use gristmill_format::{Array, ChunkLocation, ChunkLocations, ChunkTable, Edges, FileRef};
use gristmill_kernel::{
    Block, ByteOrder, Ctx, DType, Fold, Input, Kernel, KernelError, Next, Order, Output, Sink, Spec, Step,
    Value,
};
use gristmill_layout::{Layout, Striped};
use gristmill_runtime::{
    Checkpoint, Chunks, Control, Discard, FileParts, MemoryGuard, Options, Outcome, Pace, Part, Placement,
    Request, RunError, Statistics, resume, run,
};
use proptest::prelude::*;

/// The bytes of one target.
struct MemoryPart(Vec<u8>);

impl Part for MemoryPart {
    fn read(&self, _: Option<&str>, offset: u64, buffer: &mut [u8]) -> Result<(), RunError> {
        let at = offset as usize;
        buffer.copy_from_slice(&self.0[at..at + buffer.len()]);
        Ok(())
    }
    fn unchanged(&self) -> Result<(), RunError> {
        Ok(())
    }
    fn version(&self) -> u64 {
        1
    }
    fn describe(&self) -> String {
        "memory".into()
    }
}

/// A file in stripes of `unit` over targets.
fn striped(bytes: &[u8], unit: u64, targets: u32) -> FileParts {
    let striped = Striped::new(unit, targets, 0).unwrap();
    let mut held = vec![Vec::new(); targets as usize];
    for (at, byte) in bytes.iter().enumerate() {
        held[striped.target_of(at as u64) as usize].push(*byte);
    }
    FileParts {
        name: "array".into(),
        length: bytes.len() as u64,
        layout: Layout::Striped(striped),
        parts: held.into_iter().map(|bytes| Arc::new(MemoryPart(bytes)) as Arc<dyn Part>).collect(),
        place: Placement { place: "storage", why: "a test", remote: false },
    }
}

/// An array of f64 as a file. Its chunks are in any order with gaps between them, and some are not stored.
struct World {
    table: Arc<ChunkTable>,
    bytes: Vec<u8>,
    values: Vec<f64>,
}

const FILL: f64 = -7.5;

fn world(shape: &[u64], chunk: &[u64], gap: usize, seed: u64) -> World {
    let mut random = seed;
    let mut next = move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random >> 33
    };
    let array = Array {
        dtype: DType::F64,
        order: ByteOrder::Big,
        stored: shape.to_vec(),
        shape: shape.to_vec(),
        chunk: chunk.to_vec(),
        edges: Edges::Whole,
        filters: Vec::new(),
        fill: FILL.to_le_bytes().to_vec(),
    };
    let count: u64 = shape.iter().product();
    let mut values: Vec<f64> = (0..count).map(|_| (next() % 2_000) as f64 / 7.0 - 100.0).collect();
    let (mut bytes, mut places) = (Vec::new(), Vec::new());
    let mut order: Vec<u64> = (0..array.chunks()).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, next() as usize % (i + 1));
    }
    for number in order {
        let extent = array.extent(number).unwrap();
        let missing = next() % 5 == 0;
        bytes.resize(bytes.len() + gap, 0xee);
        let offset = bytes.len() as u64;
        let held: u64 = extent.held.iter().product();
        for i in 0..held {
            let (mut rest, mut at) = (i, vec![0; shape.len()]);
            for axis in (0..shape.len()).rev() {
                at[axis] = rest % extent.held[axis];
                rest /= extent.held[axis];
            }
            let inside = at.iter().zip(&extent.clipped).all(|(at, length)| at < length);
            let place = at
                .iter()
                .zip(&extent.origin)
                .zip(shape)
                .fold(0, |all, ((at, origin), n)| all * n + origin + at);
            let value = match (inside, missing) {
                (true, true) => {
                    values[place as usize] = FILL;
                    continue;
                }
                (true, false) => values[place as usize],
                // Elements outside the array may have any value.
                (false, _) => f64::MAX,
            };
            if !missing {
                bytes.extend_from_slice(&value.to_be_bytes());
            }
        }
        if !missing {
            places.push(ChunkLocation {
                chunk: number,
                file: 0,
                offset,
                bytes: bytes.len() as u64 - offset,
                mask: 0,
            });
        }
    }
    places.sort_by_key(|place| place.chunk);
    let files = vec![FileRef { name: String::new(), length: bytes.len() as u64 }];
    World {
        table: Arc::new(ChunkTable { array, files, locations: ChunkLocations::Listed(places) }),
        bytes,
        values,
    }
}

fn request(world: &World, file: FileParts, selection: &str, reduction: Reduction, lanes: usize) -> Request {
    let array = &world.table.array;
    let kernel = ArrayReduce::bind(ArrayRequest {
        grid: Grid::new(array.shape.clone(), array.chunk.clone(), EdgeChunks::Whole).unwrap(),
        meaning: Meaning::plain(DType::F64),
        others: Vec::new(),
        constants: Vec::new(),
        selection: selection.parse::<Selection>().unwrap(),
        expr: None,
        reduction,
    })
    .unwrap();
    let chunks = Chunks::new(world.table.clone(), kernel.chunks().collect()).unwrap();
    let mut request = Request::new(Arc::new(kernel), Input::elements(DType::F64), file);
    request.chunks = Some(chunks);
    request.options = Options { lanes, unit_bytes: 512, ..Options::default() };
    request
}

fn done(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Done(answer) => answer.value,
        Outcome::Stopped(_) => panic!("it stopped by itself"),
    }
}

fn array(value: &Value, name: &str) -> Vec<f64> {
    let Some(Value::Array(array)) = value.get(name) else { panic!("no array {name} in {value:?}") };
    array.data.chunks_exact(8).map(|x| f64::from_le_bytes(x.try_into().unwrap())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Largest values over the first axis are those of the array, whatever the stripes. Means have the same bits everywhere.
    #[test]
    fn the_bits_are_the_same_wherever_chunks_lie(
        shape in prop::collection::vec(1u64..9, 2..4),
        chunk in prop::collection::vec(1u64..5, 3),
        unit in 1u64..200, targets in 1u32..5, lanes in 1usize..4, gap in 0usize..20, seed in any::<u64>(),
    ) {
        let world = world(&shape, &chunk[..shape.len()], gap, seed);
        let cells: usize = shape[1..].iter().product::<u64>() as usize;
        let mut largest = vec![f64::NEG_INFINITY; cells];
        for (i, value) in world.values.iter().enumerate() {
            largest[i % cells] = largest[i % cells].max(*value);
        }
        let plain = || striped(&world.bytes, world.bytes.len().max(1) as u64, 1);
        let asked = |file, op, lanes| {
            done(run(request(&world, file, "", Reduction::new(op).over(&[0]), lanes), &mut Discard, &Control::new()).unwrap())
        };
        let file = striped(&world.bytes, unit, targets);
        prop_assert_eq!(array(&asked(file.clone(), Op::Max, lanes), "max"), largest);
        prop_assert_eq!(asked(file, Op::Mean, lanes), asked(plain(), Op::Mean, 1));
    }
}

#[test]
fn only_selected_chunks_are_read_and_a_stopped_request_resumes() {
    let world = world(&[40, 30], &[4, 7], 3, 11);
    let file = striped(&world.bytes, 100, 3);
    let whole = || Reduction::new(Op::Sum);
    let of = |selection| {
        let request = request(&world, file.clone(), selection, whole(), 2);
        let Outcome::Done(answer) = run(request, &mut Discard, &Control::new()).unwrap() else {
            panic!("it stopped")
        };
        (answer.value, answer.report.bytes_read)
    };
    let (all, read) = of("");
    assert_eq!(read, world.table.stored_bytes());
    let sum: f64 = world.values[20 * 30..21 * 30].iter().sum();
    let (row, read_row) = of("20");
    assert!((array(&row, "sum")[0] - sum).abs() < 1e-9);
    assert!(read_row <= 5 * 4 * 7 * 8, "{read_row} bytes");
    let mut stops = 0;
    for after in [1, 10, 25, 49] {
        let fresh = || request(&world, file.clone(), "", whole(), 1);
        let value = match run(fresh(), &mut Discard, &Control::stop_after(after)).unwrap() {
            Outcome::Done(answer) => answer.value,
            Outcome::Stopped(checkpoint) => {
                stops += 1;
                let checkpoint = Checkpoint::decode(&checkpoint.encode()).unwrap();
                done(resume(fresh(), checkpoint, &mut Discard, &Control::new()).unwrap())
            }
        };
        assert_eq!(value, all);
    }
    assert!(stops > 1, "{stops} stops");
}

#[test]
fn a_wrong_table_and_a_chunk_that_is_cut_are_refused() {
    let world = world(&[8, 8], &[4, 4], 0, 5);
    let ChunkLocations::Listed(places) = &world.table.locations else { panic!("listed") };
    let with = |change: &dyn Fn(&mut ChunkLocation)| {
        let mut places = places.clone();
        change(places.last_mut().unwrap());
        let table = ChunkTable { locations: ChunkLocations::Listed(places), ..(*world.table).clone() };
        let world = World { table: Arc::new(table), bytes: world.bytes.clone(), values: Vec::new() };
        let file = striped(&world.bytes, 64, 2);
        run(request(&world, file, "", Reduction::new(Op::Sum), 1), &mut Discard, &Control::new())
            .unwrap_err()
            .to_string()
    };
    let past = with(&|place| place.offset = 1 << 40);
    assert!(past.contains("chunk"), "{past}");
    let last = places.last().unwrap().chunk;
    let cut = with(&|place| place.bytes -= 8);
    assert!(cut.contains(&format!("chunk {last}")) && cut.contains("120 bytes"), "{cut}");
    // These numbers are past the last chunk, or do not ascend.
    for numbers in [vec![4], vec![1, 0], vec![2, 2]] {
        assert!(Chunks::new(world.table.clone(), numbers).is_err());
    }
}

/// Statistics of one variable, in memory.
#[derive(Default)]
struct MemoryStatistics(Mutex<BTreeMap<u64, Vec<u8>>>);

impl Statistics for MemoryStatistics {
    fn known(&self, number: u64) -> Option<Vec<u8>> {
        self.0.lock().unwrap().get(&number).cloned()
    }
    fn learned(&self, number: u64, summary: Vec<u8>) {
        self.0.lock().unwrap().insert(number, summary);
    }
}

fn answered(request: Request) -> gristmill_runtime::Answer {
    let Outcome::Done(answer) = run(request, &mut Discard, &Control::new()).unwrap() else {
        panic!("it stopped")
    };
    answer
}

#[test]
fn chunks_that_statistics_settle_are_not_read() {
    let world = world(&[40, 30], &[4, 7], 3, 11);
    let file = striped(&world.bytes, 100, 3);
    let store: Arc<MemoryStatistics> = Arc::default();
    let ask = |op, lanes, statistics| {
        let mut request = request(&world, file.clone(), "", Reduction::new(op), lanes);
        request.statistics = Some(store.clone());
        request.options.statistics = statistics;
        answered(request)
    };
    let first = ask(Op::Sum, 2, true);
    assert_eq!((first.report.bytes_read, first.report.chunks_settled), (world.table.stored_bytes(), 0));
    for op in [Op::Sum, Op::Mean, Op::Count, Op::Min, Op::Max] {
        let (with, without) = (ask(op.clone(), 2, true), ask(op, 1, false));
        assert_eq!(with.value, without.value);
        assert_eq!((with.report.bytes_read, with.report.bytes_moved, with.report.messages), (0, 0, 0));
        assert_eq!((with.report.chunks_settled, without.report.chunks_settled), (50, 0));
        assert_eq!(without.report.bytes_read, world.table.stored_bytes());
        // Settled chunks count as folded.
        let folded = |answer: &gristmill_runtime::Answer| -> u64 {
            answer.report.places.iter().map(|place| place.records.unwrap()).sum()
        };
        assert_eq!((folded(&with), folded(&without)), (50, 50));
    }
    // A damaged summary counts as a missing one.
    store.0.lock().unwrap().insert(7, vec![1, 2, 3]);
    let mended = ask(Op::Sum, 3, true);
    assert_eq!((mended.value, mended.report.chunks_settled), (first.value, 49));
    assert_eq!(ask(Op::Sum, 1, true).report.chunks_settled, 50);
}

#[test]
fn a_stopped_request_resumes_with_the_statistics_known_then() {
    let world = world(&[40, 30], &[4, 7], 3, 11);
    let file = striped(&world.bytes, 100, 3);
    let plain = request(&world, file.clone(), "", Reduction::new(Op::Mean), 1);
    let expected = answered(plain).value;
    let store: Arc<MemoryStatistics> = Arc::default();
    let fresh = || {
        let mut request = request(&world, file.clone(), "", Reduction::new(Op::Mean), 1);
        request.statistics = Some(store.clone());
        request
    };
    for after in [9, 21, 33] {
        let Outcome::Stopped(checkpoint) = run(fresh(), &mut Discard, &Control::stop_after(after)).unwrap()
        else {
            panic!("it went on to its end")
        };
        assert_eq!(done(resume(fresh(), checkpoint, &mut Discard, &Control::new()).unwrap()), expected);
    }
}

#[test]
fn the_place_of_a_chunk_is_part_of_its_identity() {
    let world = world(&[40, 30], &[4, 7], 3, 11);
    let all = || (0..world.table.array.chunks()).collect();
    let chunks = Chunks::new(world.table.clone(), all()).unwrap();
    let mut other = (*world.table).clone();
    let ChunkLocations::Listed(places) = &mut other.locations else { unreachable!() };
    let moved = places[3].chunk;
    places[3].offset += 1;
    let gone = places.remove(5).chunk;
    let other = Chunks::new(Arc::new(other), all()).unwrap();
    assert_eq!(chunks.array_identity(), other.array_identity());
    for number in 0..world.table.array.chunks() {
        let same = chunks.identity(number) == other.identity(number);
        assert_eq!(same, number != moved && number != gone, "{number}");
    }
    assert_eq!(chunks.identity(world.table.array.chunks()), None);
}

/// A kernel that could give bytes, but gives none.
struct NoBytes(u64);
struct NoBytesFold;

impl Kernel for NoBytes {
    fn spec(&self) -> Spec {
        Spec { output: Output::Bytes, order: Order::Any, ..Spec::fixed("no bytes", self.0) }
    }
    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(NoBytesFold))
    }
    fn advance(&self, _: &Ctx, _: &[u8]) -> Result<Next, KernelError> {
        Ok(Next::Done(Value::Int(0)))
    }
}

impl Fold for NoBytesFold {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        Ok(Step::Took(block.count()))
    }
    fn save(&self, _: &mut Vec<u8>) {}
    fn merge(&mut self, _: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        Ok(())
    }
}

/// A pace that never has memory. The first lane waits for it until the request stops.
struct NoMemory;

impl Pace for NoMemory {
    fn folded(&self, _: u64, _: &dyn Fn() -> bool) -> bool {
        false
    }
    fn memory(&self, _: u64, waits: bool, stopped: &dyn Fn() -> bool) -> Option<MemoryGuard> {
        while waits && !stopped() {
            std::thread::yield_now();
        }
        None
    }
}

#[test]
fn a_request_for_bytes_without_memory_ends_when_it_is_stopped() {
    let world = world(&[8, 8], &[4, 4], 0, 5);
    let chunks = Chunks::new(world.table.clone(), (0..4).collect()).unwrap();
    let file = striped(&world.bytes, 100, 2);
    let mut request = Request::new(Arc::new(NoBytes(4 * 4 * 8)), Input::elements(DType::F64), file);
    request.chunks = Some(chunks);
    request.options = Options { lanes: 3, ..Options::default() };
    let control = Control::new().with_pace(Arc::new(NoMemory));
    control.stop();
    assert!(matches!(run(request, &mut Discard, &control), Ok(Outcome::Stopped(_))));
}
