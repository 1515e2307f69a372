//! Creation, replacement and removal of striped files.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gristmill_layout::{Layout, Striped, fit_unit};
use gristmill_runtime::FileParts;
use gristmill_store::{
    ArrivalState, CreateOptions, LocalStore, ObjectId, ObjectStore, StoreError, WriteOptions, write_atomic,
};

use crate::{ClientError, Descriptor, EXTENSION};

/// Default stripe unit, in bytes.
pub const DEFAULT_UNIT: u64 = 1 << 20;

/// Most targets of a file on one machine.
pub const MAX_LOCAL_TARGETS: usize = 256;

/// Start of the names of our objects.
const PREFIX: &str = "file-";

/// Objects that are listed at once.
const LIST_PAGE: usize = 256;

/// Lease of a put. A put may take longer, because only the next put to the target looks at the lease.
const LEASE: Duration = Duration::from_secs(24 * 3600);

/// Bytes collected for a target before they are written.
const WRITE_BYTES: usize = 256 << 10;

/// Options for striping a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutOptions {
    /// Directories of the targets' stores, in the order in which stripes are dealt. A missing directory is made if its
    /// parent exists.
    pub targets: Vec<PathBuf>,
    /// Stripe unit in bytes.
    pub unit: u64,
    /// Size of a record in bytes. The unit is rounded up to whole records, so that no record lies on two targets.
    pub record: Option<u64>,
}

/// A target while a file is written to it.
struct Target {
    dir: PathBuf,
    store: LocalStore,
    pending: Vec<u8>,
    written: u64,
}

impl Target {
    fn failed(&self, source: StoreError) -> ClientError {
        ClientError::Target { target: self.dir.clone(), source }
    }

    fn write(&mut self, object: &ObjectId, bytes: &[u8]) -> Result<(), ClientError> {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= WRITE_BYTES { self.drain(object) } else { Ok(()) }
    }

    fn drain(&mut self, object: &ObjectId) -> Result<(), ClientError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let wrote = self.store.write_at(object, self.written, &self.pending, WriteOptions::default());
        wrote.map_err(|e| self.failed(e))?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }
}

/// Copies `source`, plain or striped, to objects on the targets and makes it visible as the layout file `path`.
/// `progress` gets the bytes copied so far. An existing layout file is replaced; any other file of that name is left as
/// it is.
///
/// # Errors
/// The error is [`ClientError::Usage`] if `path` cannot be a layout file, if there are no targets or too many, or if a
/// target is given twice; [`ClientError::Layout`] if there is no such layout; [`ClientError::Target`] if the store of a
/// target fails; and [`ClientError::Store`] if the layout file cannot be written. It also fails if the file at `path`
/// is not a layout file, if `source` cannot be read, and if it was changed meanwhile. If a store cannot be closed or
/// the objects of the replaced file cannot be removed, it fails but the new file is in place.
pub fn put(
    source: &Path,
    path: &Path,
    options: &PutOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Descriptor, ClientError> {
    let old = check(path, options)?;
    let file = crate::open(source)?;
    let unit = match options.record {
        Some(record) => fit_unit(options.unit, record)?,
        None => options.unit,
    };
    let striped = Striped::new(unit, options.targets.len() as u32, 0)?;
    let object = format!("{PREFIX}{:016x}", fastrand::u64(..));
    let id = ObjectId::new(&object).map_err(StoreError::from)?;
    let mut targets = Vec::new();
    let mut opened: Vec<PathBuf> = Vec::new();
    for dir in &options.targets {
        // Names are resolved first: two names of one target would only fail at its lock.
        if dir.canonicalize().is_ok_and(|known| opened.contains(&known)) {
            return Err(twice(dir));
        }
        let store = LocalStore::open(dir);
        let store = store.map_err(|e| ClientError::Target { target: dir.clone(), source: e })?;
        collect(&store).map_err(|e| ClientError::Target { target: dir.clone(), source: e })?;
        opened.extend(dir.canonicalize());
        targets.push(Target { dir: dir.clone(), store, pending: Vec::new(), written: 0 });
    }
    let copied = copy(&file, &striped, &id, &mut targets, progress);
    let made = copied.and_then(|()| {
        let targets = options.targets.iter().map(|dir| absolute(dir)).collect::<Result<_, _>>()?;
        let descriptor = Descriptor::new(file.length, striped, object, targets);
        let text = serde_json::to_vec_pretty(&descriptor)
            .map_err(|e| ClientError::Descriptor { path: path.to_owned(), why: e.to_string() })?;
        write_atomic(path, &text)?;
        Ok(descriptor)
    });
    if made.is_err() && !may_name(path, &id) {
        // Nothing points to these objects. An object that cannot be removed now only takes space.
        for target in &targets {
            let _ = target.store.remove(&id);
        }
    }
    for target in targets {
        let Target { dir, store, .. } = target;
        let closed = store.shut_down().map_err(|source| ClientError::Target { target: dir, source });
        if made.is_ok() {
            closed?;
        }
    }
    let made = made?;
    if let Some(old) = old {
        remove_objects(&old, path)?;
    }
    Ok(made)
}

/// Returns whether a layout file points to an object, or cannot be read. A layout file may be in place although writing
/// it failed, if only the sync of its directory failed.
fn may_name(path: &Path, id: &ObjectId) -> bool {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        _ => Descriptor::read(path).map_or(true, |descriptor| descriptor.object == id.as_str()),
    }
}

/// Checks the request, and returns the layout file to replace, if there is one.
fn check(path: &Path, options: &PutOptions) -> Result<Option<Descriptor>, ClientError> {
    let usage = |text: String| Err(ClientError::Usage(text));
    if path.extension().is_none_or(|extension| extension != EXTENSION) {
        return usage(format!(
            "a striped file is named by its layout file, which must end in .{EXTENSION}: try {}.{EXTENSION}",
            path.display()
        ));
    }
    if options.targets.is_empty() || options.targets.len() > MAX_LOCAL_TARGETS {
        return usage(format!(
            "give 1 to {MAX_LOCAL_TARGETS} target directories, not {}",
            options.targets.len()
        ));
    }
    for (n, target) in options.targets.iter().enumerate() {
        if options.targets[..n].contains(target) {
            return Err(twice(target));
        }
    }
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ClientError::Io { verb: "read", path: path.to_owned(), source }),
        Ok(meta) if meta.is_dir() => usage(format!("{} is a directory; give a file name", path.display())),
        Ok(_) => Descriptor::read(path).map(Some),
    }
}

fn twice(target: &Path) -> ClientError {
    ClientError::Usage(format!("the target {} is given twice; each must be its own", target.display()))
}

fn absolute(dir: &Path) -> Result<PathBuf, ClientError> {
    std::path::absolute(dir).map_err(|source| ClientError::Io { verb: "read", path: dir.to_owned(), source })
}

fn copy(
    file: &FileParts,
    striped: &Striped,
    id: &ObjectId,
    targets: &mut [Target],
    progress: &mut dyn FnMut(u64),
) -> Result<(), ClientError> {
    let arriving = CreateOptions { open: Some(LEASE), ..CreateOptions::default() };
    for target in &*targets {
        target.store.create(id, &arriving).map_err(|e| target.failed(e))?;
    }
    let layout = Layout::from(*striped);
    let mut buffer = vec![0; WRITE_BYTES];
    let mut at = 0;
    while at < file.length {
        let end = file.length.min(at + WRITE_BYTES as u64);
        let read = &mut buffer[..(end - at) as usize];
        file.read(at..end, read)?;
        for extent in layout.extents(at..end) {
            let bytes = &read[(extent.file.start - at) as usize..(extent.file.end - at) as usize];
            if let Some(target) = targets.get_mut(extent.target as usize) {
                target.write(id, bytes)?;
            }
        }
        at = end;
        progress(at);
    }
    // A source that changed meanwhile would leave a mixture.
    for part in &file.parts {
        part.unchanged()?;
    }
    for target in targets.iter_mut() {
        target.drain(id)?;
        target.store.flush(id).map_err(|e| target.failed(e))?;
    }
    // All objects are closed before the rename. A crash in between leaves objects that are never collected. A layout
    // file never names an object that is still open.
    for target in targets {
        target.store.close(id).map_err(|e| target.failed(e))?;
    }
    Ok(())
}

/// Removes the objects of interrupted puts: they are still open although this process has the store's only writing
/// lock.
fn collect(store: &LocalStore) -> Result<(), StoreError> {
    let mut after: Option<ObjectId> = None;
    loop {
        let page = store.list(PREFIX, after.as_ref(), LIST_PAGE)?;
        for id in &page {
            if store.stat(id)?.state != ArrivalState::Closed {
                store.remove(id)?;
            }
        }
        match page.last() {
            Some(last) => after = Some(last.clone()),
            None => return Ok(()),
        }
    }
}

/// Removes a striped file: first the layout file, then the objects.
///
/// # Errors
/// The error is [`ClientError::Usage`] if `path` does not name a layout file, [`ClientError::Io`] if it cannot be
/// removed, and [`ClientError::Target`] if an object cannot be; the layout file is gone then. It also fails as
/// [`Descriptor::read`] does.
pub fn remove(path: &Path) -> Result<(), ClientError> {
    if path.extension().is_none_or(|extension| extension != EXTENSION) {
        return Err(ClientError::Usage(format!(
            "{} is not a layout file (*.{EXTENSION}); remove plain files with rm",
            path.display()
        )));
    }
    let descriptor = Descriptor::read(path)?;
    std::fs::remove_file(path).map_err(|source| ClientError::Io {
        verb: "remove",
        path: path.to_owned(),
        source,
    })?;
    remove_objects(&descriptor, path)
}

fn remove_objects(descriptor: &Descriptor, path: &Path) -> Result<(), ClientError> {
    let id = ObjectId::new(&descriptor.object).map_err(StoreError::from)?;
    for dir in descriptor.target_dirs(path) {
        let removed = LocalStore::open(&dir).and_then(|store| match store.remove(&id) {
            Ok(()) | Err(StoreError::NotFound { .. }) => store.shut_down(),
            Err(error) => Err(error),
        });
        removed.map_err(|source| ClientError::Target { target: dir, source })?;
    }
    Ok(())
}
