//! Files as the runtime reads them: a layout, and one reader for each target's part.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use gristmill_layout::{Layout, Striped, TargetIndex};
use gristmill_store::{ObjectId, ObjectStore, ReadOptions, StoreError, Version};

use crate::RunError;

/// Bytes wanted of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want<'a> {
    /// The object, where the layout names it.
    pub object: Option<&'a str>,
    /// Offset in the object.
    pub offset: u64,
    /// Number of bytes.
    pub len: usize,
}

/// What one target holds of one file, as one state of it.
pub trait Part: Send + Sync {
    /// Fills `buffer` from `offset` of the object.
    ///
    /// # Errors
    /// It fails if the object ends before `buffer` is full, and if it cannot be read.
    fn read(&self, object: Option<&str>, offset: u64, buffer: &mut [u8]) -> Result<(), RunError>;

    /// Reads several stretches, packed into `out` in their order. A part behind a network makes this one
    /// message.
    ///
    /// # Errors
    /// It fails as [`read`](Self::read) does.
    fn read_many(&self, wants: &[Want<'_>], out: &mut [u8]) -> Result<(), RunError> {
        let mut at = 0;
        for want in wants {
            let Some(buffer) = out.get_mut(at..at + want.len) else { break };
            self.read(want.object, want.offset, buffer)?;
            at += want.len;
        }
        Ok(())
    }

    /// Checks that the part is still what it was when it was opened. Asked after the last read of a pass:
    /// no answer and no checkpoint is made of bytes of two states.
    ///
    /// # Errors
    /// It fails if the part is no longer what it was when it was opened, and if that cannot be found out.
    fn unchanged(&self) -> Result<(), RunError>;

    /// A number that differs between states of the part, for checkpoints.
    fn version(&self) -> u64;

    /// How reports name it.
    fn describe(&self) -> String;
}

/// A file: its length, its layout, and the parts of its targets in the layout's order.
#[derive(Clone)]
pub struct FileParts {
    /// How messages name the file.
    pub name: String,
    /// Bytes.
    pub length: u64,
    /// Where they lie.
    pub layout: Layout,
    /// One part for each target of the layout.
    pub parts: Vec<Arc<dyn Part>>,
    /// Where the folds of each part run and why, for reports.
    pub place: Placement,
}

/// How a report explains where folds ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// `client` or `storage`.
    pub place: &'static str,
    /// One sentence.
    pub why: &'static str,
    /// Whether whoever folds reads all parts over a network.
    pub remote: bool,
}

/// A version of several things together, that differs where one of theirs does: FNV-1a over them.
pub fn versions_as_one(versions: impl Iterator<Item = u64>) -> u64 {
    let step = |hash: u64, version: u64| (hash ^ version).wrapping_mul(0x0000_0100_0000_01b3);
    versions.fold(0xcbf2_9ce4_8422_2325, step)
}

impl FileParts {
    /// A plain file of this machine.
    ///
    /// # Errors
    /// The error is [`RunError::Open`] if there is no such file, if it is no regular file, if it has bytes and says
    /// that it has none, or if it cannot be opened.
    pub fn plain(path: &Path) -> Result<FileParts, RunError> {
        let refuse = |why: &str, usage| RunError::Open { path: path.to_owned(), why: why.to_owned(), usage };
        let failed = |e: io::Error| match e.kind() {
            io::ErrorKind::NotFound => refuse("there is no such file; check the path", true),
            io::ErrorKind::PermissionDenied => {
                refuse("permission denied; ask its owner for read access or run as a user who has it", false)
            }
            _ => refuse(&e.to_string(), false),
        };
        // Asked by name first: opening a pipe would wait for its writer.
        let kind = std::fs::metadata(path).map_err(failed)?.file_type();
        if kind.is_dir() {
            return Err(refuse("it is a directory; name a regular file", true));
        }
        if !kind.is_file() {
            return Err(refuse("it is no regular file; copy what it gives into one first", true));
        }
        let file = File::open(path).map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        // Files of /proc and the like say that they are empty.
        if meta.len() == 0 && file.read_at(&mut [0], 0).is_ok_and(|read| read > 0) {
            return Err(refuse("it has no length; copy what it gives into a regular file first", true));
        }
        // Best effort: a hint to the page cache.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Sequential);
        let state = PlainState::of(&meta);
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

/// What tells one state of a plain file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PlainState {
    length: u64,
    modified: (i64, i64),
}

impl PlainState {
    fn of(meta: &std::fs::Metadata) -> PlainState {
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
        if PlainState::of(&meta) == self.state {
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
    /// The object as it is now. Objects that a segments layout names besides are read as they are: their versions
    /// are not followed. [`Part::unchanged`] answers [`StoreError::Stale`] if it changed since. `node`
    /// names the target in reports.
    ///
    /// # Errors
    /// The error is [`RunError::Store`] if there is no such object or the store fails.
    pub fn open(store: Arc<dyn ObjectStore>, object: ObjectId, node: String) -> Result<StorePart, RunError> {
        let stat = store.stat(&object)?;
        Ok(StorePart { store, object, version: stat.version, length: stat.length, node, verify: false })
    }

    /// The object at this version.
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

    /// Whether all bytes that are read are compared with their checksums, or only those that are due.
    #[must_use]
    pub fn verifying(self, verify: bool) -> StorePart {
        StorePart { verify, ..self }
    }

    /// Bytes of the object.
    pub const fn length(&self) -> u64 {
        self.length
    }
}

impl Part for StorePart {
    fn read(&self, object: Option<&str>, offset: u64, buffer: &mut [u8]) -> Result<(), RunError> {
        let named = object.map(ObjectId::new).transpose().map_err(StoreError::from)?;
        let object = named.as_ref().unwrap_or(&self.object);
        // Which state these bytes are of is asked once, by `unchanged`, when all of them have been read.
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
        // A store answers only if the object is, and was since it was opened, at this version.
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
    /// Fills `buffer`, which has the range's length, with these bytes of the file, from whoever holds them.
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
