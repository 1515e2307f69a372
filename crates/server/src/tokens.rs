//! The files of names and tokens, and of names and credentials of storage.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use gristmill_namespace::Principal;
use ring::digest;

use crate::ServerError;
use crate::limits::{MAX_TOKENS_BYTES, MIN_TOKEN_BYTES};
use crate::requester::basic_pair;
use crate::watched_file::WatchedFile;

/// SHA-256 of a token. The time of a look-up does not depend on a common prefix with other tokens.
type Hash = [u8; 32];

fn hash(token: &str) -> Hash {
    let mut out = [0; 32];
    out.copy_from_slice(digest::digest(&digest::SHA256, token.as_bytes()).as_ref());
    out
}

/// The tokens of a file.
#[derive(Debug)]
pub(crate) struct TokenFile(WatchedFile<HashMap<Hash, Principal>>);

impl TokenFile {
    /// Reads a file with `NAME TOKEN` on each line. Empty lines and lines that begin with # are ignored.
    ///
    /// # Errors
    /// Returns an error if others may read the file, or if it is too long or malformed.
    pub fn read(path: &Path) -> Result<TokenFile, ServerError> {
        Ok(TokenFile(WatchedFile::read(path, "tokens", parse)?))
    }

    /// The principal of a token.
    pub fn principal(&self, token: &str) -> Option<Principal> {
        self.0.with(|tokens| tokens.get(&hash(token)).cloned())
    }
}

/// The credentials of storage that identify users: SHA-256 of `ID:SECRET`.
#[derive(Debug)]
pub(crate) struct SourceUsersFile(WatchedFile<HashMap<Hash, Principal>>);

impl SourceUsersFile {
    /// Reads a file with `NAME HASH` on each line, where the hash has 64 hexadecimal digits. Empty lines and lines that begin with #
    /// are ignored.
    ///
    /// # Errors
    /// Returns an error if others may read the file, or if it is too long or malformed.
    pub fn read(path: &Path) -> Result<SourceUsersFile, ServerError> {
        Ok(SourceUsersFile(WatchedFile::read(path, "users of storage", parse_hashes)?))
    }

    /// The principal of Basic credentials, as the header has them behind `Basic `. `None` if they are not known, malformed, or have a
    /// secret that could be guessed.
    pub fn principal(&self, basic: &[u8]) -> Option<Principal> {
        let pair = basic_pair(basic)?;
        let (_, secret) = pair.split_once(':')?;
        if secret.len() < MIN_TOKEN_BYTES {
            return None;
        }
        self.0.with(|users| users.get(&hash(&pair)).cloned())
    }
}

fn parse(path: &Path) -> Result<HashMap<Hash, Principal>, ServerError> {
    parse_lines(path, "NAME TOKEN", |token| match token.len() < MIN_TOKEN_BYTES {
        true => Err(format!("a token has at least {MIN_TOKEN_BYTES} characters")),
        false => Ok(hash(token)),
    })
}

fn parse_hashes(path: &Path) -> Result<HashMap<Hash, Principal>, ServerError> {
    parse_lines(path, "NAME HASH", |text| {
        let mut out = [0; 32];
        let (pairs, _) = text.as_bytes().as_chunks::<2>();
        let is_hash = text.len() == 2 * out.len() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        for (byte, pair) in out.iter_mut().zip(pairs).filter(|_| is_hash) {
            let digits = str::from_utf8(pair).unwrap_or_default();
            *byte = u8::from_str_radix(digits, 16).map_err(|error| error.to_string())?;
        }
        let wrong = "a hash has 64 hexadecimal digits, as sha256sum prints them";
        if is_hash { Ok(out) } else { Err(wrong.to_owned()) }
    })
}

/// Reads a file with a name and a word on each line.
fn parse_lines(
    path: &Path,
    form: &str,
    read: impl Fn(&str) -> Result<Hash, String>,
) -> Result<HashMap<Hash, Principal>, ServerError> {
    let failed = |source| ServerError::File { verb: "read", path: path.to_owned(), source };
    let meta = std::fs::metadata(path).map_err(failed)?;
    let usage = |text: &str| Err(ServerError::Usage(format!("{}: {text}", path.display())));
    if meta.mode() & 0o077 != 0 {
        return usage("others may read it; make the file readable by its owner only (chmod 600)");
    }
    if meta.len() > MAX_TOKENS_BYTES {
        return usage("the file is too long for a file of names; check its name");
    }
    let mut known: HashMap<Hash, Principal> = HashMap::new();
    for (n, line) in std::fs::read_to_string(path).map_err(failed)?.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, word) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let Ok(principal) = name.parse::<Principal>() else {
            return usage(&format!("line {}: the name is not valid; write {form}", n + 1));
        };
        match read(word.trim()) {
            Ok(hash) if known.get(&hash).is_some_and(|other| *other != principal) => {
                return usage(&format!(
                    "line {}: another user has the same one; each identifies one user",
                    n + 1
                ));
            }
            Ok(hash) => drop(known.insert(hash, principal)),
            Err(why) => return usage(&format!("line {}: {why}; write {form}", n + 1)),
        }
    }
    Ok(known)
}
