//! Expressions over several variables give the right products, however each variable is cut and stored.
#![allow(clippy::unwrap_used)] // in functions that tests share

use std::sync::Arc;

use gristmill_array::{ArrayReduce, EdgeChunks, Expr, Grid, Meaning, Op, Reduction, Request as ArrayRequest};
use gristmill_format::{Array, ChunkLocation, ChunkLocations, ChunkTable, Edges, FileRef};
use gristmill_kernel::{ByteOrder, DType, Input, Value};
use gristmill_layout::{Layout, Striped};
use gristmill_runtime::{
    Checkpoint, Chunks, Control, Discard, FileParts, Options, Outcome, Part, Placement, Request, RunError,
    resume, run,
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
        name: "arrays".into(),
        length: bytes.len() as u64,
        layout: Layout::Striped(striped),
        parts: held.into_iter().map(|bytes| Arc::new(MemoryPart(bytes)) as Arc<dyn Part>).collect(),
        place: Placement { place: "storage", why: "a test", remote: false },
    }
}

/// A variable of whole numbers. They are small, so products and sums of them are exact.
struct Variable {
    table: ChunkTable,
    values: Vec<i64>,
}

/// The way in which a variable is stored.
#[derive(Clone, Debug)]
struct StorageOptions {
    dtype: DType,
    order: ByteOrder,
    chunk: Vec<u64>,
    edges: Edges,
}

fn storage_options() -> impl Strategy<Value = StorageOptions> {
    let dtype = prop::sample::select(vec![DType::F64, DType::F32, DType::I16, DType::U8]);
    (dtype, any::<bool>(), prop::collection::vec(1u64..7, 3), any::<bool>()).prop_map(
        |(dtype, big, chunk, clipped)| StorageOptions {
            dtype,
            order: if big { ByteOrder::Big } else { ByteOrder::Little },
            chunk,
            edges: if clipped { Edges::Clipped } else { Edges::Whole },
        },
    )
}

fn element(dtype: DType, order: ByteOrder, value: i64) -> Vec<u8> {
    let mut bytes = match dtype {
        DType::F64 => (value as f64).to_le_bytes().to_vec(),
        DType::F32 => (value as f32).to_le_bytes().to_vec(),
        DType::I16 => (value as i16).to_le_bytes().to_vec(),
        _ => vec![value as u8],
    };
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    bytes
}

const FILL: i64 = 7;

/// Appends a variable to `bytes`. Its chunks are in any order, with gaps, and some are not stored. Places are counted from
/// `start`.
fn variable(
    shape: &[u64],
    how: &StorageOptions,
    bytes: &mut Vec<u8>,
    start: usize,
    next: &mut dyn FnMut() -> u64,
) -> Variable {
    let array = Array {
        dtype: how.dtype,
        order: how.order,
        stored: shape.to_vec(),
        shape: shape.to_vec(),
        chunk: how.chunk[..shape.len()].to_vec(),
        edges: how.edges,
        filters: Vec::new(),
        fill: element(how.dtype, ByteOrder::Little, FILL),
    };
    let mut values: Vec<i64> = (0..shape.iter().product::<u64>()).map(|_| (next() % 50) as i64).collect();
    let mut order: Vec<u64> = (0..array.chunks()).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, next() as usize % (i + 1));
    }
    let mut places = Vec::new();
    for number in order {
        let extent = array.extent(number).unwrap();
        let missing = next().is_multiple_of(4);
        bytes.resize(bytes.len() + next() as usize % 9, 0xee);
        let from = bytes.len();
        for i in 0..extent.held.iter().product() {
            let (mut rest, mut place, mut scale, mut inside) = (i, 0, 1, true);
            for axis in (0..shape.len()).rev() {
                let at = rest % extent.held[axis];
                rest /= extent.held[axis];
                inside &= at < extent.clipped[axis];
                place += (extent.origin[axis] + at) * scale;
                scale *= shape[axis];
            }
            if missing && inside {
                values[place as usize] = FILL;
            } else if !missing {
                let value = if inside { values[place as usize] } else { 99 };
                bytes.extend(element(how.dtype, how.order, value));
            }
        }
        if !missing {
            let (offset, bytes) = ((from - start) as u64, (bytes.len() - from) as u64);
            places.push(ChunkLocation { chunk: number, file: 0, offset, bytes, mask: 0 });
        }
    }
    places.sort_by_key(|place| place.chunk);
    Variable {
        table: ChunkTable { array, files: Vec::new(), locations: ChunkLocations::Listed(places) },
        values,
    }
}

/// Variables in one file, or in a file each that are read as one.
struct World {
    variables: Vec<Variable>,
    bytes: Vec<u8>,
}

fn world(shape: &[u64], how: &[StorageOptions], apart: bool, seed: u64) -> World {
    let mut random = seed;
    let mut next = move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random >> 33
    };
    let (mut bytes, mut variables) = (Vec::new(), Vec::new());
    for (number, how) in how.iter().enumerate() {
        let start = if apart { bytes.len() } else { 0 };
        let mut one = variable(shape, how, &mut bytes, start, &mut next);
        one.table.files = vec![FileRef { name: format!("{number}"), length: (bytes.len() - start) as u64 }];
        variables.push(one);
    }
    if !apart {
        let whole = FileRef { name: String::new(), length: bytes.len() as u64 };
        variables.iter_mut().for_each(|one| one.table.files = vec![whole.clone()]);
    }
    World { variables, bytes }
}

const NAMES: [&str; 3] = ["a", "b", "c"];

impl World {
    fn request(&self, file: FileParts, selection: &str, reduction: Reduction, lanes: usize) -> Request {
        let lead = &self.variables[0].table;
        let names = &NAMES[..self.variables.len()];
        let product = names.iter().map(|name| format!("f64({name})")).collect::<Vec<_>>().join(" * ");
        let edges = match lead.array.edges {
            Edges::Whole => EdgeChunks::Whole,
            Edges::Clipped => EdgeChunks::Clipped,
        };
        let types = || self.variables.iter().map(|one| Meaning::plain(one.table.array.dtype));
        let kernel = ArrayReduce::bind(ArrayRequest {
            grid: Grid::new(lead.array.shape.clone(), lead.array.chunk.clone(), edges).unwrap(),
            meaning: types().next().unwrap(),
            others: types().skip(1).collect(),
            constants: Vec::new(),
            selection: selection.parse().unwrap(),
            expr: Some(Expr::parse(&product, names).unwrap()),
            reduction,
        })
        .unwrap();
        let mut request = Request::new(Arc::new(kernel.clone()), Input::elements(lead.array.dtype), file);
        request.chunks = Some(self.chunks(kernel.chunks().collect()).unwrap());
        request.options = Options { lanes, unit_bytes: 512, ..Options::default() };
        request
    }

    fn chunks(&self, numbers: Vec<u64>) -> Result<Chunks, RunError> {
        let mut tables = self.variables.iter().map(|one| Arc::new(one.table.clone()));
        Chunks::with_others(tables.next().unwrap(), tables.collect(), numbers)
    }

    fn products(&self) -> Vec<i64> {
        let count = self.variables[0].values.len();
        (0..count).map(|i| self.variables.iter().map(|one| one.values[i]).product()).collect()
    }
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
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn products_are_right_however_variables_are_cut(
        shape in prop::collection::vec(1u64..10, 1..4),
        mut how in prop::collection::vec(storage_options(), 2..4),
        (same_chunks, apart) in (any::<bool>(), any::<bool>()),
        (unit, targets, lanes) in (1u64..200, 1u32..5, 1usize..4), seed in any::<u64>(),
    ) {
        if same_chunks {
            (how[1].chunk, how[1].edges) = (how[0].chunk.clone(), how[0].edges);
        }
        let world = world(&shape, &how, apart, seed);
        let cells = shape[1..].iter().product::<u64>() as usize;
        let mut sums = vec![0i64; cells];
        for (i, product) in world.products().iter().enumerate() {
            sums[i % cells] += product;
        }
        let asked = |file, op, lanes| {
            let request = world.request(file, "", Reduction::new(op).over(&[0]), lanes);
            done(run(request, &mut Discard, &Control::new()).unwrap())
        };
        let file = striped(&world.bytes, unit, targets);
        let plain = || striped(&world.bytes, world.bytes.len().max(1) as u64, 1);
        let sums: Vec<f64> = sums.iter().map(|sum| *sum as f64).collect();
        prop_assert_eq!(array(&asked(file.clone(), Op::Sum, lanes), "sum"), sums);
        prop_assert_eq!(asked(file, Op::Mean, lanes), asked(plain(), Op::Mean, 1));
    }
}

fn how(dtype: DType, chunk: &[u64]) -> StorageOptions {
    StorageOptions { dtype, order: ByteOrder::Little, chunk: chunk.to_vec(), edges: Edges::Whole }
}

#[test]
fn a_stopped_request_of_several_passes_resumes() {
    let world = world(&[40, 30], &[how(DType::F64, &[4, 7]), how(DType::I16, &[9, 5])], false, 3);
    let file = striped(&world.bytes, 100, 3);
    let mut sorted = world.products();
    sorted.sort_unstable();
    for op in [Op::Var, Op::Quantile(vec![0.0, 1.0])] {
        let fresh = || world.request(file.clone(), "", Reduction::new(op.clone()), 1);
        let all = done(run(fresh(), &mut Discard, &Control::new()).unwrap());
        if let Op::Quantile(_) = op {
            let ends = [sorted[0] as f64, sorted[sorted.len() - 1] as f64];
            assert_eq!(array(&all, "quantile"), ends);
        }
        for after in [3, 17, 41] {
            let Outcome::Stopped(checkpoint) =
                run(fresh(), &mut Discard, &Control::stop_after(after)).unwrap()
            else {
                panic!("it went on to its end")
            };
            let checkpoint = Checkpoint::decode(&checkpoint.encode()).unwrap();
            assert_eq!(done(resume(fresh(), checkpoint, &mut Discard, &Control::new()).unwrap()), all);
        }
    }
}

/// The bytes of a chunk are read once, also if several chunks of the lead overlap it.
#[test]
fn a_chunk_that_overlaps_again_is_cached() {
    let world = world(&[32, 32], &[how(DType::F64, &[1, 32]), how(DType::F64, &[32, 4])], false, 8);
    let file = striped(&world.bytes, world.bytes.len() as u64, 1);
    let request = world.request(file, "", Reduction::new(Op::Sum), 1);
    let Outcome::Done(answer) = run(request, &mut Discard, &Control::new()).unwrap() else {
        panic!("it stopped")
    };
    let stored: u64 = world.variables.iter().map(|one| one.table.stored_bytes()).sum();
    assert_eq!(answer.report.bytes_read, stored);
}

#[test]
fn variables_that_do_not_fit_are_refused() {
    let refused = |world: &World, numbers| world.chunks(numbers).unwrap_err();
    let mut other = world(&[8, 8], &[how(DType::F64, &[4, 4]), how(DType::I16, &[3, 8])], false, 1);
    assert!(other.chunks(vec![0, 3]).is_ok());
    other.variables[1].table.array.shape = vec![8, 9];
    let error = refused(&other, vec![0]);
    assert!(error.is_usage() && error.to_string().contains("[8, 9]"), "{error}");
    // Chunks are rows of one variable and columns of the other. The cache has room for few of them and not for many, and
    // still more have too many overlaps.
    let mut crossed = world(&[2, 2], &[how(DType::U8, &[1, 2]), how(DType::U8, &[2, 1])], false, 1);
    for (variable, chunk) in crossed.variables.iter_mut().zip([[1, 1 << 13], [1 << 13, 1]]) {
        let array = &mut variable.table.array;
        (array.shape, array.stored, array.chunk) = (vec![1 << 13; 2], vec![1 << 13; 2], chunk.to_vec());
    }
    let error = refused(&crossed, (0..1 << 13).collect());
    assert!(error.is_usage() && error.to_string().contains("overlap more than"), "{error}");
    for variable in &mut crossed.variables {
        variable.table.array.dtype = DType::F64;
        variable.table.array.fill = vec![0; 8];
    }
    let error = refused(&crossed, (0..1 << 13).collect());
    assert!(error.is_usage() && error.to_string().contains("read 8192 times"), "{error}");
    assert!(crossed.chunks((0..8).collect()).is_ok());
    // A chunk of one variable has the greatest allowed size, so a chunk of two variables is too large.
    for variable in &mut crossed.variables {
        let array = &mut variable.table.array;
        (array.shape, array.stored, array.chunk) = (vec![1 << 14; 2], vec![1 << 14; 2], vec![1 << 14; 2]);
    }
    let error = refused(&crossed, vec![0]);
    assert!(error.is_usage() && error.to_string().contains("at most"), "{error}");
    // This place is not in its file.
    let mut past = world(&[8, 8], &[how(DType::F64, &[4, 4]), how(DType::I16, &[3, 8])], true, 1);
    let ChunkLocations::Listed(places) = &mut past.variables[1].table.locations else { panic!("listed") };
    places[0].offset = 1 << 30;
    let request = past.request(striped(&past.bytes, 64, 2), "", Reduction::new(Op::Sum), 1);
    let error = run(request, &mut Discard, &Control::new()).unwrap_err().to_string();
    assert!(error.contains("1073741824"), "{error}");
}
