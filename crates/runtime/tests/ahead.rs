//! A pass announces the bytes that it will read to parts that fetch them meanwhile.
#![allow(clippy::unwrap_used)] // in functions that tests share

use std::ops::Range;
use std::sync::{Arc, Mutex};

use gristmill_kernel::{DType, Input, Value, catalog};
use gristmill_layout::{Layout, Striped};
use gristmill_runtime::{
    Control, Discard, FileParts, Options, Outcome, Part, PartRange, Placement, Request, RunError, run,
};

/// A part that notes what is announced and what is read.
struct NotedPart {
    bytes: Vec<u8>,
    ahead: bool,
    notes: Mutex<Notes>,
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
    let length = bytes.len() as u64;
    let part = Arc::new(NotedPart { bytes, ahead, notes: Mutex::default() });
    let file = FileParts {
        name: "noted".into(),
        length,
        layout: Layout::Striped(Striped::new(length, 1, 0).unwrap()),
        parts: vec![part.clone()],
        place: Placement { place: "client", why: "a test", remote: true },
    };
    (part, file)
}

fn answer(kernel: &str, input: Input, file: FileParts) -> Value {
    let kernel = catalog::bind(kernel, &[], &input).unwrap();
    let mut request = Request::new(kernel, input, file);
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
