//! Statistics of the chunks of array variables, stored beside the objects and used by later requests.
//!
//! A node stores the summaries that folds make of chunks ([`gristmill_kernel::Fold::summary`]). Each object has one
//! *book*, a small file in the directory `statistics` of the target. The key of a summary is a SHA-256 of all that the
//! summary depends on: the file and the versions of its objects, the array and its codecs, the kernel's key, and the
//! location of the chunk's stored bytes. A request with a different table therefore finds nothing, and cannot change
//! what other requests find.
//!
//! The first request for an object reads its book. A request that added to a book writes it afterwards, whole or not at
//! all. A book that is damaged or of another version is ignored. It is removed with its object; a node that starts
//! removes the books of missing objects. Books are optional: without one the chunks are read.

mod book;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gristmill_peers::Files;
use gristmill_runtime::{Chunks, Request, Statistics};
use gristmill_store::{ObjectId, ObjectStore, StoreError, write_atomic};
use gristmill_wire::FileMap;
use ring::digest::{Context, SHA256};
use tokio::runtime::Handle;

use crate::ServerError;
use crate::limits::{MAX_ALL_STATISTICS, MAX_BOOKS};
use crate::shared::Shared;
use crate::statistics::book::{Book, Key, Owner};

/// Name of the directory of books in the directory of a target.
const DIRECTORY: &str = "statistics";

/// Open books by the object that they describe, each with the time of its last use, and the clock of these times.
type OpenBooks = (HashMap<ObjectId, (Arc<OpenBook>, u64)>, u64);

/// Statistics of a node's chunks, in one book per object.
pub(crate) struct StatisticsStore {
    dir: PathBuf,
    store: Arc<dyn ObjectStore>,
    threads: Handle,
    /// Books in memory.
    open: Mutex<OpenBooks>,
    /// Bytes of the books in memory.
    bytes: AtomicUsize,
    failed: AtomicU64,
}

/// Where a book is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BookPlace {
    /// In a file too, as long as its object exists.
    File,
    /// In memory only, for a file of an attached tree, which this node does not manage.
    Memory,
}

/// A book in memory.
struct OpenBook {
    owner: Owner,
    place: BookPlace,
    book: Mutex<State>,
    /// Held while the file is written or removed.
    file: Mutex<()>,
}

#[derive(Default)]
struct State {
    book: Book,
    /// Whether the book has entries that the file lacks.
    changed: bool,
    /// Whether its object was removed, or the book is no longer in memory.
    gone: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StatisticsStore {
    /// Opens the books of a target, and removes the books of missing objects. Blocks. `threads`: runtime for later
    /// writes.
    ///
    /// # Errors
    /// Returns an error if the directory of books cannot be made or listed.
    pub fn open(
        target: &Path,
        store: Arc<dyn ObjectStore>,
        threads: Handle,
    ) -> Result<Arc<StatisticsStore>, ServerError> {
        let dir = target.join(DIRECTORY);
        let failed = |verb, source| ServerError::File { verb, path: dir.clone(), source };
        std::fs::create_dir_all(&dir).map_err(|source| failed("make", source))?;
        for entry in std::fs::read_dir(&dir).map_err(|source| failed("list", source))? {
            let entry = entry.map_err(|source| failed("list", source))?;
            let id = entry.file_name().to_str().and_then(|name| ObjectId::new(name).ok());
            let gone = match id {
                Some(id) => matches!(store.stat(&id), Err(StoreError::NotFound { .. })),
                None => true,
            };
            if gone {
                // A book that stays only takes space.
                let _ = std::fs::remove_file(entry.path());
            }
        }
        let (open, bytes, failed) = (Mutex::default(), AtomicUsize::new(0), AtomicU64::new(0));
        Ok(Arc::new(StatisticsStore { dir, store, threads, open, bytes, failed }))
    }

    fn path(&self, id: &ObjectId) -> PathBuf {
        self.dir.join(id.as_str())
    }

    /// Number of failed writes of books.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Bytes of the books in memory.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Opens the book of an object. `None` if there is no room for it in memory. Blocks.
    fn open_book(&self, owner: Owner, place: BookPlace) -> Option<Arc<OpenBook>> {
        let mut open = lock(&self.open);
        let (books, clock) = &mut *open;
        *clock += 1;
        let now = *clock;
        if let Some((kept, used)) = books.get_mut(&owner.object)
            && kept.owner == owner
        {
            *used = now;
            return Some(kept.clone());
        }
        if let Some((old, _)) = books.remove(&owner.object) {
            self.discard(&old);
        }
        while books.len() >= MAX_BOOKS || self.bytes() >= MAX_ALL_STATISTICS {
            let unused = books.iter().filter(|(_, (kept, _))| Arc::strong_count(kept) == 1);
            let oldest = unused.min_by_key(|(_, (_, used))| *used).map(|(id, _)| id.clone())?;
            if let Some((old, _)) = books.remove(&oldest) {
                self.discard(&old);
            }
        }
        let book = match place {
            BookPlace::File => Book::read(&self.path(&owner.object), &owner).unwrap_or_default(),
            BookPlace::Memory => Book::default(),
        };
        self.bytes.fetch_add(book.bytes(), Ordering::Relaxed);
        let id = owner.object.clone();
        let state = State { book, ..State::default() };
        let kept = Arc::new(OpenBook { owner, place, book: Mutex::new(state), file: Mutex::default() });
        books.insert(id, (kept.clone(), now));
        Some(kept)
    }

    /// Empties a book that is no longer in memory.
    fn discard(&self, kept: &OpenBook) {
        let mut state = lock(&kept.book);
        self.bytes.fetch_sub(state.book.bytes(), Ordering::Relaxed);
        // A request that still holds it adds nothing, and its bytes no longer count.
        state.book = Book::default();
        (state.gone, state.changed) = (true, false);
    }

    /// Removes the book of a removed object. Blocks.
    pub fn forget(&self, id: &ObjectId) {
        let kept = lock(&self.open).0.remove(id).map(|(kept, _)| kept);
        let _written = kept.as_ref().map(|kept| {
            self.discard(kept);
            lock(&kept.file)
        });
        // There may be no file. A file that stays only takes space.
        let _ = std::fs::remove_file(self.path(id));
    }

    /// Writes all changed books.
    #[cfg(test)]
    pub fn write_all(&self) {
        let all: Vec<Arc<OpenBook>> = lock(&self.open).0.values().map(|(kept, _)| kept.clone()).collect();
        all.iter().for_each(|kept| self.write(kept));
    }

    /// Writes a changed book to its file. Blocks.
    fn write(&self, kept: &OpenBook) {
        if kept.place == BookPlace::Memory {
            return;
        }
        let _writing = lock(&kept.file);
        let bytes = {
            let mut state = lock(&kept.book);
            if !std::mem::take(&mut state.changed) || state.gone {
                return;
            }
            state.book.encode(&kept.owner)
        };
        let there = self.store.stat(&kept.owner.object).is_ok();
        if there && write_atomic(&self.path(&kept.owner.object), &bytes).is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Statistics for one request.
struct ForRequest {
    books: Arc<StatisticsStore>,
    kept: Arc<OpenBook>,
    /// Hash of all that the summaries of every chunk depend on.
    seed: Context,
    chunks: Chunks,
}

impl ForRequest {
    fn key(&self, number: u64) -> Option<Key> {
        let mut context = self.seed.clone();
        context.update(&self.chunks.identity(number)?);
        context.finish().as_ref().first_chunk().copied()
    }
}

impl Statistics for ForRequest {
    fn known(&self, number: u64) -> Option<Vec<u8>> {
        let key = self.key(number)?;
        lock(&self.kept.book).book.get(&key).map(<[u8]>::to_vec)
    }

    fn learned(&self, number: u64, summary: Vec<u8>) {
        let Some(key) = self.key(number) else { return };
        let mut state = lock(&self.kept.book);
        if state.gone || self.books.bytes() >= MAX_ALL_STATISTICS {
            return;
        }
        let before = state.book.bytes();
        state.changed |= state.book.put(key, summary);
        let after = state.book.bytes();
        self.books.bytes.fetch_add(after, Ordering::Relaxed);
        self.books.bytes.fetch_sub(before, Ordering::Relaxed);
    }
}

impl Drop for ForRequest {
    /// Writes the book after the request.
    fn drop(&mut self) {
        if lock(&self.kept.book).changed {
            let (books, kept) = (self.books.clone(), self.kept.clone());
            // A thread of the runtime starts the writer: a thread that a lane starts has its low priority.
            self.books
                .threads
                .spawn(async move { tokio::task::spawn_blocking(move || books.write(&kept)).await });
        }
    }
}

/// Statistics of the chunks of this request, if they can be stored. Blocks: a book may have to be read.
pub(crate) fn for_request(shared: &Shared, files: &Files, run: &Request) -> Option<Arc<dyn Statistics>> {
    let books = shared.statistics.as_ref().filter(|_| run.options.statistics)?;
    // What is known of a file that may change under the same version is not kept, nor what a user reads with credentials of his own.
    let may_be_kept = |file: &FileMap| {
        file.attached.as_deref().is_none_or(|attached| attached.settled && !attached.tree.user_credentials)
    };
    if !files.each().iter().all(|(file, _)| may_be_kept(file)) {
        return None;
    }
    // A chunk that statistics settle is not read, so its file must be looked at. Several files were opened for this request.
    if let [(file, _)] = files.each()
        && let Some(attached) = &file.attached
        && !crate::attached::is_unchanged(shared, file, attached)
    {
        return None;
    }
    let files: Vec<&FileMap> = files.each().iter().map(|(file, _)| file).collect();
    request_statistics(books, &files, shared.number().ok()?, run)
}

/// Statistics of the chunks of this request on the node of the target with this number.
pub(crate) fn request_statistics(
    books: &Arc<StatisticsStore>,
    files: &[&FileMap],
    number: u32,
    run: &Request,
) -> Option<Arc<dyn Statistics>> {
    let (chunks, key) = (run.chunks.clone()?, run.kernel.summary_key()?);
    let here = |file: &&FileMap| {
        let place = file.targets.iter().find(|place| place.number == number)?;
        let owner = Owner { object: ObjectId::new(&file.object()).ok()?, version: place.version };
        Some((owner, if file.attached.is_some() { BookPlace::Memory } else { BookPlace::File }))
    };
    // The book belongs to the first file with an object on this node.
    let (owner, place) = files.iter().find_map(here)?;
    let kept = books.open_book(owner, place)?;
    let mut seed = Context::new(&SHA256);
    let files = files.iter().map(|file| file_identity(file));
    for part in [key, chunks.array_identity()].into_iter().chain(files) {
        seed.update(&(part.len() as u64).to_le_bytes());
        seed.update(&part);
    }
    Some(Arc::new(ForRequest { books: books.clone(), kept, seed, chunks }))
}

/// Bytes that identify the content of a file: its objects, their versions, and the layout.
fn file_identity(file: &FileMap) -> Vec<u8> {
    let mut out = file.id.as_bytes().to_vec();
    for n in [file.length, file.unit, u64::from(file.first), u64::from(file.segments)] {
        out.extend(n.to_le_bytes());
    }
    for place in &file.targets {
        out.extend(place.number.to_le_bytes());
        out.extend(place.version.to_le_bytes());
    }
    for component in file.attached.iter().flat_map(|attached| &attached.components) {
        for n in [component.end, component.unit, component.cycle.len() as u64] {
            out.extend(n.to_le_bytes());
        }
        out.extend(component.cycle.iter().flat_map(|target| target.to_le_bytes()));
    }
    out
}

/// Reads a file of at most `most` bytes. `None` for a longer file.
fn read_bounded(path: &Path, most: usize) -> io::Result<Option<Vec<u8>>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(most as u64 + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() <= most).then_some(bytes))
}
