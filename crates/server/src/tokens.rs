//! The file of names and tokens, which is read again when it changes.

use std::collections::HashMap;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use gristmill_namespace::Principal;
use ring::digest;

use crate::ServerError;
use crate::limits::{MAX_TOKENS_BYTES, TOKENS_LOOK, TOKENS_SETTLED};

/// SHA-256 of a token. The time of a look-up does not depend on a common prefix with other tokens.
type Hash = [u8; 32];

fn hash(token: &str) -> Hash {
    let mut out = [0; 32];
    out.copy_from_slice(digest::digest(&digest::SHA256, token.as_bytes()).as_ref());
    out
}

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
        age.is_ok_and(|age| age >= TOKENS_SETTLED)
    }
}

/// The tokens that were read last.
#[derive(Debug)]
struct TokenTable {
    tokens: HashMap<Hash, Principal>,
    state: State,
    /// Whether a later change has another state.
    settled: bool,
    checked: Instant,
}

/// The tokens of a file.
#[derive(Debug)]
pub(crate) struct TokenFile {
    path: PathBuf,
    known: Mutex<TokenTable>,
}

impl TokenFile {
    /// Reads a file with `NAME TOKEN` on each line. Empty lines and lines that begin with # are ignored.
    ///
    /// # Errors
    /// Returns an error if others may read the file, or if it is too long or malformed.
    pub fn read(path: &Path) -> Result<TokenFile, ServerError> {
        let state = State::read(path);
        let known =
            TokenTable { tokens: parse(path)?, settled: state.is_settled(), state, checked: Instant::now() };
        Ok(TokenFile { path: path.to_owned(), known: Mutex::new(known) })
    }

    /// The principal of a token. It checks the file for a change at most every [`TOKENS_LOOK`].
    pub fn principal(&self, token: &str) -> Option<Principal> {
        let mut known = self.lock();
        if known.checked.elapsed() >= TOKENS_LOOK {
            self.look(&mut known);
        }
        known.tokens.get(&hash(token)).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, TokenTable> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the file again if it changed. If it cannot be used, the known tokens stay, and the error is logged once.
    fn look(&self, known: &mut TokenTable) {
        known.checked = Instant::now();
        let state = State::read(&self.path);
        if state == known.state && known.settled {
            return;
        }
        let (again, settled) = (state != known.state, state.is_settled());
        (known.state, known.settled) = (state, settled);
        match parse(&self.path) {
            Ok(tokens) => known.tokens = tokens,
            Err(error) if again => {
                // If the log cannot be written, only this line is lost.
                let _ = writeln!(
                    std::io::stderr(),
                    "gristmill: {error}; the tokens that were read before stay in use"
                );
            }
            Err(_) => {}
        }
    }
}

fn parse(path: &Path) -> Result<HashMap<Hash, Principal>, ServerError> {
    let failed = |source| ServerError::File { verb: "read", path: path.to_owned(), source };
    let meta = std::fs::metadata(path).map_err(failed)?;
    let usage = |text: &str| Err(ServerError::Usage(format!("{}: {text}", path.display())));
    if meta.mode() & 0o077 != 0 {
        return usage("others may read these tokens; make the file readable by its owner only (chmod 600)");
    }
    if meta.len() > MAX_TOKENS_BYTES {
        return usage("the file is too long for a file of tokens; check its name");
    }
    let mut tokens = HashMap::new();
    for (n, line) in std::fs::read_to_string(path).map_err(failed)?.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, token) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let Ok(principal) = name.parse::<Principal>() else {
            return usage(&format!("line {}: the name is not valid; write NAME TOKEN", n + 1));
        };
        if token.trim().len() < 16 {
            return usage(&format!("line {}: a token has at least 16 characters; write NAME TOKEN", n + 1));
        }
        tokens.insert(hash(token.trim()), principal);
    }
    Ok(tokens)
}
