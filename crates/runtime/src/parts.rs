//! Files as the runtime reads them: a layout, and one part for each target.

use std::ops::Range;
use std::sync::Arc;

use gristmill_backend::ThreadsAhead;
use gristmill_layout::{Layout, TargetIndex};
use gristmill_object_fold::{FoldOrder, FoldRefusal, Folded, ObjectFolder, Span};
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

    /// Whether the part fetches bytes that were announced before they are read.
    fn fetches_ahead(&self) -> bool {
        false
    }

    /// Announces ranges that will be read soon.
    fn expect(&self, _ranges: &[PartRange<'_>]) {}

    /// Whether the storage behind the part can fold records itself.
    fn folds(&self) -> bool {
        false
    }

    /// Whether it also does so now, as far as is known.
    fn folds_now(&self) -> bool {
        self.folds()
    }

    /// Has the storage fold spans of the object, once. Records that are missing in the answer were not folded.
    ///
    /// # Errors
    /// It fails if the storage folds nothing.
    fn fold(&self, _: Option<&str>, _: &FoldOrder, _: &[Span]) -> Result<Folded, FoldRefusal> {
        Ok(Folded::default())
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

/// One target's object in an object store, at one version.
pub struct StorePart {
    store: Arc<dyn ObjectStore>,
    object: ObjectId,
    version: Version,
    length: u64,
    node: String,
    verify: bool,
    folder: Option<Arc<dyn ObjectFolder>>,
    ahead: Option<ThreadsAhead>,
}

impl StorePart {
    /// Opens the object as it is now. [`Part::unchanged`] returns [`StoreError::Stale`] if it has changed since. A segments
    /// layout may name further objects; their versions are not checked. `node` names the target in reports.
    ///
    /// # Errors
    /// The error is [`RunError::Store`] if there is no such object or the store fails.
    pub fn open(store: Arc<dyn ObjectStore>, object: ObjectId, node: String) -> Result<StorePart, RunError> {
        let stat = store.stat(&object)?;
        Ok(StorePart {
            store,
            object,
            version: stat.version,
            length: stat.length,
            node,
            verify: false,
            folder: None,
            ahead: None,
        })
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
        let length = stat.length;
        Ok(StorePart { store, object, version, length, node, verify: false, folder: None, ahead: None })
    }

    /// Sets whether all bytes that are read are compared with their checksums, or only those that are due.
    #[must_use]
    pub fn verifying(self, verify: bool) -> StorePart {
        StorePart { verify, ..self }
    }

    /// Sets what folds inside the storage of the store, if it can.
    #[must_use]
    pub fn folding(self, folder: Option<Arc<dyn ObjectFolder>>) -> StorePart {
        StorePart { folder, ..self }
    }

    /// Has threads read the bytes that are announced. Whether they are compared with checksums must be set before.
    #[must_use]
    pub fn reading_ahead(self) -> StorePart {
        let (store, object, options) = (self.store.clone(), self.object.clone(), self.options());
        let read = move |range: Range<u64>, out: &mut Vec<u8>| {
            out.resize((range.end - range.start) as usize, 0);
            store.read_at(&object, range.start, out, options).is_ok_and(|read| read == out.len())
        };
        StorePart { ahead: ThreadsAhead::new(self.length, read), ..self }
    }

    /// The version is checked once, by `unchanged`, when all bytes have been read.
    fn options(&self) -> ReadOptions {
        ReadOptions { verify: self.verify, ..ReadOptions::default() }
    }

    /// Fills `buffer` from the store.
    fn read_store(&self, object: &ObjectId, offset: u64, buffer: &mut [u8]) -> Result<(), RunError> {
        let read = self.store.read_at(object, offset, buffer, self.options())?;
        if read < buffer.len() {
            return Err(RunError::Truncated {
                name: format!("object {object} on {}", self.node),
                offset: offset + read as u64,
                length: self.length,
            });
        }
        Ok(())
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
        match self.ahead.as_ref().filter(|_| *object == self.object) {
            Some(ahead) => ahead.fill(vec![(offset, buffer)], |reads| {
                reads.into_iter().try_for_each(|(offset, buffer)| self.read_store(object, offset, buffer))
            }),
            None => self.read_store(object, offset, buffer),
        }
    }

    fn fetches_ahead(&self) -> bool {
        self.ahead.is_some()
    }

    fn expect(&self, ranges: &[PartRange<'_>]) {
        let Some(ahead) = &self.ahead else { return };
        let is_own =
            |range: &&PartRange<'_>| range.object.is_none_or(|object| object == self.object.as_str());
        let bytes = |range: &PartRange<'_>| range.offset..range.offset.saturating_add(range.len as u64);
        let ranges: Vec<Range<u64>> = ranges.iter().filter(is_own).map(bytes).collect();
        ahead.expect(&ranges);
    }

    fn folds(&self) -> bool {
        self.folder.is_some()
    }

    fn folds_now(&self) -> bool {
        self.folder.as_ref().is_some_and(|folder| !folder.refuses())
    }

    fn fold(&self, object: Option<&str>, order: &FoldOrder, spans: &[Span]) -> Result<Folded, FoldRefusal> {
        let Some(folder) = &self.folder else { return Ok(Folded::default()) };
        folder.fold(object.unwrap_or(self.object.as_str()), order, spans)
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
