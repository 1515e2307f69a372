//! Files as the runtime reads them: a layout, and one part for each target.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use gristmill_layout::{Layout, Striped, TargetIndex};
use gristmill_store::{ObjectId, ObjectStore, ReadOptions, StoreError, Version};

use crate::RunError;

/// A range of bytes to read from a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartRange<'a> {
    /// The object, if the layout names it.
    pub object: Option<&'a str>,
    /// Offset in the object, in bytes.
    pub offset: u64,
    /// Number of bytes.
    pub len: usize,
}

/// The bytes of one file that one target holds, in one state of the file.
pub trait Part: Send + Sync {
    /// Fills `buffer` from `offset` of the object.
    ///
    /// # Errors
    /// It fails if the object ends before `buffer` is full, and if it cannot be read.
    fn read(&self, object: Option<&str>, offset: u64, buffer: &mut [u8]) -> Result<(), RunError>;

    /// Reads several ranges, packed into `out` in their order. A part behind a network sends one message for all
    /// of them.
    ///
    /// # Errors
    /// It fails as [`read`](Self::read) does.
    fn read_many(&self, ranges: &[PartRange<'_>], out: &mut [u8]) -> Result<(), RunError> {
        let mut at = 0;
        for range in ranges {
            let Some(buffer) = out.get_mut(at..at + range.len) else { break };
            self.read(range.object, range.offset, buffer)?;
            at += range.len;
        }
        Ok(())
    }

    /// Checks that the part has not changed since it was opened. The runtime checks it after the last read of a
    /// pass, so no answer and no checkpoint mixes bytes of two states.
    ///
    /// # Errors
    /// It fails if the part has changed since it was opened, and if that cannot be found out.
    fn unchanged(&self) -> Result<(), RunError>;

    /// A number that differs between states of the part, for checkpoints.
    fn version(&self) -> u64;

    /// The name of the part in reports.
    fn describe(&self) -> String;
}

/// A file: its length, its layout, and the parts of its targets in the layout's order.
#[derive(Clone)]
pub struct FileParts {
    /// The name of the file in messages.
    pub name: String,
    /// Length of the file in bytes.
    pub length: u64,
    /// The targets of its bytes.
    pub layout: Layout,
    /// One part for each target of the layout.
    pub parts: Vec<Arc<dyn Part>>,
    /// The place of its folds, for reports.
    pub place: Placement,
}

/// The place of folds and the reason, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// `client` or `storage`.
    pub place: &'static str,
    /// The reason, in one sentence.
    pub why: &'static str,
    /// Whether the folds read all parts over a network.
    pub remote: bool,
}

/// Combines versions into one that differs if one of them differs. It is the FNV-1a hash of the versions.
pub fn combine_versions(versions: impl Iterator<Item = u64>) -> u64 {
    let step = |hash: u64, version: u64| (hash ^ version).wrapping_mul(0x0000_0100_0000_01b3);
    versions.fold(0xcbf2_9ce4_8422_2325, step)
}

impl FileParts {
    /// Opens a plain file of this machine.
    ///
    /// # Errors
    /// The error is [`RunError::Open`] if there is no such file, if it is not a regular file, if it has bytes but its
    /// length is 0, or if it cannot be opened.
    pub fn plain(path: &Path) -> Result<FileParts, RunError> {
        let refuse = |why: &str, usage| RunError::Open { path: path.to_owned(), why: why.to_owned(), usage };
        let failed = |e: io::Error| match e.kind() {
            io::ErrorKind::NotFound => refuse("there is no such file; check the path", true),
            io::ErrorKind::PermissionDenied => {
                refuse("permission denied; ask its owner for read access or run as a user who has it", false)
            }
            _ => refuse(&e.to_string(), false),
        };
        // The type is checked by name first, because opening a pipe would wait for its writer.
        let kind = std::fs::metadata(path).map_err(failed)?.file_type();
        if kind.is_dir() {
            return Err(refuse("it is a directory; name a regular file", true));
        }
        if !kind.is_file() {
            return Err(refuse("it is not a regular file; copy its bytes into a regular file first", true));
        }
        let file = File::open(path).map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        // Files in /proc and similar folders have length 0.
        if meta.len() == 0 && file.read_at(&mut [0], 0).is_ok_and(|read| read > 0) {
            return Err(refuse(
                "its length is 0 although it has bytes; copy them into a regular file first",
                true,
            ));
        }
        // An error is ignored: this is a hint to the page cache.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Sequential);
        let state = PlainState::from_metadata(&meta);
        let part = PlainPart { name: path.display().to_string(), file, state };
        let length = part.state.length;
        Ok(FileParts {
            name: part.name.clone(),
            length,
            layout: Layout::Striped(Striped::new(length.max(1), 1, 0)?),
            parts: vec![Arc::new(part)],
            place: Placement {
                place: "client",
                why: "a plain file of this machine is folded by the process that asks",
                remote: false,
            },
        })
    }
}

/// The length and the time of change (seconds, nanoseconds) of a plain file. They tell one state from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PlainState {
    length: u64,
    modified: (i64, i64),
}

impl PlainState {
    fn from_metadata(meta: &std::fs::Metadata) -> PlainState {
        PlainState { length: meta.len(), modified: (meta.mtime(), meta.mtime_nsec()) }
    }
}

struct PlainPart {
    name: String,
    file: File,
    state: PlainState,
}

impl Part for PlainPart {
    fn read(&self, _: Option<&str>, offset: u64, buffer: &mut [u8]) -> Result<(), RunError> {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            match self.file.read_at(&mut buffer[done..], at) {
                Ok(0) => {
                    let length = self.state.length;
                    return Err(RunError::Truncated { name: self.name.clone(), offset: at, length });
                }
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(RunError::Read { name: self.name.clone(), offset: at, source }),
            }
        }
        Ok(())
    }

    fn unchanged(&self) -> Result<(), RunError> {
        let meta = self.file.metadata();
        let meta = meta.map_err(|source| RunError::Read { name: self.name.clone(), offset: 0, source })?;
        if PlainState::from_metadata(&meta) == self.state {
            return Ok(());
        }
        Err(RunError::Changed { name: self.name.clone() })
    }

    fn version(&self) -> u64 {
        let (seconds, nanoseconds) = self.state.modified;
        (seconds as u64).wrapping_mul(1_000_000_000).wrapping_add(nanoseconds as u64) ^ self.state.length
    }

    fn describe(&self) -> String {
        "this process".to_owned()
    }
}

/// One target's object in an object store, at one version.
pub struct StorePart {
    store: Arc<dyn ObjectStore>,
    object: ObjectId,
    version: Version,
    length: u64,
    node: String,
    verify: bool,
}

impl StorePart {
    /// Opens the object as it is now. [`Part::unchanged`] returns [`StoreError::Stale`] if it has changed since. A segments
    /// layout may name further objects; their versions are not checked. `node` names the target in reports.
    ///
    /// # Errors
    /// The error is [`RunError::Store`] if there is no such object or the store fails.
    pub fn open(store: Arc<dyn ObjectStore>, object: ObjectId, node: String) -> Result<StorePart, RunError> {
        let stat = store.stat(&object)?;
        Ok(StorePart { store, object, version: stat.version, length: stat.length, node, verify: false })
    }

    /// Opens the object at this version.
    ///
    /// # Errors
    /// The error is [`RunError::Store`] with [`StoreError::Stale`] if the object is at another version. It also fails
    /// as [`open`](StorePart::open) does.
    pub fn open_at(
        store: Arc<dyn ObjectStore>,
        object: ObjectId,
        version: Version,
        node: String,
    ) -> Result<StorePart, RunError> {
        let stat = store.stat(&object)?;
        if stat.version != version {
            return Err(StoreError::Stale { id: object, expected: version, actual: stat.version }.into());
        }
        Ok(StorePart { store, object, version, length: stat.length, node, verify: false })
    }

    /// Sets whether all bytes that are read are compared with their checksums, or only those that are due.
    #[must_use]
    pub fn verifying(self, verify: bool) -> StorePart {
        StorePart { verify, ..self }
    }

    /// Length of the object in bytes.
    pub const fn length(&self) -> u64 {
        self.length
    }
}

impl Part for StorePart {
    fn read(&self, object: Option<&str>, offset: u64, buffer: &mut [u8]) -> Result<(), RunError> {
        let named = object.map(ObjectId::new).transpose().map_err(StoreError::from)?;
        let object = named.as_ref().unwrap_or(&self.object);
        // The version is checked once, by `unchanged`, when all bytes have been read.
        let options = ReadOptions { verify: self.verify, ..ReadOptions::default() };
        let read = self.store.read_at(object, offset, buffer, options)?;
        if read < buffer.len() {
            return Err(RunError::Truncated {
                name: format!("object {object} on {}", self.node),
                offset: offset + read as u64,
                length: self.length,
            });
        }
        Ok(())
    }

    fn unchanged(&self) -> Result<(), RunError> {
        // A store answers only if the object has had this version since it was opened.
        self.store.read_at(&self.object, 0, &mut [], ReadOptions::at(self.version))?;
        Ok(())
    }

    fn version(&self) -> u64 {
        self.version.0
    }

    fn describe(&self) -> String {
        self.node.clone()
    }
}

impl FileParts {
    /// Fills `buffer` with a range of the file, from the targets that hold the bytes. `buffer` has the length of the range.
    ///
    /// # Errors
    /// The error is [`RunError::Truncated`] if the file ends before the range does. It also fails if a part is missing
    /// or cannot be read.
    pub fn read(&self, range: std::ops::Range<u64>, buffer: &mut [u8]) -> Result<(), RunError> {
        crate::fetch::read_range(self, range, buffer)
    }

    /// The part of a target.
    pub(crate) fn part(&self, target: TargetIndex) -> Result<&dyn Part, RunError> {
        self.parts.get(target as usize).map(|part| &**part).ok_or_else(|| {
            let targets = self.parts.len() as u32;
            RunError::Layout(gristmill_layout::LayoutError::UnknownTarget { target, targets })
        })
    }
}
