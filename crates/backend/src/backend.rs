//! The traits that every backend has.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::{BackendError, Key, MAX_DEPTH, MAX_LIST_PAGE, Result, WholeRecords};

/// Most bytes of a stamp.
const MAX_STAMP_BYTES: usize = 1_024;

/// A text that differs between two versions of an object: an ETag, or length and times of a file. Every node that reads the same
/// object gets the same stamp.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stamp(String);

impl Stamp {
    /// A stamp of at most 1,024 bytes; `None` for a longer text.
    pub fn new(text: impl Into<String>) -> Option<Stamp> {
        let text = text.into();
        (text.len() <= MAX_STAMP_BYTES).then_some(Stamp(text))
    }

    /// A stamp of a few numbers in ASCII. No such text is as long as a stamp may be.
    pub fn of_numbers(mut text: String) -> Stamp {
        debug_assert!(text.is_ascii() && text.len() <= MAX_STAMP_BYTES, "{} bytes", text.len());
        text.truncate(MAX_STAMP_BYTES);
        Stamp(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A number that differs between stamps: the FNV-1a hash of the text.
    pub fn number(&self) -> u64 {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        self.0.bytes().fold(0xcbf2_9ce4_8422_2325, step)
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The state of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Bytes of the object.
    pub length: u64,
    /// The version.
    pub stamp: Stamp,
}

/// A name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name in the folder, without a `/`.
    pub name: String,
    /// The file or folder with this name.
    pub content: Content,
}

/// The kind of an entry, with the state of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A folder.
    Folder,
    /// A file in this state.
    File(Found),
    /// Something that is not a file and not a folder: a link that leads nowhere or out of the tree, a pipe. Whoever needs the names of
    /// all files of a folder must report it, because it may stand for a file.
    Unreadable {
        /// The whole message.
        why: String,
    },
}

/// A part of the list of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The entries of the part. Only a backend's last page may have none.
    pub entries: Vec<Entry>,
    /// The place after the last entry, for the next page. `None` at the end.
    pub next: Option<String>,
}

/// A range of a file whose stripes lie on hosts. Stripe `i` of the file lies on `hosts[i % hosts.len()]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostStripes {
    /// The first byte behind the range. `None`: it ends with the file.
    pub end: Option<u64>,
    /// Bytes of a stripe.
    pub unit: u64,
    /// The names and the addresses of each host. Empty if they are not known.
    pub hosts: Vec<Arc<[String]>>,
}

/// Storage with files in folders.
pub trait Backend: Send + Sync {
    /// The name of the root in messages, as its user gave it: `/lustre/era5`, `s3://bucket/prefix`.
    fn name(&self) -> String;

    /// Whether lists name every file. The pages of web servers may leave some out.
    fn lists_everything(&self) -> bool {
        true
    }

    /// Lists up to `limit` names (at most [`MAX_LIST_PAGE`]) of one level of a folder, from the beginning or from the `next` of a page.
    /// The order is that of the storage: object stores have a folder `a/` after a file `a-b`. Names that are not UTF-8 are left out.
    ///
    /// # Errors
    /// The error is [`BackendError::NotFound`] or [`BackendError::WrongKind`] if there is no such folder, and
    /// [`BackendError::Denied`] if it may not be read. It also fails if the storage fails.
    fn list(&self, folder: &Key, from: Option<&str>, limit: usize) -> Result<Page>;

    /// Lists all names of one level of a folder, at most `most`, in the order of their bytes.
    ///
    /// # Errors
    /// The error is [`BackendError::TooMany`] if there are more. It also fails as [`list`](Backend::list) does.
    fn list_all(&self, folder: &Key, most: usize) -> Result<Vec<Entry>> {
        let mut all: Vec<Entry> = Vec::new();
        let mut from: Option<String> = None;
        loop {
            let page = self.list(folder, from.as_deref(), MAX_LIST_PAGE)?;
            all.extend(page.entries);
            if all.len() > most {
                return Err(BackendError::TooMany { name: format!("{}/{folder}", self.name()), most });
            }
            from = page.next;
            if from.is_none() {
                all.sort_unstable_by(|one, other| one.name.cmp(&other.name));
                return Ok(all);
            }
        }
    }

    /// Lists up to `limit` names (at most [`MAX_LIST_PAGE`]) below a folder, from the beginning or from the `next` of a page. Storage
    /// with one list for all levels gives the files of all of them: a name has a `/` between its parts then, and folders are left out.
    /// Other storage gives one level. A folder in a page was not entered, so a list of its own gives its files.
    ///
    /// # Errors
    /// It fails as [`list`](Backend::list) does.
    fn list_below(&self, folder: &Key, from: Option<&str>, limit: usize) -> Result<Page> {
        self.list(folder, from, limit)
    }

    /// Lists everything below a folder that is not a folder, at most `most`, in the order of the bytes of keys.
    ///
    /// # Errors
    /// The error is [`BackendError::TooMany`] if there is more, [`BackendError::TooDeep`] if there are more than [`MAX_DEPTH`]
    /// levels, and [`BackendError::Changed`] if a folder below is removed meanwhile. It also fails as [`list`](Backend::list) does.
    fn files_below(&self, folder: &Key, most: usize) -> Result<Vec<(Key, Content)>> {
        let mut found = Vec::new();
        let mut folders = vec![(folder.clone(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            if depth > MAX_DEPTH {
                return Err(BackendError::TooDeep { name: format!("{}/{folder}", self.name()) });
            }
            let mut from: Option<String> = None;
            loop {
                let page = self.list_below(&folder, from.as_deref(), MAX_LIST_PAGE);
                let page = page.map_err(|error| match error {
                    BackendError::NotFound { name } if depth > 0 => BackendError::Changed { name },
                    error => error,
                })?;
                for entry in page.entries {
                    let key = folder.join(&entry.name)?;
                    match entry.content {
                        Content::Folder => folders.push((key, depth + 1)),
                        content => found.push((key, content)),
                    }
                }
                if found.len() > most || folders.len() > most {
                    return Err(BackendError::TooMany { name: self.name(), most });
                }
                from = page.next;
                if from.is_none() {
                    break;
                }
            }
        }
        found.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        Ok(found)
    }

    /// Whether a folder exists only as a part of the names of its files.
    fn folders_are_names(&self) -> bool {
        false
    }

    /// The state of a file now.
    ///
    /// # Errors
    /// The error is [`BackendError::NotFound`] if there is no such file, [`BackendError::WrongKind`] if it is not a file, and
    /// [`BackendError::Denied`] if it may not be read. It also fails if the storage fails.
    fn stat(&self, key: &Key) -> Result<Found>;

    /// The state of a file now, and whether a later change must have another stamp. Web servers make stamps of times with seconds, so a
    /// file that was changed just now may change again under the same stamp. What was computed of it must not be kept.
    ///
    /// # Errors
    /// It fails as [`stat`](Backend::stat) does.
    fn stat_settled(&self, key: &Key) -> Result<(Found, bool)> {
        Ok((self.stat(key)?, true))
    }

    /// The state of a file to which programs append: its bytes up to the end of the last whole record.
    /// [`open_at`](Backend::open_at) opens this state also after the file has grown. Changes of bytes that were there are not noticed.
    /// Storage whose files are written whole gives the state of the whole file.
    ///
    /// # Errors
    /// The error is [`BackendError::Io`] if the storage does not tell files that grow from others. It also fails as
    /// [`stat`](Backend::stat) does.
    fn stat_growing(&self, key: &Key, _records: WholeRecords) -> Result<Found> {
        let why = "files there cannot be read while they grow; repeat the request when nothing writes to it";
        let source = std::io::Error::new(std::io::ErrorKind::Unsupported, why);
        Err(BackendError::Io { verb: "read", name: format!("{}/{key}", self.name()), source })
    }

    /// Whether files that are opened may [fetch bytes ahead](Object::fetches_ahead).
    fn reads_ahead(&self) -> bool {
        false
    }

    /// The hosts where the first `length` bytes of a file lie: ranges of the file, in their order. Empty if that is not known. It is only
    /// a hint: the bytes are the same wherever they are read.
    ///
    /// # Errors
    /// It fails as [`stat`](Backend::stat) does.
    fn locate(&self, _key: &Key, _length: u64) -> Result<Vec<HostStripes>> {
        Ok(Vec::new())
    }

    /// Opens a file in its state now.
    ///
    /// # Errors
    /// It fails as [`stat`](Backend::stat) does.
    fn open(&self, key: &Key) -> Result<Arc<dyn Object>>;

    /// Opens a file in the state that was found before. Storage behind a network may find out at the first read only that the file has
    /// another state.
    ///
    /// # Errors
    /// The error is [`BackendError::Changed`] if it has another state. It also fails as [`open`](Backend::open) does.
    fn open_at(&self, key: &Key, found: &Found) -> Result<Arc<dyn Object>> {
        let object = self.open(key)?;
        if object.found() == found { Ok(object) } else { Err(BackendError::Changed { name: object.name() }) }
    }

    /// Fills `out` with the bytes of a file from an offset, in the state of the file now. Storage behind a network needs no
    /// request for the state first, as [`open`](Backend::open) does.
    ///
    /// # Errors
    /// It fails as [`open`](Backend::open) and [`Object::read`] do.
    fn read_now(&self, key: &Key, offset: u64, out: &mut [u8]) -> Result<()> {
        read_opened(self, key, offset, out)
    }
}

/// [`Backend::read_now`] with the other methods of the trait.
///
/// # Errors
/// It fails as [`Backend::read_now`] does.
pub fn read_opened<B: Backend + ?Sized>(backend: &B, key: &Key, offset: u64, out: &mut [u8]) -> Result<()> {
    let object = backend.open(key)?;
    object.read_at(offset, out)?;
    object.unchanged()
}

/// A file of a backend, opened in one state.
pub trait Object: Send + Sync {
    /// The name of the object in messages.
    fn name(&self) -> String;

    /// The state in which it was opened.
    fn found(&self) -> &Found;

    /// Reads ranges, packed into `out` in their order. They may overlap, and have any order. The length of `out` is the sum of
    /// their lengths.
    ///
    /// # Errors
    /// The error is [`BackendError::Short`] if a range ends after the end of the object, [`BackendError::Changed`] if the object is
    /// known to have another state or was removed. It also fails if the storage fails. The content of `out` is unspecified then.
    fn read(&self, ranges: &[Range<u64>], out: &mut [u8]) -> Result<()>;

    /// Fills `out` from an offset.
    ///
    /// # Errors
    /// It fails as [`read`](Object::read) does.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let range = offset..offset.saturating_add(out.len() as u64);
        self.read(std::slice::from_ref(&range), out)
    }

    /// Whether [`expect`](Object::expect) has an effect.
    fn fetches_ahead(&self) -> bool {
        false
    }

    /// Says which ranges will be read soon, in ascending order. Storage behind a network fetches them meanwhile, as far as it has
    /// room.
    fn expect(&self, _ranges: &[Range<u64>]) {}

    /// A number that differs between states of the object, for checkpoints.
    fn version(&self) -> u64 {
        self.found().stamp.number()
    }

    /// Checks that all bytes that were read so far were of the state in which the object was opened.
    ///
    /// # Errors
    /// The error is [`BackendError::Changed`] if they may not have been. It also fails if the storage does not tell.
    fn unchanged(&self) -> Result<()>;
}

/// Checks the arguments of [`Object::read`] for an object with this name and length.
///
/// # Errors
/// The error is [`BackendError::Short`] if a range ends after the end of the object, and [`BackendError::Internal`] if a range is
/// reversed or `out` has another length.
pub fn check_ranges(name: impl Fn() -> String, length: u64, ranges: &[Range<u64>], out: usize) -> Result<()> {
    let mut all = 0u64;
    for range in ranges {
        let bytes = range.end.checked_sub(range.start);
        let bytes = bytes.ok_or(BackendError::Internal { what: "a range to read ends before it begins" })?;
        if range.end > length && bytes > 0 {
            return Err(BackendError::Short { name: name(), end: range.end, length });
        }
        all = all.saturating_add(bytes);
    }
    if all == out as u64 {
        Ok(())
    } else {
        Err(BackendError::Internal { what: "the buffer of a read has another length than its ranges" })
    }
}

/// Splits a buffer, into which the bytes of ranges are packed, into a buffer for each, with its offset. The ranges are
/// [checked](check_ranges).
pub fn split_buffer<'a>(ranges: &[Range<u64>], out: &'a mut [u8]) -> Vec<(u64, &'a mut [u8])> {
    let mut rest = out;
    let each = ranges.iter().map(|range| {
        let (now, later) = std::mem::take(&mut rest).split_at_mut((range.end - range.start) as usize);
        rest = later;
        (range.start, now)
    });
    each.collect()
}

/// Calls `read` with the offset of each range, and with its part of `out`. The ranges are [checked](check_ranges).
///
/// # Errors
/// It fails as `read` does.
pub fn read_each(
    ranges: &[Range<u64>],
    out: &mut [u8],
    mut read: impl FnMut(u64, &mut [u8]) -> Result<()>,
) -> Result<()> {
    let mut rest = out;
    for range in ranges {
        let (now, later) = rest.split_at_mut(range.end.saturating_sub(range.start) as usize);
        read(range.start, now)?;
        rest = later;
    }
    Ok(())
}

/// The page of a sorted list of all names of a folder.
pub(crate) fn page(names: impl Iterator<Item = Entry>, from: Option<&str>, limit: usize) -> Page {
    let mut later = names.filter(|entry| from.is_none_or(|from| entry.name.as_str() > from));
    let entries: Vec<Entry> = later.by_ref().take(limit.clamp(1, MAX_LIST_PAGE)).collect();
    let next = later.next().and_then(|_| entries.last()).map(|entry| entry.name.clone());
    Page { entries, next }
}
