//! Tests of a node's statistics of chunks: they are stored, found, removed with their object, and ignored if damaged.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::Arc;

use gristmill_array::{
    ArrayReduce, EdgeChunks, Grid, Meaning, Op, Reduction, Request as ArrayRequest, Selection,
};
use gristmill_format::{Array, ChunkLocation, ChunkLocations, ChunkTable, Edges, FileRef};
use gristmill_kernel::{ByteOrder, DType, Input};
use gristmill_layout::{Layout, Striped};
use gristmill_runtime::{Chunks, Control, Discard, FileParts, Outcome, Placement, Request, StorePart, run};
use gristmill_store::{CreateOptions, LocalStore, ObjectId, ObjectStore, Version, WriteOptions};
use gristmill_wire::{FileMap, TargetPlace};
use tokio::runtime::{Builder, Runtime};

use crate::statistics::{StatisticsStore, request_statistics};

const ROWS: u64 = 40;
const ROW: u64 = 8 * 10;

/// Target with one object: 40 rows of 10 f64.
struct World {
    runtime: Runtime,
    dir: tempfile::TempDir,
    store: Arc<LocalStore>,
    file: FileMap,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(LocalStore::open(dir.path().join("objects")).unwrap());
        let file = FileMap {
            id: "0123456789abcdef0123456789abcdef".into(),
            path: "/array".into(),
            length: ROWS * ROW,
            unit: ROWS * ROW,
            first: 0,
            record: None,
            segments: false,
            attached: None,
            targets: Vec::new(),
        };
        let id = ObjectId::new(&file.object()).unwrap();
        store.create(&id, &CreateOptions::default()).unwrap();
        let bytes: Vec<u8> = (0..ROWS * 10).flat_map(|n| (n as f64).to_le_bytes()).collect();
        store.write_at(&id, 0, &bytes, WriteOptions::default()).unwrap();
        let version = store.close(&id).unwrap().0;
        let place = TargetPlace { number: 0, address: "127.0.0.1:1".into(), version };
        let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        World { runtime, dir, store, file: FileMap { targets: vec![place], ..file } }
    }

    /// The statistics of a node that has just started.
    fn books(&self) -> Arc<StatisticsStore> {
        StatisticsStore::open(self.dir.path(), self.store.clone(), self.runtime.handle().clone()).unwrap()
    }

    fn id(&self) -> ObjectId {
        ObjectId::new(&self.file.object()).unwrap()
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("statistics").join(self.file.object())
    }

    /// Request over the file, from this byte on.
    fn request(&self, op: Op, offset: u64) -> Request {
        let rows = ROWS - 1;
        let array = Array {
            dtype: DType::F64,
            order: ByteOrder::Little,
            shape: vec![rows, 10],
            stored: vec![rows, 10],
            chunk: vec![1, 10],
            edges: Edges::Clipped,
            filters: Vec::new(),
            fill: vec![0; 8],
        };
        let places = (0..rows)
            .map(|chunk| ChunkLocation { chunk, file: 0, offset: offset + chunk * ROW, bytes: ROW, mask: 0 })
            .collect();
        let files = vec![FileRef { name: String::new(), length: self.file.length }];
        let table = Arc::new(ChunkTable { array, files, locations: ChunkLocations::Listed(places) });
        let kernel = ArrayReduce::bind(ArrayRequest {
            grid: Grid::new(vec![rows, 10], vec![1, 10], EdgeChunks::Clipped).unwrap(),
            meaning: Meaning::plain(DType::F64),
            others: Vec::new(),
            constants: Vec::new(),
            selection: Selection::default(),
            expr: None,
            reduction: Reduction::new(op),
        })
        .unwrap();
        let version = Version(self.file.targets[0].version);
        let part = StorePart::open_at(self.store.clone(), self.id(), version, "0".into()).unwrap();
        let file = FileParts {
            name: "/array".into(),
            length: self.file.length,
            layout: Layout::Striped(Striped::new(self.file.unit, 1, 0).unwrap()),
            parts: vec![Arc::new(part)],
            place: Placement { place: "storage", why: "a test", remote: false },
        };
        let chunks = Chunks::new(table, (0..rows).collect()).unwrap();
        let mut request = Request::new(Arc::new(kernel), Input::elements(DType::F64), file);
        request.chunks = Some(chunks);
        request
    }

    /// Runs a request. Returns the answer, and how many of the 39 chunks were not read. The book is written on return.
    fn ask(&self, books: &Arc<StatisticsStore>, op: Op, offset: u64) -> (f64, u64) {
        let name = op.name();
        let mut request = self.request(op, offset);
        request.statistics = request_statistics(books, &[&self.file], 0, &request);
        let Outcome::Done(answer) = run(request, &mut Discard, &Control::new()).unwrap() else {
            panic!("it stopped")
        };
        let Some(gristmill_kernel::Value::Array(array)) = answer.value.get(name) else { panic!("no array") };
        let Some(gristmill_kernel::Value::Float(x)) = array.values().next() else { panic!("no number") };
        books.write_all();
        (x, answer.report.chunks_settled)
    }
}

#[test]
fn what_one_request_found_out_settles_the_next_also_after_a_start() {
    let world = World::new();
    let books = world.books();
    let sum = (0..390).sum::<i32>().into();
    assert_eq!(world.ask(&books, Op::Sum, 0), (sum, 0));
    assert_eq!(world.ask(&books, Op::Sum, 0), (sum, 39));
    assert_eq!(world.ask(&books, Op::Max, 0), (389.0, 39));
    let again = world.books();
    assert_eq!(world.ask(&again, Op::Sum, 0), (sum, 39));
    assert!(again.bytes() > 0 && again.failed() == 0);
}

#[test]
fn another_table_finds_nothing_and_spoils_nothing() {
    let world = World::new();
    let books = world.books();
    // In this request the array begins a row, or half a row, later.
    assert_eq!(world.ask(&books, Op::Max, ROW), (399.0, 0));
    assert_eq!(world.ask(&books, Op::Max, ROW / 2), (394.0, 0));
    assert_eq!(world.ask(&books, Op::Max, 0), (389.0, 0));
    assert_eq!(world.ask(&books, Op::Max, 0), (389.0, 39));
    assert_eq!(world.ask(&books, Op::Max, ROW), (399.0, 39));
}

#[test]
fn a_damaged_book_is_as_none_and_is_written_anew() {
    let world = World::new();
    world.ask(&world.books(), Op::Min, 0);
    let mut bytes = std::fs::read(world.path()).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    std::fs::write(world.path(), &bytes).unwrap();
    assert_eq!(world.ask(&world.books(), Op::Min, 0), (0.0, 0));
    assert_eq!(world.ask(&world.books(), Op::Min, 0), (0.0, 39));
    std::fs::write(world.path(), vec![0; 20 << 20]).unwrap();
    assert_eq!(world.ask(&world.books(), Op::Min, 0), (0.0, 0));
}

#[test]
fn a_book_goes_with_its_object() {
    let world = World::new();
    let books = world.books();
    world.ask(&books, Op::Min, 0);
    let mut held = world.request(Op::Sum, 0);
    held.statistics = request_statistics(&books, &[&world.file], 0, &held);
    let statistics = held.statistics.clone().unwrap();
    world.store.remove(&world.id()).unwrap();
    books.forget(&world.id());
    assert!(!world.path().exists());
    // A request that is still running adds nothing.
    statistics.learned(3, vec![1]);
    drop((held, statistics));
    books.write_all();
    assert!(!world.path().exists());
    assert_eq!(books.bytes(), 0);
}

#[test]
fn what_a_killed_node_left_of_an_object_that_is_gone_goes_when_it_starts() {
    let world = World::new();
    world.ask(&world.books(), Op::Min, 0);
    let left = world.path().with_file_name("file-of-nobody");
    let half = world.path().with_file_name(".gristmill-1-2.tmp");
    std::fs::write(&left, b"x").unwrap();
    std::fs::write(&half, b"x").unwrap();
    world.books();
    assert!(world.path().exists() && !left.exists() && !half.exists());
    world.store.remove(&world.id()).unwrap();
    world.books();
    assert!(!world.path().exists());
}

#[test]
fn a_failed_write_is_counted_and_no_more() {
    let world = World::new();
    let books = world.books();
    std::fs::remove_dir(world.path().parent().unwrap()).unwrap();
    assert_eq!(world.ask(&books, Op::Min, 0), (0.0, 0));
    assert_eq!(books.failed(), 1);
    assert_eq!(world.ask(&books, Op::Min, 0), (0.0, 39));
}

#[test]
fn another_version_of_a_file_has_other_statistics() {
    let mut world = World::new();
    let books = world.books();
    world.ask(&books, Op::Min, 0);
    let real = world.file.targets[0].version;
    // The grant names a version of the object. The request below reads it without a check.
    let mut request = world.request(Op::Min, 0);
    world.file.targets[0].version = real + 1;
    request.statistics = request_statistics(&books, &[&world.file], 0, &request);
    let Outcome::Done(answer) = run(request, &mut Discard, &Control::new()).unwrap() else { unreachable!() };
    assert_eq!(answer.report.chunks_settled, 0);
}
