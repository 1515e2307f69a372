//! Objects of a backend as parts of files: plain files of this machine, and files of mounts and other storage.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use gristmill_backend::{BackendError, Kind, Object, WholeRecords, open_file, open_growing_file};
use gristmill_layout::{Layout, Striped};

use crate::{FileParts, Part, PartRange, Placement, RunError};

/// An object of a backend in the state in which it was opened. It holds all bytes of its file, at their offsets in the file.
pub struct ObjectPart {
    object: Arc<dyn Object>,
    reader: String,
}

impl ObjectPart {
    /// The part of an opened object. `reader` names the process that reads it in reports.
    pub fn new(object: Arc<dyn Object>, reader: String) -> ObjectPart {
        ObjectPart { object, reader }
    }

    /// The error of a read at an offset.
    fn explain(&self, offset: u64, error: BackendError) -> RunError {
        match error {
            BackendError::Short { name, length, .. } => {
                RunError::Truncated { name, offset: length, length: self.object.found().length }
            }
            BackendError::Io { name, source, .. } => RunError::Read { name, offset, source },
            // It was there when it was opened.
            BackendError::NotFound { name } | BackendError::WrongKind { name, .. } => {
                RunError::Changed { name }
            }
            error => error.into(),
        }
    }
}

impl Part for ObjectPart {
    fn read(&self, _: Option<&str>, offset: u64, buffer: &mut [u8]) -> Result<(), RunError> {
        self.object.read_at(offset, buffer).map_err(|error| self.explain(offset, error))
    }

    fn read_many(&self, ranges: &[PartRange<'_>], out: &mut [u8]) -> Result<(), RunError> {
        let each: Vec<Range<u64>> =
            ranges.iter().map(|range| range.offset..range.offset.saturating_add(range.len as u64)).collect();
        let first = each.first().map_or(0, |range| range.start);
        self.object.read(&each, out).map_err(|error| self.explain(first, error))
    }

    fn fetches_ahead(&self) -> bool {
        self.object.fetches_ahead()
    }

    fn expect(&self, ranges: &[PartRange<'_>]) {
        let each: Vec<Range<u64>> =
            ranges.iter().map(|range| range.offset..range.offset.saturating_add(range.len as u64)).collect();
        self.object.expect(&each);
    }

    fn unchanged(&self) -> Result<(), RunError> {
        self.object.unchanged().map_err(|error| self.explain(0, error))
    }

    fn version(&self) -> u64 {
        self.object.version()
    }

    fn describe(&self) -> String {
        self.reader.clone()
    }
}

impl FileParts {
    /// An opened object as a file that one process reads. `reader` names that process in reports.
    ///
    /// # Errors
    /// Returns an error if the layout of the file is refused, which no length causes.
    pub fn of_object(object: Arc<dyn Object>, reader: &str, place: Placement) -> Result<FileParts, RunError> {
        let (name, length) = (object.name(), object.found().length);
        let layout = Layout::Striped(Striped::new(length.max(1), 1, 0)?);
        let parts: Vec<Arc<dyn Part>> = vec![Arc::new(ObjectPart::new(object, reader.to_owned()))];
        Ok(FileParts { name, length, layout, parts, place })
    }

    /// Opens a plain file of this machine.
    ///
    /// # Errors
    /// The error is [`RunError::Open`] if there is no such file, if it is not a regular file, if it has bytes but its
    /// length is 0, or if it cannot be opened.
    pub fn plain(path: &Path) -> Result<FileParts, RunError> {
        FileParts::of_file(path, open_file(path))
    }

    /// The whole records that a plain file has now, although programs append to it.
    ///
    /// # Errors
    /// It fails as [`plain`](FileParts::plain) does.
    pub fn growing(path: &Path, records: WholeRecords) -> Result<FileParts, RunError> {
        FileParts::of_file(path, open_growing_file(path, records))
    }

    fn of_file(
        path: &Path,
        opened: gristmill_backend::Result<Arc<dyn Object>>,
    ) -> Result<FileParts, RunError> {
        let refuse = |why: &str, usage| RunError::Open { path: path.to_owned(), why: why.to_owned(), usage };
        let object = opened.map_err(|error| match error {
            BackendError::NotFound { .. } => refuse("there is no such file; check the path", true),
            BackendError::WrongKind { kind: Kind::Folder, .. } => {
                refuse("it is a directory; name a regular file", true)
            }
            BackendError::WrongKind { kind: Kind::BelowFile, .. } => {
                refuse("a part of the path is a file and not a directory; check the path", false)
            }
            BackendError::WrongKind { kind: Kind::WithoutLength, .. } => {
                refuse("its length is 0 although it has bytes; copy them into a regular file first", true)
            }
            BackendError::WrongKind { .. } => {
                refuse("it is not a regular file; copy its bytes into a regular file first", true)
            }
            BackendError::Denied { why, .. } => refuse(&why, false),
            BackendError::Io { source, .. } => refuse(&source.to_string(), false),
            error => error.into(),
        })?;
        let place = Placement {
            place: "client",
            why: "a plain file of this machine is folded by the process that asks",
            remote: false,
        };
        FileParts::of_object(object, "this process", place)
    }
}
