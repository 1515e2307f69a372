//! Files that this process reads and folds itself: those of this machine, of object stores and of web servers.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_backend::{Backend, BackendError, Content, Entry, Key, Kind, WholeRecords};
use gristmill_format::{Dataset, FormatError};
use gristmill_kernel::{Input, RecordRule};
use gristmill_runtime::{FileParts, Placement, RunError};
use gristmill_sources::{Scheme, SourceUrl, Sources, SourcesOptions};
use gristmill_wire::action::Growing;

use crate::array::{ArrayPlan, ArrayQuestion, Folder, plan_array, plan_dataset, read_dataset};
use crate::{ClientError, EXTENSION, Location, open_with};

/// Files that mark a folder as Zarr.
const ZARR: [&str; 3] = ["zarr.json", ".zgroup", ".zarray"];

/// Placement of requests over files of object stores and web servers.
const OUTSIDE: Placement = Placement {
    place: "client",
    why: "a file of an object store or of a web server is read and folded by the process that asks",
    remote: true,
};

/// Most names of a folder of an object store or of a web server that are listed.
pub const MAX_OUTSIDE_NAMES: usize = 1_000_000;

/// The reader of the files, in reports.
const READER: &str = "this process";

/// A file, or a folder of Zarr, that this process reads itself.
///
/// ```
/// use gristmill_client::{Here, Location};
///
/// let dir = tempfile::tempdir()?;
/// std::fs::write(dir.path().join("x.f64"), 1.5f64.to_le_bytes())?;
/// let location = Location::parse(&dir.path().join("x.f64").to_string_lossy())?;
/// assert!(matches!(Here::open(&location, false)?, Here::File(file) if file.length == 8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub enum Here {
    /// One file.
    File(FileParts),
    /// A folder of Zarr.
    Folder(Folder),
}

impl Here {
    /// Opens a file, striped or not, or a folder of Zarr. With `verify` all bytes of a striped file that are read are compared with
    /// their checksums.
    ///
    /// # Errors
    /// Returns the errors of [`open_file`], and those of [`Folder::open`] for a folder.
    pub fn open(location: &Location, verify: bool) -> Result<Here, ClientError> {
        match location {
            Location::Local(path) if is_zarr(path) => Ok(Here::Folder(Folder::open(path)?)),
            Location::Outside(url) => Here::outside(url),
            location => open_file(location, verify).map(Here::File),
        }
    }

    fn outside(url: &SourceUrl) -> Result<Here, ClientError> {
        let error = match file_of(url) {
            Ok(file) => return Ok(Here::File(file)),
            Err(error) => error,
        };
        if matches!(error, BackendError::NotFound { .. } | BackendError::WrongKind { kind: Kind::Folder, .. })
        {
            let folder = sources().and_then(|sources| sources.open(url)).map_err(RunError::from)?;
            if has_zarr(&*folder)? {
                return Ok(Here::Folder(Folder::of_backend(folder, OUTSIDE)?));
            }
        }
        Err(RunError::from(error).into())
    }

    /// The variables of the file or folder.
    ///
    /// # Errors
    /// Returns the errors of [`read_dataset`].
    pub fn dataset(&self) -> Result<Arc<Dataset>, FormatError> {
        match self {
            Here::File(file) => Ok(Arc::new(read_dataset(file, &file.name)?)),
            Here::Folder(folder) => Ok(folder.dataset.clone()),
        }
    }

    /// Plans a request about a variable. Returns the plan, and the bytes that it reads as one file.
    ///
    /// # Errors
    /// Returns the errors of [`plan_array`](crate::plan_array) and of [`Folder::parts`].
    pub fn plan(&self, question: &ArrayQuestion) -> Result<(ArrayPlan, FileParts), ClientError> {
        match self {
            Here::File(file) => Ok((plan_array(file, question)?, file.clone())),
            Here::Folder(folder) => {
                let plan = plan_dataset(folder.dataset.clone(), question)?;
                let file = folder.parts(plan.files())?;
                Ok((plan, file))
            }
        }
    }
}

/// Opens one file that this process reads itself, as [`Here::open`] does.
///
/// # Errors
/// Returns the errors of [`open_with`] for a file of this machine. The error is [`ClientError::Run`] if there is no such file in an
/// object store or on a web server, or if it cannot be read. It is [`RunError::Internal`] for a file of a cluster.
pub fn open_file(location: &Location, verify: bool) -> Result<FileParts, ClientError> {
    match location {
        Location::Local(path) => open_with(path, verify),
        Location::Outside(url) => Ok(file_of(url).map_err(RunError::from)?),
        Location::Remote(_) => {
            Err(RunError::Internal { what: "a file of a cluster was opened as one of this process" }.into())
        }
    }
}

/// The records of an input, for a file to which programs append. The input is that of the bound kernel
/// ([`Input::for_kernel`]).
pub fn growing_records(input: &Input) -> Growing {
    let record = match input.record {
        RecordRule::Fixed(bytes) => Some(bytes),
        RecordRule::Lines => None,
    };
    Growing { header: input.header, record }
}

/// Opens the whole records that a file of this machine has now, although programs append to it.
///
/// # Errors
/// The error is [`ClientError::Usage`] for a file of an object store or of a web server, and for a striped file: they are read whole. It
/// also fails as [`open_file`] does.
pub fn open_growing(location: &Location, growing: Growing) -> Result<FileParts, ClientError> {
    match location {
        Location::Local(path) if path.extension().is_none_or(|extension| extension != EXTENSION) => {
            Ok(FileParts::growing(path, WholeRecords::new(growing.header, growing.record))?)
        }
        location => {
            let text =
                format!("{location} is read as a whole; only plain files and files of attached mounts grow");
            Err(ClientError::Usage(text))
        }
    }
}

/// Whether a folder of this machine holds Zarr.
pub fn is_zarr(path: &Path) -> bool {
    path.is_dir() && ZARR.iter().any(|name| path.join(name).is_file())
}

/// The names of a folder of an object store or of a web server, with their URLs.
pub struct OutsideNames {
    /// The entries, each with its URL.
    pub entries: Vec<(SourceUrl, Entry)>,
    /// Whether the URL names a file, which is the only entry.
    pub is_file: bool,
}

/// Lists a folder of an object store or of a web server in the order of the bytes of names, at most [`MAX_OUTSIDE_NAMES`]. For a file
/// it lists the file. What cannot be read is listed with the reason.
///
/// # Errors
/// The error is [`ClientError::Run`] if there is no such folder, if it has more names, or if it cannot be listed.
pub fn list_outside(url: &SourceUrl) -> Result<OutsideNames, ClientError> {
    let below = |entries: Vec<Entry>| {
        let named = entries.into_iter().map(|entry| Ok((url.below(&Key::new(entry.name.as_str())?)?, entry)));
        Ok(OutsideNames { entries: named.collect::<Result<_, BackendError>>()?, is_file: false })
    };
    let listed = || {
        let sources = sources()?;
        let Some((above, name)) = url.split_name() else {
            return below(sources.open(url)?.list_all(&Key::ROOT, MAX_OUTSIDE_NAMES)?);
        };
        let (above, key) = (sources.open(&above)?, Key::new(name.as_str())?);
        match above.list_all(&key, MAX_OUTSIDE_NAMES) {
            // Servers differ in what they say about a folder that is a file.
            Err(
                error @ (BackendError::WrongKind { .. }
                | BackendError::NotFound { .. }
                | BackendError::Io { .. }),
            ) => match above.stat(&key) {
                Ok(found) => {
                    let entry = Entry { name, content: Content::File(found) };
                    Ok(OutsideNames { entries: vec![(url.clone(), entry)], is_file: true })
                }
                Err(BackendError::NotFound { .. } | BackendError::WrongKind { .. }) => Err(error),
                Err(other) => Err(other),
            },
            listed => below(listed?),
        }
    };
    Ok(listed().map_err(RunError::from)?)
}

fn has_zarr(folder: &dyn Backend) -> Result<bool, ClientError> {
    for name in ZARR {
        match Key::new(name).and_then(|key| folder.stat(&key)) {
            Ok(_) => return Ok(true),
            Err(BackendError::NotFound { .. } | BackendError::WrongKind { .. }) => {}
            Err(error) => return Err(RunError::from(error).into()),
        }
    }
    Ok(false)
}

/// Opens a file of an object store or of a web server.
fn file_of(url: &SourceUrl) -> Result<FileParts, BackendError> {
    let name = || url.to_string();
    let (folder, file) =
        url.split_name().ok_or_else(|| BackendError::WrongKind { name: name(), kind: Kind::Folder })?;
    let sources = sources()?;
    let object = sources.open(&folder)?.open(&Key::new(file)?)?;
    // Some object stores have an empty object for each folder.
    if object.found().length == 0 && url.scheme() == Scheme::Az {
        let below = sources.open(url)?.list(&Key::ROOT, None, 1)?;
        if !below.entries.is_empty() {
            return Err(BackendError::WrongKind { name: name(), kind: Kind::Folder });
        }
    }
    let internal = |_| BackendError::Internal { what: "the layout of a file in one piece was refused" };
    FileParts::of_object(object, READER, OUTSIDE).map_err(internal)
}

/// The connections of this process. A process that was forked makes its own, because it has none of the threads of the other.
fn sources() -> Result<Sources, BackendError> {
    static SOURCES: Mutex<Option<(u32, Sources)>> = Mutex::new(None);
    let lock = || SOURCES.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    let known = lock().as_ref().filter(|(maker, _)| *maker == process).map(|(_, known)| known.clone());
    if let Some(known) = known {
        return Ok(known);
    }
    // The lock is free meanwhile: a process that is forked now must not find it taken.
    let made = Sources::start(SourcesOptions::default())?;
    if let Some((maker, other)) = lock().replace((process, made.clone()))
        && maker != process
    {
        // Its threads are in the other process, so it cannot be ended here.
        std::mem::forget(other);
    }
    Ok(made)
}
