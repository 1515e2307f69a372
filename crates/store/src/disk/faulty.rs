//! A disk for tests. It works on real files, can refuse calls, and can lose power, because it remembers unsynced
//! changes. After a loss of power, a seed decides whether each unsynced write, creation and removal happened, did not
//! happen or happened in part.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::{DataFile, Disk, RealDisk};
use crate::locks::lock;

/// Pseudo-random numbers (SplitMix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below `n`.
    pub(crate) fn roll(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

#[derive(Debug, Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Length(u64),
    Punch(u64, u64),
}

#[derive(Debug, Default, Clone)]
struct Content {
    durable: Vec<u8>,
    /// Unsynced changes. `true`: a failed sync dropped the bytes. No later sync restores them, but reads still return
    /// them, and the length stays.
    pending: Vec<(Change, bool)>,
}

#[derive(Default)]
struct State {
    calls: u64,
    /// Calls from this one on fail with this error.
    fail: Option<(u64, i32)>,
    files: BTreeMap<u64, Content>,
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    dirs: BTreeSet<PathBuf>,
    durable_dirs: BTreeSet<PathBuf>,
    /// Runs once, after the next read of a file and before its result is returned.
    after_read: Option<Box<dyn FnOnce() + Send>>,
}

#[derive(Clone, Default)]
pub(crate) struct FaultyDisk(Arc<Mutex<State>>);

struct FaultyFile {
    key: u64,
    real: Box<dyn DataFile>,
    state: Arc<Mutex<State>>,
}

impl State {
    /// Counts a call that may need the device, and refuses it if such calls fail now.
    fn gate(&mut self) -> io::Result<()> {
        self.calls += 1;
        match self.fail {
            Some((from, errno)) if self.calls > from => Err(io::Error::from_raw_os_error(errno)),
            _ => Ok(()),
        }
    }

    fn adopt(&mut self, path: &Path, durable: Vec<u8>) -> u64 {
        let key = self.files.len() as u64;
        self.files.insert(key, Content { durable, pending: Vec::new() });
        self.names.insert(path.into(), key);
        key
    }

    fn record(&mut self, key: u64, change: Change) {
        self.files.get_mut(&key).unwrap().pending.push((change, false));
    }
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write(offset, data) => {
            let (start, end) = (*offset as usize, *offset as usize + data.len());
            bytes.resize(bytes.len().max(end), 0);
            bytes[start..end].copy_from_slice(data);
        }
        Change::Length(length) => bytes.resize(*length as usize, 0),
        Change::Punch(offset, len) => {
            let end = ((offset + len) as usize).min(bytes.len());
            bytes[(*offset as usize).min(end)..end].fill(0);
        }
    }
}

impl FaultyDisk {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn calls(&self) -> u64 {
        lock(&self.0).calls
    }

    /// Makes calls fail with `errno` from call number `from` on, counted from 0 since the disk was made.
    pub(crate) fn fail_from(&self, from: u64, errno: i32) {
        lock(&self.0).fail = Some((from, errno));
    }

    /// Runs `act` between the next read of a file and the use of its bytes by the store.
    pub(crate) fn after_read(&self, act: impl FnOnce() + Send + 'static) {
        lock(&self.0).after_read = Some(Box::new(act));
    }

    pub(crate) fn heal(&self) {
        lock(&self.0).fail = None;
    }

    /// Changes the real files to what the device would contain, as `dice` decide. Every store on this disk must be
    /// dropped before.
    pub(crate) fn lose_power(&self, dice: &mut Dice) {
        let mut state = lock(&self.0);
        let lost: Vec<PathBuf> =
            state.dirs.difference(&state.durable_dirs).filter(|_| dice.roll(2) == 0).cloned().collect();
        let mut kept = BTreeMap::new();
        let paths: BTreeSet<_> = state.names.keys().chain(state.durable_names.keys()).cloned().collect();
        for path in paths {
            let (now, before) = (state.names.get(&path), state.durable_names.get(&path));
            let key = if now == before || dice.roll(2) == 0 { before } else { now };
            if let Some(key) = key.filter(|_| !lost.iter().any(|dir| path.starts_with(dir))) {
                kept.insert(path.clone(), *key);
            }
            let _ = std::fs::remove_file(&path);
        }
        for (path, key) in kept {
            let content = &state.files[&key];
            let mut bytes = content.durable.clone();
            for (change, _) in &content.pending {
                match (dice.roll(5), change) {
                    (0, _) => {}
                    (1, Change::Write(offset, data)) => {
                        let part = dice.roll(data.len() as u64 + 1) as usize;
                        apply(&mut bytes, &Change::Write(*offset, data[..part].to_vec()));
                    }
                    // The length reached the device, and the bytes did not.
                    (2, Change::Write(offset, data)) => {
                        let length = bytes.len().max(*offset as usize + data.len());
                        bytes.resize(length, 0);
                    }
                    _ => apply(&mut bytes, change),
                }
            }
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, bytes).unwrap();
        }
        for dir in lost.iter().rev() {
            let _ = std::fs::remove_dir_all(dir);
        }
        *state = State::default();
    }
}

impl FaultyDisk {
    fn create_with(
        &self,
        path: &Path,
        create: impl FnOnce(&Path) -> io::Result<Box<dyn DataFile>>,
    ) -> io::Result<Box<dyn DataFile>> {
        let mut state = lock(&self.0);
        state.gate()?;
        let real = create(path)?;
        let key = state.adopt(path, Vec::new());
        Ok(Box::new(FaultyFile { key, real, state: self.0.clone() }))
    }
}

impl Disk for FaultyDisk {
    fn create_dir(&self, path: &Path) -> io::Result<bool> {
        let mut state = lock(&self.0);
        state.gate()?;
        let made = RealDisk.create_dir(path)?;
        if made {
            state.dirs.insert(path.into());
        }
        Ok(made)
    }

    fn create_file(&self, path: &Path) -> io::Result<Box<dyn DataFile>> {
        self.create_with(path, |path| RealDisk.create_file(path))
    }

    fn create_private_file(&self, path: &Path) -> io::Result<Box<dyn DataFile>> {
        self.create_with(path, |path| RealDisk.create_private_file(path))
    }

    fn open_file(&self, path: &Path, write: bool) -> io::Result<Box<dyn DataFile>> {
        let mut state = lock(&self.0);
        let real = RealDisk.open_file(path, write)?;
        let key = match state.names.get(path) {
            Some(&key) => key,
            // A file that is older than this disk is durable.
            None => {
                let key = state.adopt(path, std::fs::read(path)?);
                state.durable_names.insert(path.into(), key);
                key
            }
        };
        Ok(Box::new(FaultyFile { key, real, state: self.0.clone() }))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = lock(&self.0);
        state.gate()?;
        if !state.names.contains_key(path) && path.exists() {
            let key = state.adopt(path, std::fs::read(path)?);
            state.durable_names.insert(path.into(), key);
        }
        RealDisk.remove_file(path)?;
        state.names.remove(path);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = lock(&self.0);
        state.gate()?;
        if !state.names.contains_key(to) && to.exists() {
            let key = state.adopt(to, std::fs::read(to)?);
            state.durable_names.insert(to.into(), key);
        }
        RealDisk.rename(from, to)?;
        let key = state.names.remove(from).unwrap();
        state.names.insert(to.into(), key);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = lock(&self.0);
        state.gate()?;
        let State { names, durable_names, dirs, durable_dirs, .. } = &mut *state;
        durable_names.retain(|name, _| name.parent() != Some(path));
        let in_directory = |name: &&PathBuf| name.parent() == Some(path);
        durable_names.extend(
            names.iter().filter(|(name, _)| in_directory(name)).map(|(name, key)| (name.clone(), *key)),
        );
        durable_dirs.extend(dirs.iter().filter(in_directory).cloned());
        Ok(())
    }

    fn before_commit(&self, _: &Path) -> io::Result<()> {
        lock(&self.0).gate()
    }
}

impl DataFile for FaultyFile {
    fn len(&self) -> io::Result<u64> {
        self.real.len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.real.read_at(buffer, offset);
        let act = lock(&self.state).after_read.take();
        if let Some(act) = act {
            act();
        }
        read
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = lock(&self.state);
        let gate = state.gate();
        // A refused write may have written a part.
        let data = if gate.is_err() { &data[..data.len() / 2] } else { data };
        state.record(self.key, Change::Write(offset, data.to_vec()));
        super::write_full(&*self.real, data, offset)?;
        gate.map(|()| data.len())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.gate()?;
        state.record(self.key, Change::Length(length));
        self.real.set_len(length)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.gate()?;
        state.record(self.key, Change::Punch(offset, len));
        self.real.punch(offset, len)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = lock(&self.state);
        let gate = state.gate();
        let content = state.files.get_mut(&self.key).unwrap();
        if let Err(error) = gate {
            content.pending.iter_mut().for_each(|(_, dropped)| *dropped = true);
            return Err(error);
        }
        for (change, dropped) in std::mem::take(&mut content.pending) {
            let change = match change {
                Change::Write(offset, data) if dropped => {
                    Change::Length(content.durable.len().max(offset as usize + data.len()) as u64)
                }
                change => change,
            };
            apply(&mut content.durable, &change);
        }
        Ok(())
    }

    fn write_behind(&self, _: u64, _: u64) {}

    fn advise_sequential(&self) -> io::Result<()> {
        Ok(())
    }

    fn drop_cache(&self, _: u64, _: u64) -> io::Result<()> {
        let state = lock(&self.state);
        let content = &state.files[&self.key];
        assert!(content.pending.is_empty(), "only synced bytes can be dropped");
        self.real.set_len(content.durable.len() as u64)?;
        super::write_full(&*self.real, &content.durable, 0)
    }
}
