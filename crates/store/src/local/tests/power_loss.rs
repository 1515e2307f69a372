//! Random work until the process dies at some call, with or without loss of power. Then the store is opened again, and
//! must contain all acknowledged changes. There are three lives in one directory.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{data_files, id, open, scratch};
use crate::disk::faulty::{Dice, FaultyDisk};
use crate::local::LocalStore;
use crate::{CreateOptions, ObjectId, ObjectStore, ReadOptions, Result, StoreError, Version, WriteOptions};

const SEEDS: u64 = 600;
const LIVES: usize = 3;
const EIO: i32 = 5;

type Attributes = BTreeMap<String, Vec<u8>>;

/// Knowledge about one object.
#[derive(Clone, Default)]
struct Known {
    /// Length and attributes of the durable state; `None` if there is durably no object.
    durable: Option<(u64, Attributes)>,
    /// Present attributes, if the object exists.
    now: Option<Attributes>,
    /// All contents since the last flush; the content at the flush comes first.
    images: Vec<Vec<u8>>,
}

#[derive(Default)]
struct World {
    known: BTreeMap<ObjectId, Known>,
    /// The bytes of each version, over all lives.
    named: HashMap<(ObjectId, Version), Vec<u8>>,
    highest: HashMap<ObjectId, Version>,
}

impl World {
    fn note(&mut self, store: &LocalStore, id: &ObjectId, image: Vec<u8>) -> Result<()> {
        let version = store.stat(id)?.version;
        let before = self.named.insert((id.clone(), version), image.clone());
        assert!(before.is_none_or(|before| before == image), "{version} named two contents");
        let highest = self.highest.entry(id.clone()).or_insert(version);
        assert!(*highest <= version, "a version became smaller");
        *highest = version;
        self.known.get_mut(id).unwrap().images.push(image);
        Ok(())
    }

    /// Does one random operation. After an error, the durable state is the one before or the second returned value.
    fn step(&mut self, store: &LocalStore, dice: &mut Dice, id: &ObjectId) -> (Result<()>, Option<Known>) {
        let known = self.known.entry(id.clone()).or_default().clone();
        let Some(attributes) = known.now.clone() else {
            let value = vec![dice.roll(256) as u8];
            let options = CreateOptions { attributes: vec![("born".into(), value.clone())], open: None };
            let created = store.create(id, &options).and_then(|_| {
                let now = Some([("born".into(), value)].into());
                self.known.insert(id.clone(), Known { now, images: vec![], ..known });
                self.note(store, id, Vec::new())
            });
            return (created, None);
        };
        let mut image = known.images.last().unwrap().clone();
        let flushed = |attributes: &Attributes, image: &Vec<u8>| Known {
            durable: Some((image.len() as u64, attributes.clone())),
            now: Some(attributes.clone()),
            images: vec![image.clone()],
        };
        let fill = vec![dice.roll(255) as u8 + 1; dice.roll(70) as usize + 1];
        match dice.roll(9) {
            0..=2 => {
                let offset = dice.roll(160) as usize;
                image.resize(image.len().max(offset + fill.len()), 0);
                image[offset..offset + fill.len()].copy_from_slice(&fill);
                let value = [fill[0]];
                let options = WriteOptions { attributes: &[("mark", Some(&value))], if_version: None };
                let done = store
                    .write_at(id, offset as u64, &fill, options)
                    .and_then(|_| self.note(store, id, image.clone()));
                self.known.get_mut(id).unwrap().images.push(image);
                if done.is_ok() {
                    let now = self.known.get_mut(id).unwrap().now.as_mut().unwrap();
                    now.insert("mark".into(), value.to_vec());
                }
                (done, None)
            }
            3 => {
                let (start, len) = (dice.roll(160) as usize, dice.roll(80) as usize);
                let end = (start + len).min(image.len());
                image[start.min(end)..end].fill(0);
                self.known.get_mut(id).unwrap().images.push(image.clone());
                (
                    store
                        .punch(id, start as u64..(start + len) as u64)
                        .and_then(|_| self.note(store, id, image)),
                    None,
                )
            }
            4 => {
                let length = dice.roll(220);
                image.resize(length as usize, 0);
                self.known.get_mut(id).unwrap().images.push(image.clone());
                let mut shorter = self.known[id].clone();
                if let Some((durable, _)) = &mut shorter.durable {
                    *durable = length.min(*durable);
                }
                let done = store.truncate(id, length);
                if done.is_ok() {
                    self.known.insert(id.clone(), shorter.clone());
                }
                (done.and_then(|_| self.note(store, id, image)), Some(shorter))
            }
            5 => {
                let after = Known::default();
                let done = store.remove(id);
                if done.is_ok() {
                    self.known.insert(id.clone(), after.clone());
                }
                (done, Some(after))
            }
            6 => {
                let name = "count";
                let old =
                    attributes.get(name).map_or(0, |value| i64::from_le_bytes(value[..].try_into().unwrap()));
                let value = (old + 1).to_le_bytes().to_vec();
                // An object that was never flushed is flushed first, and the process may stop after that.
                let mut after = known.clone();
                after.now.as_mut().unwrap().insert(name.into(), value.clone());
                match &mut after.durable {
                    Some((_, durable)) => drop(durable.insert(name.into(), value)),
                    None => after = flushed(after.now.as_ref().unwrap(), &image),
                }
                let done = store.fetch_add(id, name, 1).map(|found| assert_eq!(found, old));
                if done.is_ok() {
                    self.known.insert(id.clone(), after.clone());
                    return (done, None);
                }
                let between = if known.durable.is_none() { flushed(&attributes, &image) } else { after };
                (done, Some(between))
            }
            _ => {
                let after = flushed(&attributes, &image);
                let done = store.flush(id);
                if done.is_ok() {
                    self.known.insert(id.clone(), after.clone());
                }
                (done, Some(after))
            }
        }
    }

    /// Checks a store that was opened again. `uncertain`: the object of the failed call and its other possible state.
    fn check(&mut self, store: &LocalStore, uncertain: Option<(ObjectId, Option<Known>)>) {
        let ids: Vec<_> = self.known.keys().cloned().collect();
        for id in ids {
            let before = &self.known[&id];
            let other =
                uncertain.as_ref().filter(|(object, _)| *object == id).and_then(|(_, other)| other.as_ref());
            let found = match store.stat(&id) {
                Err(StoreError::NotFound { .. }) => None,
                stat => Some(stat.unwrap()),
            };
            let names = found.map(|_| store.list_attributes(&id).unwrap()).unwrap_or_default();
            let attributes: Attributes = names
                .into_iter()
                .map(|n| (n.clone(), store.get_attribute(&id, &n).unwrap().unwrap()))
                .collect();
            let state = found.map(|stat| (stat.length, attributes.clone()));
            let fits = |known: &Known| known.durable == state;
            assert!(fits(before) || other.is_some_and(fits), "{id}: {state:?} after {:?}", before.durable);
            let Some(stat) = found else {
                self.known.insert(id, Known::default());
                continue;
            };
            let mut bytes = vec![0; stat.length as usize];
            let options = ReadOptions { if_version: Some(stat.version), verify: true };
            assert_eq!(store.read_at(&id, 0, &mut bytes, options).unwrap(), bytes.len());
            let images: Vec<_> = before.images.iter().chain(other.iter().flat_map(|o| &o.images)).collect();
            for (i, byte) in bytes.iter().enumerate() {
                let seen: BTreeSet<u8> =
                    images.iter().map(|image| image.get(i).copied().unwrap_or(0)).collect();
                assert!(
                    seen.contains(byte),
                    "{id}: byte {i} is {byte}, a value that it never had since the flush"
                );
            }
            match self.named.get(&(id.clone(), stat.version)) {
                Some(image) => assert_eq!(&bytes, image, "{} names other bytes now", stat.version),
                None => assert!(stat.version > self.highest[&id], "a version is unknown"),
            }
            let durable = Some((stat.length, attributes.clone()));
            self.known.insert(id.clone(), Known { durable, now: Some(attributes), images: vec![] });
            self.named.insert((id.clone(), stat.version), bytes.clone());
            let highest = self.highest.entry(id.clone()).or_insert(stat.version);
            *highest = stat.version.max(*highest);
            self.known.get_mut(&id).unwrap().images.push(bytes);
        }
    }
}

#[test]
fn acknowledged_data_survive_crashes() {
    let mut crashes = 0;
    for seed in 0..SEEDS {
        let dice = &mut Dice(seed);
        let parent = scratch();
        let dir = parent.path().join("store");
        let disk = FaultyDisk::new();
        open(&dir, &disk).unwrap().shut_down().unwrap();
        let mut world = World::default();
        let mut uncertain = None;
        for life in 0..LIVES {
            let store = open(&dir, &disk).unwrap_or_else(|error| panic!("seed {seed}, life {life}: {error}"));
            world.check(&store, uncertain.take());
            let alive = world.known.values().filter(|known| known.now.is_some()).count();
            assert_eq!(data_files(&dir), alive, "seed {seed}, life {life}: there are orphans");
            disk.fail_from(disk.calls() + dice.roll(120), EIO);
            for _ in 0..40 {
                let name = id(["a", "b", "c"][dice.roll(3) as usize]);
                let (done, other) = world.step(&store, dice, &name);
                if done.is_err() {
                    uncertain = Some((name, other));
                    crashes += 1;
                    break;
                }
            }
            disk.fail_from(0, EIO);
            drop(store);
            disk.heal();
            // Without loss of power, the process was killed: the files have all written bytes, synced or not.
            if dice.roll(3) > 0 {
                disk.lose_power(dice);
            }
        }
        // A clean end is durable too, and leaves no orphans.
        let store = open(&dir, &disk).unwrap();
        world.check(&store, uncertain);
        for known in world.known.iter().filter(|(_, known)| known.now.is_some()).map(|(id, _)| id) {
            if dice.roll(2) == 0 {
                store.remove(known).unwrap();
            }
        }
        let left = store.list("", None, 10).unwrap();
        world.known.retain(|id, _| left.contains(id));
        store.shut_down().unwrap();
        disk.lose_power(dice);
        world.check(&open(&dir, &disk).unwrap(), None);
        assert_eq!(data_files(&dir), left.len(), "seed {seed}: there are orphans after a clean end");
    }
    assert!(crashes > SEEDS, "the disk failed only {crashes} times during the work");
}
