//! Reading files through and comparing them with their checksums: on a cluster, and in stores of this machine.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use gristmill_runtime::{Control, RunError};
use gristmill_store::{LocalStore, ObjectId, ObjectStore, StoreError};
use gristmill_wire::action::Opened;

use crate::{ClientError, Cluster, Descriptor};

/// Bytes of an object that are not those that were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file, or the store of this machine.
    pub path: String,
    /// Where the object is: a storage node, or a directory.
    pub place: String,
    /// The object.
    pub object: String,
    /// The bytes of it.
    pub bytes: Range<u64>,
}

/// The result of a scrub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubReport {
    /// Objects that were read.
    pub objects: u64,
    /// Bytes that are those that were written.
    pub checked: u64,
    /// Bytes of which nothing was known; they are checked from now on, where the store could be written.
    pub learnt: u64,
    /// The ranges that are damaged, at most one block each.
    pub damaged: Vec<Damage>,
}

/// How a scrub goes: how fast at most, who looks on, and whether it is to end.
pub struct ScrubPace<'a> {
    /// Bytes a second; `None` for as fast as it goes.
    pub rate: Option<u64>,
    /// Told to end.
    pub stop: &'a Control,
    /// Gets the bytes that were read so far.
    pub progress: &'a mut dyn FnMut(u64),
    begun: Instant,
    read: u64,
}

/// How long a scrub that waits sleeps before it looks whether it is to end.
const TICK: Duration = Duration::from_millis(50);

impl<'a> ScrubPace<'a> {
    /// Begins now.
    pub fn begin(rate: Option<u64>, stop: &'a Control, progress: &'a mut dyn FnMut(u64)) -> ScrubPace<'a> {
        ScrubPace { rate, stop, progress, begun: Instant::now(), read: 0 }
    }

    /// So many bytes more were read: waits until they may have been.
    fn read(&mut self, bytes: u64) {
        self.read += bytes;
        (self.progress)(self.read);
        let Some(rate) = self.rate.filter(|rate| *rate > 0) else { return };
        let due = Duration::from_secs_f64(self.read as f64 / rate as f64);
        while !self.stop.stopped() && self.begun.elapsed() < due {
            std::thread::sleep(TICK.min(due.saturating_sub(self.begun.elapsed())));
        }
    }

    /// # Errors
    /// It was told to end.
    fn goes_on(&self, what: &str) -> Result<(), ClientError> {
        if self.stop.stopped() { Err(crate::copy::stopped(Path::new(what))) } else { Ok(()) }
    }
}

impl Cluster {
    /// Scrubs an opened file of a cluster.
    ///
    /// # Errors
    /// A node that cannot be asked, a file that was replaced; damage is none.
    pub fn scrub_file(
        &self,
        opened: &Opened,
        pace: &mut ScrubPace<'_>,
        report: &mut ScrubReport,
    ) -> Result<(), ClientError> {
        let file = &opened.info.file;
        let layout = self.layout(opened)?;
        for (target, place) in (0..).zip(&file.targets) {
            // A target without a byte of the file has no object.
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

    /// Scrubs all files at or below a path.
    ///
    /// # Errors
    /// As [`scrub_file`](Cluster::scrub_file). Files that the asker may not read are errors, too.
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
        for (name, _) in self.files_in(path)? {
            let name = crate::remote_tree::join(path, &name);
            match self.open(&name) {
                Ok(opened) => self.scrub_file(&opened, pace, &mut report)?,
                // It was removed meanwhile.
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
/// A path that is neither; a store that cannot be read.
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

/// The store in a directory; for reading only where another process has it, or it may not be written.
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
            // It was removed meanwhile, by the process that writes.
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

/// Takes a step in, and gives the bytes that were read in it.
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
    let damaged: u64 = damaged.iter().map(|one| one.bytes.end.saturating_sub(one.bytes.start)).sum();
    checked.saturating_add(learnt).saturating_add(damaged)
}

/// A node says where the next step begins; one that does not go on is refused, so that no scrub lasts for ever.
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
