//! Random sequences of operations on the backend and on a simple model.

use std::cell::Cell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::{Subject, all_bytes, id};
use crate::{
    CasOutcome, CreateOptions, Extent, ObjectId, ObjectStore, ReadOptions, StoreError, Version, WriteOptions,
};

const CASES: u32 = 96;
const MAX_STEPS: usize = 40;

/// One operation on one of three objects and one of three attributes.
#[derive(Debug, Clone)]
enum Step {
    Create(usize, Option<u8>),
    Remove(usize),
    Write(usize, u64, Vec<u8>, Option<(usize, Option<u8>)>),
    WriteIfFirst(usize, Vec<u8>),
    Scatter(usize, Vec<(u64, u64)>, u8),
    Append(usize, Vec<u8>),
    Punch(usize, u64, u64),
    Truncate(usize, u64),
    Set(usize, usize, u8),
    Unset(usize, usize),
    Swap(usize, usize, Option<u8>, Option<u8>),
    Add(usize, i64),
    Flush(usize),
}

#[derive(Debug, Default)]
struct Model {
    bytes: Vec<u8>,
    written: Vec<bool>,
    attributes: BTreeMap<String, Vec<u8>>,
    count: i64,
    first: Option<Version>,
    last: Option<Version>,
}

impl Model {
    fn resize(&mut self, length: usize) {
        self.bytes.resize(length, 0);
        self.written.resize(length, false);
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        let (start, end) = (offset as usize, offset as usize + data.len());
        if !data.is_empty() {
            self.resize(self.bytes.len().max(end));
            self.bytes[start..end].copy_from_slice(data);
            self.written[start..end].fill(true);
        }
    }

    fn set(&mut self, name: usize, value: Option<u8>) -> bool {
        match value {
            Some(value) => self.attributes.insert(key(name), vec![value]).is_some(),
            None => self.attributes.remove(&key(name)).is_some(),
        }
    }
}

fn key(name: usize) -> String {
    format!("k{name}")
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (object, name) = (0..3usize, 0..3usize);
    let data = || prop::collection::vec(1..=u8::MAX, 0..60);
    let place = || 0..300u64;
    let o = || object.clone();
    let n = || name.clone();
    let step = prop_oneof![
        4 => (o(), any::<Option<u8>>()).prop_map(|(o, a)| Step::Create(o, a)),
        1 => o().prop_map(Step::Remove),
        4 => (o(), place(), data(), prop::option::of((n(), any::<Option<u8>>())))
            .prop_map(|(o, p, d, a)| Step::Write(o, p, d, a)),
        1 => (o(), data()).prop_map(|(o, d)| Step::WriteIfFirst(o, d)),
        2 => (o(), prop::collection::vec((place(), 0..20u64), 0..5), 1..=u8::MAX)
            .prop_map(|(o, e, v)| Step::Scatter(o, e, v)),
        2 => (o(), data()).prop_map(|(o, d)| Step::Append(o, d)),
        2 => (o(), place(), place()).prop_map(|(o, a, b)| Step::Punch(o, a, b)),
        2 => (o(), place()).prop_map(|(o, l)| Step::Truncate(o, l)),
        2 => (o(), n(), any::<u8>()).prop_map(|(o, n, v)| Step::Set(o, n, v)),
        1 => (o(), n()).prop_map(|(o, n)| Step::Unset(o, n)),
        1 => (o(), n(), prop::option::of(0..2u8), prop::option::of(0..2u8))
            .prop_map(|(o, n, e, v)| Step::Swap(o, n, e, v)),
        1 => (o(), any::<i64>()).prop_map(|(o, v)| Step::Add(o, v)),
        1 => o().prop_map(Step::Flush),
    ];
    prop::collection::vec(step, 1..MAX_STEPS)
}

/// After every step, the backend has the same answers as the model, and versions only grow.
pub fn agrees_with_the_model(subject: &Subject) {
    let case = Cell::new(0);
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&steps(), |steps| {
        case.set(case.get() + 1);
        let prefix = format!("case{}-", case.get());
        let names: Vec<ObjectId> = (0..3).map(|i| id(&format!("{prefix}{i}"))).collect();
        let mut models: [Option<Model>; 3] = Default::default();
        let mut highest = None;
        for step in steps {
            apply(&*subject.store, &names, &mut models, step);
            for (name, model) in names.iter().zip(&mut models) {
                compare(&*subject.store, name, model.as_mut(), &mut highest);
            }
            let alive: Vec<_> =
                names.iter().zip(&models).filter(|(_, m)| m.is_some()).map(|(n, _)| n.clone()).collect();
            assert_eq!(subject.store.list(&prefix, None, 10).unwrap(), alive);
        }
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

/// Does `step` on both. The answers must agree.
fn apply(store: &dyn ObjectStore, names: &[ObjectId], models: &mut [Option<Model>; 3], step: Step) {
    use Step::*;
    let (Create(o, _)
    | Remove(o)
    | Write(o, ..)
    | WriteIfFirst(o, _)
    | Scatter(o, ..)
    | Append(o, _)
    | Punch(o, ..)
    | Truncate(o, _)
    | Set(o, ..)
    | Unset(o, _)
    | Swap(o, ..)
    | Add(o, _)
    | Flush(o)) = step;
    let name = &names[o];
    if let Create(_, attribute) = step {
        let attributes = attribute.map(|value| (key(0), vec![value]));
        let options = CreateOptions { attributes: attributes.clone().into_iter().collect(), open: None };
        let created = store.create(name, &options);
        if models[o].is_some() {
            assert!(matches!(created, Err(StoreError::Exists { .. })));
        } else {
            let first = Some(created.unwrap().version);
            let attributes = attributes.into_iter().collect();
            models[o] = Some(Model { attributes, first, ..Model::default() });
        }
        return;
    }
    let Some(model) = &mut models[o] else {
        assert!(matches!(store.flush(name), Err(StoreError::NotFound { .. })));
        return;
    };
    let plain = WriteOptions::default();
    match step {
        Create(..) => {}
        Remove(_) => {
            store.remove(name).unwrap();
            models[o] = None;
        }
        Write(_, offset, data, attribute) => {
            let change = attribute.map(|(n, value)| (key(n), value.map(|value| vec![value])));
            let changes: Vec<_> = change.iter().map(|(n, value)| (n.as_str(), value.as_deref())).collect();
            let options = WriteOptions { attributes: &changes, if_version: None };
            store.write_at(name, offset, &data, options).unwrap();
            model.write(offset, &data);
            attribute.map(|(n, value)| model.set(n, value));
        }
        WriteIfFirst(_, data) => {
            let written =
                store.write_at(name, 0, &data, WriteOptions { if_version: model.first, attributes: &[] });
            if model.first == model.last {
                written.unwrap();
                model.write(0, &data);
            } else {
                assert!(matches!(written, Err(StoreError::Stale { .. })));
            }
        }
        Scatter(_, extents, value) => {
            let extents: Vec<_> = extents.into_iter().map(|(offset, len)| Extent { offset, len }).collect();
            let data: Vec<u8> = (0..extents.iter().map(|e| e.len).sum()).map(|i| value ^ i as u8).collect();
            store.write_extents(name, &extents, &data, plain).unwrap();
            let mut rest = &data[..];
            for extent in &extents {
                let (piece, tail) = rest.split_at(extent.len as usize);
                model.write(extent.offset, piece);
                rest = tail;
            }
            let mut back = vec![0; data.len()];
            store.read_extents(name, &extents, &mut back, ReadOptions::default()).unwrap();
            let places = extents.iter().flat_map(|e| e.offset..e.offset + e.len);
            assert!(back.iter().zip(places).all(|(byte, place)| *byte == model.bytes[place as usize]));
        }
        Append(_, data) => {
            let offset = model.bytes.len() as u64;
            assert_eq!(store.append(name, &data).unwrap().0, offset);
            model.write(offset, &data);
        }
        Punch(_, start, end) => {
            store.punch(name, start..end).unwrap();
            let end = (end as usize).min(model.bytes.len());
            if (start as usize) < end {
                model.bytes[start as usize..end].fill(0);
                model.written[start as usize..end].fill(false);
            }
        }
        Truncate(_, length) => {
            store.truncate(name, length).unwrap();
            model.resize(length as usize);
        }
        Set(_, n, value) => {
            store.set_attribute(name, &key(n), &[value]).unwrap();
            model.set(n, Some(value));
        }
        Unset(_, n) => assert_eq!(store.remove_attribute(name, &key(n)).unwrap(), model.set(n, None)),
        Swap(_, n, expected, new) => {
            let actual = model.attributes.get(&key(n)).cloned();
            let (expected, bytes) = (expected.map(|value| vec![value]), new.map(|value| vec![value]));
            let outcome =
                store.compare_and_swap(name, &key(n), expected.as_deref(), bytes.as_deref()).unwrap();
            if actual == expected {
                assert_eq!(outcome, CasOutcome::Swapped);
                model.set(n, new);
            } else {
                assert_eq!(outcome, CasOutcome::Mismatch { actual });
            }
        }
        Add(_, value) => {
            assert_eq!(store.fetch_add(name, "count", value).unwrap(), model.count);
            model.count = model.count.wrapping_add(value);
            model.attributes.insert("count".into(), model.count.to_le_bytes().to_vec());
        }
        Flush(_) => store.flush(name).unwrap(),
    }
}

/// Compares all that the store returns about an object.
fn compare(
    store: &dyn ObjectStore,
    name: &ObjectId,
    model: Option<&mut Model>,
    highest: &mut Option<Version>,
) {
    let Some(model) = model else {
        assert!(matches!(store.stat(name), Err(StoreError::NotFound { .. })));
        return;
    };
    let stat = store.stat(name).unwrap();
    assert!(model.last <= Some(stat.version), "a version became smaller");
    if model.last != Some(stat.version) {
        assert!(*highest < Some(stat.version), "a version was used twice");
    }
    model.last = Some(stat.version);
    *highest = (*highest).max(model.last);
    assert_eq!(stat.length, model.bytes.len() as u64);
    assert_eq!(all_bytes(store, name), model.bytes);
    let mut written = vec![false; model.bytes.len()];
    for interval in store.written(name, 0..u64::MAX).unwrap() {
        written[interval.start as usize..interval.end as usize].fill(true);
    }
    assert_eq!(written, model.written);
    let names: Vec<_> = model.attributes.keys().cloned().collect();
    assert_eq!(store.list_attributes(name).unwrap(), names);
    for (key, value) in &model.attributes {
        assert_eq!(store.get_attribute(name, key).unwrap().as_ref(), Some(value));
    }
}
