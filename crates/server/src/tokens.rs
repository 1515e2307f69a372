//! The file of names and tokens.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use gristmill_namespace::Principal;
use ring::digest;

use crate::ServerError;
use crate::limits::MAX_TOKENS_BYTES;
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
