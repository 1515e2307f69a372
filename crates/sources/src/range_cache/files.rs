//! The files of a cache: a range each, in 256 directories.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use gristmill_backend::{BackendError, Result};
use rustix::fs::{FlockOperation, flock};

use super::index::Kept;
use super::{MAX_KEPT_RANGE, ObjectName};

/// Bytes with one checksum.
const SUMMED: u64 = 64 << 10;

/// Bytes of a checksum: CRC-32C, little-endian.
const SUM: u64 = 4;

/// The file that a process locks while it uses the directory.
const LOCK: &str = "lock";

/// The range that is being written.
const NEW: &str = "new";

/// The directory of a cache. The file of a range has its bytes, and then a checksum for each [`SUMMED`] bytes. A checksum is also one of
/// the name of the file, so that a file under another name is not believed.
pub(super) struct Files {
    dir: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
}

/// Bytes of the file of a range.
pub(super) fn file_bytes(len: u64) -> u64 {
    len.saturating_add(len.div_ceil(SUMMED).saturating_mul(SUM))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn name_of(kept: &Kept) -> String {
    format!("{}-{:x}-{:x}", hex(&kept.object), kept.start, kept.len)
}

/// The range of a file with this name; `None` if the file is no range.
fn range_of(name: &str) -> Option<Kept> {
    let (object, range) = name.split_once('-')?;
    let (start, len) = range.split_once('-')?;
    let mut bytes = ObjectName::default();
    if object.len() != 2 * bytes.len() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(object.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    let number = |text| u64::from_str_radix(text, 16).ok();
    let kept = Kept { object: bytes, start: number(start)?, len: number(len)? };
    (name_of(&kept) == name && (1..=MAX_KEPT_RANGE).contains(&kept.len)).then_some(kept)
}

fn checksum(name: &str, block: u64, bytes: &[u8]) -> [u8; SUM as usize] {
    let of_place = crc32c::crc32c_append(crc32c::crc32c(name.as_bytes()), &block.to_le_bytes());
    crc32c::crc32c_append(of_place, bytes).to_le_bytes()
}

impl Files {
    /// Opens a directory, or makes it. Returns the ranges in it, the oldest first.
    pub fn open(dir: &Path) -> Result<(Files, Vec<Kept>)> {
        let failed = |verb| move |source| BackendError::Io { verb, name: dir.display().to_string(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed("make"))?;
        let mut how = OpenOptions::new();
        let lock = how.create(true).truncate(false).write(true).mode(0o600).open(dir.join(LOCK));
        let lock = lock.map_err(failed("write"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|errno| {
            let why = format!("another process uses this cache ({errno})");
            failed("lock")(io::Error::other(why))
        })?;
        let files = Files { dir: dir.to_owned(), _lock: lock };
        let found = files.find().map_err(failed("read"))?;
        Ok((files, found))
    }

    fn find(&self) -> io::Result<Vec<Kept>> {
        let mut found: Vec<(SystemTime, Kept)> = Vec::new();
        for folder in fs::read_dir(&self.dir)? {
            let folder = folder?;
            if folder.file_name().len() != 2 || !folder.file_type()?.is_dir() {
                continue;
            }
            for file in fs::read_dir(folder.path())? {
                let file = file?;
                let kept = file.file_name().to_str().and_then(range_of);
                if let Some(kept) = kept.filter(|kept| self.path(kept) == file.path()) {
                    found.push((file.metadata()?.modified()?, kept));
                }
            }
        }
        found.sort_unstable();
        Ok(found.into_iter().map(|(_, kept)| kept).collect())
    }

    fn path(&self, kept: &Kept) -> PathBuf {
        let name = name_of(kept);
        self.dir.join(name.get(..2).unwrap_or_default()).join(name)
    }

    /// Fills `out` with the bytes of a range from an offset in it. Returns false if the file does not have them, whatever is wrong
    /// with it: they are read from their server then.
    pub fn read(&self, kept: &Kept, from: u64, out: &mut [u8]) -> bool {
        self.try_read(kept, from, out).unwrap_or(false)
    }

    fn try_read(&self, kept: &Kept, from: u64, out: &mut [u8]) -> io::Result<bool> {
        let (file, name) = (File::open(self.path(kept))?, name_of(kept));
        let end = from.saturating_add(out.len() as u64);
        if file.metadata()?.len() != file_bytes(kept.len) || end > kept.len {
            return Ok(false);
        }
        let (mut filled, mut part) = (0, Vec::new());
        for block in from / SUMMED..end.div_ceil(SUMMED) {
            let bytes = block * SUMMED..((block + 1) * SUMMED).min(kept.len);
            let wanted = (from.max(bytes.start)..end.min(bytes.end), &mut filled);
            let len = (wanted.0.end - wanted.0.start) as usize;
            let Some(into) = out.get_mut(*wanted.1..*wanted.1 + len) else { return Ok(false) };
            let mut sum = [0; SUM as usize];
            file.read_exact_at(&mut sum, kept.len + block * SUM)?;
            let is_right = if wanted.0 == bytes {
                file.read_exact_at(into, bytes.start)?;
                sum == checksum(&name, block, into)
            } else {
                part.resize((bytes.end - bytes.start) as usize, 0);
                file.read_exact_at(&mut part, bytes.start)?;
                let at = (wanted.0.start - bytes.start) as usize;
                let Some(source) = part.get(at..at + len) else { return Ok(false) };
                into.copy_from_slice(source);
                sum == checksum(&name, block, &part)
            };
            if !is_right {
                return Ok(false);
            }
            filled += len;
        }
        Ok(true)
    }

    /// Writes a range. Only one thread does that. The file gets its name when it is whole; after a loss of power its checksums
    /// tell.
    pub fn write(&self, kept: &Kept, bytes: &[u8]) -> io::Result<()> {
        let (new, path, name) = (self.dir.join(NEW), self.path(kept), name_of(kept));
        let written = || -> io::Result<()> {
            let mut how = OpenOptions::new();
            let mut file = how.create(true).truncate(true).write(true).mode(0o600).open(&new)?;
            file.write_all(bytes)?;
            let blocks = bytes.chunks(SUMMED as usize).zip(0..);
            let sums = blocks.flat_map(|(bytes, block)| checksum(&name, block, bytes));
            file.write_all(&sums.collect::<Vec<u8>>())?;
            match fs::rename(&new, &path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let folder = path.parent().unwrap_or(&self.dir);
                    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
                    fs::rename(&new, &path)
                }
                renamed => renamed,
            }
        };
        written().inspect_err(|_| {
            // A part of a range would only take room.
            let _ = fs::remove_file(&new);
        })
    }

    /// Removes a range. One that cannot be removed is found again by the next process.
    pub fn remove(&self, kept: &Kept) {
        let _ = fs::remove_file(self.path(kept));
    }
}
