//! A file of an administrator that is read again when it changes.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::ServerError;
use crate::limits::{FILE_LOOK, FILE_SETTLED};

/// State of the file, to notice changes. An error of the system is a state too.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    File { device: u64, inode: u64, length: u64, changed: (i64, i64), mode: u32 },
    Failed(Option<i32>),
}

impl State {
    fn read(path: &Path) -> State {
        match std::fs::metadata(path) {
            Err(error) => State::Failed(error.raw_os_error()),
            Ok(meta) => State::File {
                device: meta.dev(),
                inode: meta.ino(),
                length: meta.len(),
                // It changes with the bytes and the mode, and no program can set it.
                changed: (meta.ctime(), meta.ctime_nsec()),
                mode: meta.mode(),
            },
        }
    }

    /// Whether it is so old that a later change has another time. Clocks of file systems have ticks.
    fn is_settled(&self) -> bool {
        let State::File { changed: (seconds, nanos), .. } = self else { return true };
        let since = Duration::new(u64::try_from(*seconds).unwrap_or(0), u32::try_from(*nanos).unwrap_or(0));
        let age = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + since);
        age.is_ok_and(|age| age >= FILE_SETTLED)
    }
}

/// The content that was read last, and the state of the file then.
#[derive(Debug)]
struct Known<T> {
    content: T,
    state: State,
    /// Whether a later change has another state.
    settled: bool,
    checked: Instant,
}

/// A file with the parsed content that was read last.
#[derive(Debug)]
pub(crate) struct WatchedFile<T> {
    path: PathBuf,
    /// The content in messages, in the plural.
    what: &'static str,
    parse: fn(&Path) -> Result<T, ServerError>,
    known: Mutex<Known<T>>,
}

impl<T> WatchedFile<T> {
    /// Reads a file.
    ///
    /// # Errors
    /// It fails as `parse` does.
    pub fn read(
        path: &Path,
        what: &'static str,
        parse: fn(&Path) -> Result<T, ServerError>,
    ) -> Result<WatchedFile<T>, ServerError> {
        let state = State::read(path);
        let content = parse(path)?;
        let known = Known { content, settled: state.is_settled(), state, checked: Instant::now() };
        Ok(WatchedFile { path: path.to_owned(), what, parse, known: Mutex::new(known) })
    }

    /// Calls `with` with the content. It checks the file for a change at most every [`FILE_LOOK`].
    pub fn with<R>(&self, with: impl FnOnce(&T) -> R) -> R {
        let mut known = self.lock();
        if known.checked.elapsed() >= FILE_LOOK {
            self.look(&mut known);
        }
        with(&known.content)
    }

    fn lock(&self) -> MutexGuard<'_, Known<T>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the file again if it changed. If it cannot be used, the known content stays, and the error is logged once.
    fn look(&self, known: &mut Known<T>) {
        known.checked = Instant::now();
        let state = State::read(&self.path);
        if state == known.state && known.settled {
            return;
        }
        let (again, settled) = (state != known.state, state.is_settled());
        (known.state, known.settled) = (state, settled);
        match (self.parse)(&self.path) {
            Ok(content) => known.content = content,
            Err(error) if again => {
                let what = self.what;
                // If the log cannot be written, only this line is lost.
                let _ = writeln!(
                    std::io::stderr(),
                    "gristmill: {error}; the {what} that were read before stay in use"
                );
            }
            Err(_) => {}
        }
    }
}
