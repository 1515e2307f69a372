//! Comparison of stored bytes with their checksums, on a cluster and in stores of this machine.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use gristmill_runtime::{Control, ErrorKind, RunError};
use gristmill_store::{LocalStore, ObjectId, ObjectStore, StoreError};
use gristmill_wire::action::Opened;

use crate::{ClientError, Cluster, Descriptor};

/// Damaged bytes of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Path of the file, or of the store of this machine.
    pub path: String,
    /// The storage node or the directory that holds the object.
    pub place: String,
    /// Name of the object.
    pub object: String,
    /// The damaged range of bytes.
    pub bytes: Range<u64>,
}

/// The result of a scrub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubReport {
    /// Number of objects that were read.
    pub objects: u64,
    /// Bytes that match their checksums.
    pub checked: u64,
    /// Bytes without checksums. They get checksums if the store can be written.
    pub learnt: u64,
    /// The damaged ranges, of at most one block each. A lost object is one range.
    pub damaged: Vec<Damage>,
}

/// The pace of a scrub: its highest rate, its control and its reports of progress.
pub struct ScrubPace<'a> {
    /// Highest rate in bytes per second; `None` is unlimited.
    pub rate: Option<u64>,
    /// Control that can stop the scrub.
    pub stop: &'a Control,
    /// Function that gets the bytes read so far.
    pub progress: &'a mut dyn FnMut(u64),
    begun: Instant,
    read: u64,
}

/// Time that a waiting scrub sleeps before it checks whether it is stopped.
const TICK: Duration = Duration::from_millis(50);

impl<'a> ScrubPace<'a> {
    /// Begins a scrub now.
    pub fn begin(rate: Option<u64>, stop: &'a Control, progress: &'a mut dyn FnMut(u64)) -> ScrubPace<'a> {
        ScrubPace { rate, stop, progress, begun: Instant::now(), read: 0 }
    }

    /// Counts bytes that were read, and waits until the rate allows more.
    fn read(&mut self, bytes: u64) {
        self.read += bytes;
        (self.progress)(self.read);
        let Some(rate) = self.rate.filter(|rate| *rate > 0) else { return };
        let due = Duration::from_secs_f64(self.read as f64 / rate as f64);
        while !self.stop.stopped() && self.begun.elapsed() < due {
            std::thread::sleep(TICK.min(due.saturating_sub(self.begun.elapsed())));
        }
    }

    /// Checks whether the scrub may go on.
    ///
    /// # Errors
    /// Returns an error if the scrub is stopped.
    fn goes_on(&self, what: &str) -> Result<(), ClientError> {
        if self.stop.stopped() { Err(crate::copy::stopped(Path::new(what))) } else { Ok(()) }
    }
}

impl Cluster {
    /// Scrubs an opened file of a cluster.
    ///
    /// # Errors
    /// Returns an error if a node cannot be reached, if the file was replaced, or if it is in an attached tree. Damage is not an error.
    pub fn scrub_file(
        &self,
        opened: &Opened,
        pace: &mut ScrubPace<'_>,
        report: &mut ScrubReport,
    ) -> Result<(), ClientError> {
        let file = &opened.info.file;
        if file.attached.is_some() {
            let message =
                format!("{} is in an attached tree; only files of the cluster have checksums", file.path);
            return Err(RunError::Remote { kind: ErrorKind::Usage, message }.into());
        }
        let layout = self.layout(opened)?;
        for (target, place) in (0..).zip(&file.targets) {
            // A target without bytes of the file has no object.
            if layout.bytes_on(target, 0..file.length) == 0 {
                continue;
            }
            let (target, mut from) = (target as usize, 0);
            report.objects += 1;
            loop {
                pace.goes_on(&file.path)?;
                let step = self.peers.wait(self.peers.scrub(file, target, &opened.grant, from));
                let step = step.map_err(|error| self.explain(file, error))?;
                let damaged = step.damaged.iter().map(|&(start, end)| Damage {
                    path: file.path.clone(),
                    place: format!("storage node {} ({})", place.number, place.address),
                    object: file.object(),
                    bytes: start..end,
                });
                let next = step.next.map(|next| ahead(next, from)).transpose()?;
                pace.read(add(report, (step.checked, step.learnt), damaged));
                match next {
                    Some(next) => from = next,
                    None => break,
                }
            }
        }
        Ok(())
    }

    /// Scrubs all files at or below a path, but none of attached trees below it: they have no checksums.
    ///
    /// # Errors
    /// It fails as [`scrub_file`](Cluster::scrub_file) does, and if the client may not read a file.
    pub fn scrub(&self, path: &str, pace: &mut ScrubPace<'_>) -> Result<ScrubReport, ClientError> {
        let mut report = ScrubReport::default();
        let opened = match self.open(path) {
            Ok(opened) => Some(opened),
            Err(error) if error.is_missing() && self.is_directory(path)? => None,
            Err(error) => return Err(error),
        };
        if let Some(opened) = opened {
            self.scrub_file(&opened, pace, &mut report)?;
            return Ok(report);
        }
        for (name, _) in self.own_files_in(path)? {
            let name = crate::remote_tree::join(path, &name);
            match self.open(&name) {
                Ok(opened) => self.scrub_file(&opened, pace, &mut report)?,
                // The file was removed meanwhile.
                Err(error) if error.is_missing() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(report)
    }
}

/// Scrubs the objects of a striped file of this machine, or all objects of a store in a directory.
///
/// # Errors
/// Returns an error if the path is neither, or if a store cannot be read.
pub fn scrub_local(path: &Path, pace: &mut ScrubPace<'_>) -> Result<ScrubReport, ClientError> {
    let mut report = ScrubReport::default();
    if path.is_dir() {
        let store = open_store(path)?;
        let mut after = None;
        loop {
            let page = store.list("", after.as_ref(), gristmill_store::MAX_LIST_PAGE);
            let page = page.map_err(|source| failed(path, source))?;
            let Some(last) = page.last() else { return Ok(report) };
            after = Some(last.clone());
            for id in page {
                scrub_object(&*store, path, path, &id, pace, &mut report)?;
            }
        }
    }
    let descriptor = Descriptor::read(path)?;
    let id = ObjectId::new(&descriptor.object).map_err(StoreError::from)?;
    for dir in descriptor.target_dirs(path) {
        scrub_object(&*open_store(&dir)?, path, &dir, &id, pace, &mut report)?;
    }
    Ok(report)
}

/// Opens the store in a directory. The store is opened for reading only if another process has it, or if it cannot be
/// written.
fn open_store(dir: &Path) -> Result<Box<dyn ObjectStore>, ClientError> {
    let reading = || LocalStore::open_read_only(dir).map(|store| Box::new(store) as Box<dyn ObjectStore>);
    let found = reading().map_err(|source| failed(dir, source))?;
    match LocalStore::open(dir) {
        Ok(store) => Ok(Box::new(store)),
        Err(StoreError::Locked { .. } | StoreError::Permission { .. }) => Ok(found),
        Err(source) => Err(failed(dir, source)),
    }
}

fn scrub_object(
    store: &dyn ObjectStore,
    path: &Path,
    dir: &Path,
    id: &ObjectId,
    pace: &mut ScrubPace<'_>,
    report: &mut ScrubReport,
) -> Result<(), ClientError> {
    let mut from = 0;
    report.objects += 1;
    loop {
        pace.goes_on(&path.display().to_string())?;
        let step = match store.scrub(id, from) {
            // Another process removed the object meanwhile.
            Err(StoreError::NotFound { .. }) if path == dir => return Ok(()),
            step => step.map_err(|source| failed(dir, source))?,
        };
        let damaged = step.damaged.iter().map(|bytes| Damage {
            path: path.display().to_string(),
            place: dir.display().to_string(),
            object: id.to_string(),
            bytes: bytes.clone(),
        });
        pace.read(add(report, (step.checked, step.learnt), damaged));
        match step.next {
            Some(next) => from = next,
            None => return Ok(()),
        }
    }
}

/// Most bytes of one damaged range that count as read. A lost object has one long range, of which nothing was read.
const MAX_DAMAGE_READ: u64 = 64 * 1024;

/// Adds a step to the report, and returns the bytes that the step read.
fn add(
    report: &mut ScrubReport,
    (checked, learnt): (u64, u64),
    damaged: impl Iterator<Item = Damage>,
) -> u64 {
    let before = report.damaged.len();
    report.damaged.extend(damaged);
    report.checked = report.checked.saturating_add(checked);
    report.learnt = report.learnt.saturating_add(learnt);
    let damaged = report.damaged.get(before..).unwrap_or_default();
    let read = |one: &Damage| one.bytes.end.saturating_sub(one.bytes.start).min(MAX_DAMAGE_READ);
    let damaged: u64 = damaged.iter().map(read).sum();
    checked.saturating_add(learnt).saturating_add(damaged)
}

/// Checks the begin of the next step, which a node named. A step that does not advance is an error, so that a scrub
/// ends.
fn ahead(next: u64, from: u64) -> Result<u64, RunError> {
    if next > from {
        return Ok(next);
    }
    Err(RunError::Remote {
        kind: gristmill_runtime::ErrorKind::Failed,
        message: format!("a storage node scrubbed up to byte {from} and begins again at {next}; report it"),
    })
}

fn failed(dir: &Path, source: StoreError) -> ClientError {
    ClientError::Target { target: dir.to_owned(), source }
}
