//! A pass announces the bytes that it will read to parts that fetch them meanwhile.
#![allow(clippy::unwrap_used)] // in functions that tests share

use std::ops::Range;
use std::sync::{Arc, Mutex};

use gristmill_kernel::{ByteOrder, DType, Input, Value, catalog};
use gristmill_layout::{Layout, Striped};
use gristmill_object_fold::Binding;
use gristmill_runtime::{
    Control, Discard, FileParts, Options, Outcome, Part, PartRange, Placement, Request, RunError, StorePart,
    run,
};
use gristmill_store::{CreateOptions, MemoryStore, ObjectId, ObjectStore, StoreError, WriteOptions};

/// A part that notes what is announced and what is read.
struct NotedPart {
    bytes: Vec<u8>,
    ahead: bool,
    folds: Folds,
    notes: Mutex<Notes>,
}

/// Whether the storage of a part folds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Folds {
    No,
    Refuses,
    /// It folds nothing, but that is not known before.
    Says,
}

#[derive(Default)]
struct Notes {
    announced: Vec<Range<u64>>,
    unannounced: u64,
    read: u64,
}

impl Part for NotedPart {
    fn read(&self, _: Option<&str>, offset: u64, buffer: &mut [u8]) -> Result<(), RunError> {
        let mut notes = self.notes.lock().unwrap();
        let known = |at: &u64| notes.announced.iter().any(|range| range.contains(at));
        let end = offset + buffer.len() as u64;
        let unannounced = (offset..end).filter(|at| !known(at)).count() as u64;
        notes.unannounced += unannounced;
        notes.read += buffer.len() as u64;
        buffer.copy_from_slice(&self.bytes[offset as usize..end as usize]);
        Ok(())
    }

    fn fetches_ahead(&self) -> bool {
        self.ahead
    }

    fn expect(&self, ranges: &[PartRange<'_>]) {
        let ranges = ranges.iter().map(|range| range.offset..range.offset + range.len as u64);
        self.notes.lock().unwrap().announced.extend(ranges);
    }

    fn folds(&self) -> bool {
        self.folds != Folds::No
    }

    fn folds_now(&self) -> bool {
        self.folds == Folds::Says
    }

    fn unchanged(&self) -> Result<(), RunError> {
        Ok(())
    }

    fn version(&self) -> u64 {
        1
    }

    fn describe(&self) -> String {
        "noted".into()
    }
}

fn noted(bytes: Vec<u8>, ahead: bool) -> (Arc<NotedPart>, FileParts) {
    noted_with(bytes, ahead, Folds::No)
}

fn noted_with(bytes: Vec<u8>, ahead: bool, folds: Folds) -> (Arc<NotedPart>, FileParts) {
    let length = bytes.len() as u64;
    let part = Arc::new(NotedPart { bytes, ahead, folds, notes: Mutex::default() });
    (part.clone(), one_part(part, length))
}

fn one_part(part: Arc<dyn Part>, length: u64) -> FileParts {
    FileParts {
        name: "noted".into(),
        length,
        layout: Layout::Striped(Striped::new(length, 1, 0).unwrap()),
        parts: vec![part],
        place: Placement { place: "client", why: "a test", remote: true },
    }
}

fn answer(kernel: &str, input: Input, file: FileParts) -> Value {
    let binding = Binding::new(kernel, &[], input, ByteOrder::Little);
    let kernel = catalog::bind(kernel, &[], &input).unwrap();
    let mut request = Request::new(kernel, input, file);
    request.binding = Some(binding);
    request.options = Options { lanes: 2, block_bytes: 512, unit_bytes: 4096, ..Options::default() };
    match run(request, &mut Discard, &Control::new()).unwrap() {
        Outcome::Done(answer) => answer.value,
        Outcome::Stopped(_) => panic!("it stopped by itself"),
    }
}

#[test]
fn all_bytes_of_numbers_are_announced_once_and_before_they_are_read() {
    let bytes: Vec<u8> = (0..20_000u32).flat_map(|n| f64::from(n).to_le_bytes()).collect();
    let (part, file) = noted(bytes, true);
    let value = answer("sum", Input::elements(DType::F64), file);
    assert_eq!(value.get("count"), Some(&Value::Int(20_000)));
    let notes = part.notes.lock().unwrap();
    assert_eq!((notes.unannounced, notes.read), (0, 160_000));
    let announced: u64 = notes.announced.iter().map(|range| range.end - range.start).sum();
    assert_eq!(announced, 160_000);
}

#[test]
fn of_a_file_in_place_only_the_own_stripes_are_announced() {
    let bytes: Vec<u8> = (0..20_000u32).flat_map(|n| f64::from(n).to_le_bytes()).collect();
    for unit in [1_000, 5_000, 40_000] {
        let (part, one) = noted(bytes.clone(), true);
        let layout = Layout::Striped(Striped::new(unit, 3, 1).unwrap().in_place());
        let file = FileParts { layout, parts: vec![part.clone(); 3], ..one };
        let value = answer("sum", Input::elements(DType::F64), file);
        assert_eq!(value.get("count"), Some(&Value::Int(20_000)));
        let notes = part.notes.lock().unwrap();
        let mut announced = notes.announced.clone();
        announced.sort_by_key(|range| range.start);
        // Each byte is announced by its owner, and by nobody else.
        assert_eq!(announced.first().unwrap().start, 0);
        assert!(announced.windows(2).all(|pair| pair[0].end == pair[1].start), "stripes of {unit}");
        assert_eq!((announced.last().unwrap().end, notes.unannounced), (160_000, 0));
    }
}

#[test]
fn lines_that_cross_the_edges_of_units_are_announced() {
    let text: String = (0..5000).map(|n| format!("{n} {}\n", "x".repeat(n % 90))).collect();
    let (part, file) = noted(text.clone().into_bytes(), true);
    let value = answer("wc", Input::lines(), file);
    assert_eq!(value.get("lines"), Some(&Value::Int(5000)));
    assert_eq!(part.notes.lock().unwrap().unannounced, 0);
}

#[test]
fn parts_that_do_not_fetch_ahead_are_told_nothing() {
    let (part, file) = noted(vec![0; 80_000], false);
    answer("sum", Input::elements(DType::F64), file);
    assert!(part.notes.lock().unwrap().announced.is_empty());
}

#[test]
fn what_the_storage_folds_is_not_read_ahead() {
    for (folds, announced) in [(Folds::Says, 0), (Folds::Refuses, 80_000)] {
        let (part, file) = noted_with(vec![0; 80_000], true, folds);
        answer("sum", Input::elements(DType::F64), file);
        let notes = part.notes.lock().unwrap();
        assert_eq!(notes.announced.iter().map(|range| range.end - range.start).sum::<u64>(), announced);
    }
}

fn stored(bytes: &[u8]) -> (Arc<MemoryStore>, ObjectId) {
    let (store, id) = (Arc::new(MemoryStore::new()), ObjectId::new("object").unwrap());
    store.create(&id, &CreateOptions::default()).unwrap();
    store.write_at(&id, 0, bytes, WriteOptions::default()).unwrap();
    (store, id)
}

#[test]
fn objects_that_threads_read_ahead_give_the_same_answer() {
    let bytes: Vec<u8> = (0..40_000u32).flat_map(|n| (0.1 * f64::from(n)).to_le_bytes()).collect();
    let answer_of = |ahead: bool| {
        let (store, id) = stored(&bytes);
        let part = StorePart::open(store, id, "0".into()).unwrap();
        let part = if ahead { part.reading_ahead() } else { part };
        assert_eq!(part.fetches_ahead(), ahead);
        answer("sum", Input::elements(DType::F64), one_part(Arc::new(part), bytes.len() as u64))
    };
    assert_eq!(answer_of(true), answer_of(false));
}

#[test]
fn bytes_that_were_read_ahead_of_a_change_are_stale() {
    let (store, id) = stored(&[1; 100_000]);
    let part = StorePart::open(store.clone(), id.clone(), "0".into()).unwrap().reading_ahead();
    let other = ObjectId::new("other").unwrap();
    store.create(&other, &CreateOptions::default()).unwrap();
    store.write_at(&other, 0, &[3; 100], WriteOptions::default()).unwrap();
    part.expect(&[PartRange { object: None, offset: 0, len: 50_000 }]);
    store.write_at(&id, 0, &[2], WriteOptions::default()).unwrap();
    let mut bytes = vec![0; 100];
    part.read(None, 10, &mut bytes).unwrap();
    assert_eq!(bytes, [1; 100]);
    part.read(Some("other"), 0, &mut bytes).unwrap();
    assert_eq!(bytes, [3; 100], "another object");
    assert!(matches!(part.unchanged(), Err(RunError::Store(StoreError::Stale { .. }))));
    let past = part.read(None, 99_950, &mut bytes);
    assert!(matches!(past, Err(RunError::Truncated { offset: 100_000, .. })), "{past:?}");
}
