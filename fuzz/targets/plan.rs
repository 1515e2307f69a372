//! What a request would move, for any file map and records: bounded work, whatever the figures.
#![no_main]

use gristmill_fuzz as _;
use gristmill_peers::{Plan, Question};
use gristmill_wire::{
    AttachedFile, Component, FileMap, FileReader, FoldPlace, InputSpec, TargetPlace, TreeSource,
};
use libfuzzer_sys::fuzz_target;

/// The next eight bytes as a number: the first says how many bits of the others count, so that small ones are common.
fn number(bytes: &mut &[u8]) -> u64 {
    let Some((eight, rest)) = bytes.split_first_chunk::<8>() else { return 0 };
    *bytes = rest;
    u64::from_le_bytes(*eight) >> (eight[0] % 64)
}

/// A file of an attached tree, which lies in one piece, near some targets or near none.
fn attached(mut next: impl FnMut() -> u64) -> Box<AttachedFile> {
    let tree = TreeSource { url: "file:///t".into(), ..TreeSource::default() };
    let count = next() % 4;
    let components = (0..count).map(|_| {
        let (end, unit, entries) = (next(), next(), next() % 6);
        Component { end, unit, cycle: (0..entries).map(|_| (next() % 40) as u32).collect() }
    });
    Box::new(AttachedFile {
        tree,
        key: "f".into(),
        stamp: "1".into(),
        reader: FileReader::Everybody,
        settled: false,
        growing: false,
        components: components.collect(),
        access: None,
    })
}

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    let mut next = || number(&mut rest);
    let file = FileMap {
        id: "0".repeat(32),
        path: "/f".into(),
        length: next(),
        unit: next(),
        first: (next() % 40) as u32,
        record: None,
        segments: false,
        attached: (next() % 2 == 1).then(|| attached(&mut next)),
        targets: (0..(next() % 40) as u32)
            .map(|number| TargetPlace { number, address: format!("10.0.0.{number}:1"), version: 1 })
            .collect(),
    };
    if file.check().is_err() {
        return;
    }
    let Ok(layout) = file.layout() else { return };
    let question = Question {
        kernel: "count".into(),
        params: Vec::new(),
        input: InputSpec { dtype: None, record: Some(next()), skip: next(), big_endian: false },
        range: (next() % 2 == 0).then(|| (next(), Some(next()))),
        array: None,
    };
    for place in [FoldPlace::Auto, FoldPlace::Storage, FoldPlace::Client] {
        if let Ok(plan) = Plan::make(&question, &file, &layout, place) {
            assert!(plan.client_bytes <= file.length);
            plan.storage_bytes();
        }
    }
});
