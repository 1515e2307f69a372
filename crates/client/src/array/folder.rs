//! The chunks of a folder of this machine as one file: opened when they are read, so that any number is possible.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_format::FileRef;
use gristmill_layout::{Layout, Striped};
use gristmill_runtime::{FileParts, Part, Placement, RunError};

use crate::ClientError;

const HERE: Placement = Placement {
    place: "client",
    why: "the files of a folder of this machine are folded by the process that asks",
    remote: false,
};

/// One file, as it was when the request was made out.
struct FolderPart {
    path: PathBuf,
    state: State,
}

/// Length, and when it was changed last.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State(u64, i64, i64);

impl State {
    fn of(meta: &std::fs::Metadata) -> State {
        State(meta.len(), meta.mtime(), meta.mtime_nsec())
    }
}

impl FolderPart {
    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

impl Part for FolderPart {
    fn read(&self, _: Option<&str>, offset: u64, buffer: &mut [u8]) -> Result<(), RunError> {
        let failed = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                RunError::Truncated { name: self.name(), offset, length: self.state.0 }
            }
            _ => RunError::Read { name: self.name(), offset, source },
        };
        File::open(&self.path).and_then(|file| file.read_exact_at(buffer, offset)).map_err(failed)
    }

    fn unchanged(&self) -> Result<(), RunError> {
        match std::fs::metadata(&self.path) {
            Ok(meta) if State::of(&meta) == self.state => Ok(()),
            _ => Err(RunError::Changed { name: self.name() }),
        }
    }

    fn version(&self) -> u64 {
        let State(length, seconds, nanoseconds) = self.state;
        (seconds as u64).wrapping_mul(1_000_000_000).wrapping_add(nanoseconds as u64) ^ length
    }

    fn describe(&self) -> String {
        "this process".to_owned()
    }
}

/// A file without a byte, for requests about arrays of which no chunk is stored.
///
/// # Errors
/// None that is known.
pub fn nowhere(name: &str) -> Result<FileParts, ClientError> {
    Ok(FileParts::joined(name.to_owned(), Vec::new(), 1, HERE)?)
}

/// These files of a folder, one behind the other.
///
/// # Errors
/// One that is not there, or no longer as long as it was.
pub fn folder_parts(folder: &Path, files: &[FileRef]) -> Result<FileParts, ClientError> {
    let part = |file: &FileRef| {
        let path = folder.join(&file.name);
        let meta = std::fs::metadata(&path);
        let meta = meta.map_err(|source| ClientError::Io { verb: "read", path: path.clone(), source })?;
        let (state, length, name) = (State::of(&meta), meta.len(), path.display().to_string());
        if length != file.length {
            return Err(RunError::Changed { name }.into());
        }
        let layout: Layout = Striped::new(length.max(1), 1, 0).map_err(RunError::from)?.into();
        let parts = vec![Arc::new(FolderPart { path, state }) as Arc<dyn Part>];
        Ok((FileParts { name, length, layout, parts, place: HERE }, vec![0]))
    };
    let files = files.iter().map(part).collect::<Result<Vec<_>, ClientError>>()?;
    Ok(FileParts::joined(folder.display().to_string(), files, 1, HERE)?)
}
