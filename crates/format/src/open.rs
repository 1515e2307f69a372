//! Recognition of formats, and opening of files.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use crate::dataset::Dataset;
use crate::source::{self, ObjectSource, Source, io_error};
use crate::tree::{BackendTree, Tree};
use crate::{FormatError, classic, hdf5, not_text, npy, text, zarr};

/// Bytes by which a format is recognised.
const START: u64 = 8;

/// Endings of names of files that describe their own variables. Delimited text does not: it must be read to its end first.
const SELF_DESCRIBING: [&str; 9] = ["nc", "nc4", "cdf", "h5", "hdf5", "hdf", "he5", "npy", "zarr"];

/// Whether the ending of a name is one of a format that describes its own variables, whatever its case.
/// ```
/// use std::path::Path;
///
/// assert!(gristmill_format::is_self_describing(Path::new("tos.NC")));
/// assert!(!gristmill_format::is_self_describing(Path::new("tos.csv")));
/// ```
pub fn is_self_describing(name: &Path) -> bool {
    let known = |ending: &OsStr| SELF_DESCRIBING.iter().any(|known| ending.eq_ignore_ascii_case(known));
    name.extension().is_some_and(known)
}

/// Opens a file or, for Zarr, a folder of this machine.
///
/// # Errors
/// Returns [`FormatError::Unrecognised`] if the format is unknown, [`FormatError::NotText`] if only the name is that of
/// text, [`FormatError::Io`] if the file cannot be read, and another [`FormatError`] if it cannot be parsed.
pub fn open_path(path: &Path) -> Result<Dataset, FormatError> {
    if path.is_dir() {
        return open_tree(Arc::new(BackendTree::of_folder(path)?));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let failed = |error| FormatError::io(path.display().to_string(), io_error(error));
    let object = gristmill_backend::open_file(path).map_err(failed)?;
    open(Arc::new(ObjectSource::new(object)), &name)
}

/// Opens a file and recognises its format by its first bytes. Delimited text is recognised by the ending of `name`:
/// `.csv` or `.tsv`.
///
/// # Errors
/// Returns the errors of [`open_path`].
pub fn open(source: Arc<dyn Source>, name: &str) -> Result<Dataset, FormatError> {
    let start = source::read(&*source, 0, source.len().min(START), START)?;
    if start.starts_with(b"CDF") {
        return classic::open(source);
    }
    if start.starts_with(npy::MAGIC) {
        return npy::open(source);
    }
    if hdf5::is_hdf5(&*source)? {
        return hdf5::open(source);
    }
    if text::is_text(name) {
        let most = not_text::BEGINNING;
        not_text::check(&source::read(&*source, 0, source.len().min(most), most)?)?;
        return text::open(source, name);
    }
    let why = match start.as_slice() {
        [] => "it is empty".to_owned(),
        bytes => not_text::known(bytes)
            .unwrap_or_else(|| format!("it begins with {:?}", String::from_utf8_lossy(bytes))),
    };
    Err(FormatError::Unrecognised { why })
}

/// Opens a tree of files: an array or a group of Zarr, version 2 or 3.
///
/// # Errors
/// Returns the errors of [`open_path`].
pub fn open_tree(tree: Arc<dyn Tree>) -> Result<Dataset, FormatError> {
    zarr::open(tree)
}
