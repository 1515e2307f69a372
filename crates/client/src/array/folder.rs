//! The chunks of a folder of this machine as one file. Chunk files are opened only when they are read, so their number
//! is not limited by open files.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_format::{Dataset, FileRef, FolderTree, FormatError, Source, Tree, open_tree};
use gristmill_layout::{Layout, Striped};
use gristmill_runtime::{FileParts, Part, Placement, RunError};

use crate::ClientError;
use crate::file_states::FileStates;

/// Placement of requests over files of this machine.
const CLIENT: Placement = Placement {
    place: "client",
    why: "the files of a folder of this machine are folded by the client",
    remote: false,
};

/// One file, in the state that it had when the request was made.
struct FolderPart {
    path: PathBuf,
    state: State,
}

/// Length in bytes, and time of the last change in seconds and nanoseconds.
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

/// A Zarr folder of this machine, with one state of each of its files.
pub struct Folder {
    /// The variables of the folder.
    pub dataset: Arc<Dataset>,
    root: PathBuf,
    states: FileStates<State>,
}

/// A folder that notes the state of each file when it is first used.
struct WatchedTree {
    tree: FolderTree,
    root: PathBuf,
    states: FileStates<State>,
}

impl WatchedTree {
    fn check(&self, key: &str) -> Result<(), FormatError> {
        let failed = |source| FormatError::Io { what: key.to_owned(), source };
        self.states.check(key, State::of(&std::fs::metadata(self.root.join(key)).map_err(failed)?))
    }
}

impl Tree for WatchedTree {
    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>, FormatError> {
        let found = self.tree.open(key)?;
        if found.is_some() {
            self.check(key)?;
        }
        Ok(found)
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>, FormatError> {
        let found = self.tree.list(folder)?;
        found.iter().try_for_each(|(key, _)| self.check(key))?;
        Ok(found)
    }
}

impl Folder {
    /// Opens a folder and reads its metadata.
    ///
    /// # Errors
    /// Returns an error if the metadata cannot be read or parsed.
    pub fn open(root: &Path) -> Result<Folder, FormatError> {
        let states = FileStates::default();
        let tree = WatchedTree { tree: FolderTree::new(root), root: root.to_owned(), states: states.clone() };
        Ok(Folder { dataset: Arc::new(open_tree(Arc::new(tree))?), root: root.to_owned(), states })
    }

    /// Returns some files of the folder as one, one after the other.
    ///
    /// # Errors
    /// Returns [`ClientError::Io`] if a file cannot be read, and [`RunError::Changed`] if it was changed after the
    /// folder was opened.
    pub fn parts(&self, files: &[FileRef]) -> Result<FileParts, ClientError> {
        let part = |file: &FileRef| {
            let path = self.root.join(&file.name);
            let meta = std::fs::metadata(&path);
            let meta = meta.map_err(|source| ClientError::Io { verb: "read", path: path.clone(), source })?;
            let (state, length, name) = (State::of(&meta), meta.len(), path.display().to_string());
            if length != file.length || self.states.check(&file.name, state).is_err() {
                return Err(RunError::Changed { name }.into());
            }
            let layout: Layout = Striped::new(length.max(1), 1, 0).map_err(RunError::from)?.into();
            let parts = vec![Arc::new(FolderPart { path, state }) as Arc<dyn Part>];
            Ok((FileParts { name, length, layout, parts, place: CLIENT }, vec![0]))
        };
        let files = files.iter().map(part).collect::<Result<Vec<_>, ClientError>>()?;
        Ok(FileParts::joined(self.root.display().to_string(), files, 1, CLIENT)?)
    }
}

/// Makes an empty file, for requests about arrays without stored chunks.
///
/// # Errors
/// Returns an error if the layout of the empty file is refused, which no input causes.
pub fn empty_file(name: &str) -> Result<FileParts, ClientError> {
    Ok(FileParts::joined(name.to_owned(), Vec::new(), 1, CLIENT)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_chunk_that_was_replaced_since_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let about = r#"{"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i2", "compressor": null,
            "filters": null, "fill_value": 0, "order": "C"}"#;
        std::fs::write(dir.path().join(".zarray"), about).unwrap();
        std::fs::write(dir.path().join("0"), [1, 0, 2, 0]).unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let name = folder.dataset.variables[0].path.clone();
        let table = folder.dataset.table(&name).unwrap();
        assert_eq!(folder.parts(&table.files).unwrap().length, 4);
        // The new file has the old length, and is written under another name and then renamed, as other tools do.
        std::fs::write(dir.path().join("new"), [3, 0, 4, 0]).unwrap();
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        std::fs::File::options()
            .write(true)
            .open(dir.path().join("new"))
            .unwrap()
            .set_modified(later)
            .unwrap();
        std::fs::rename(dir.path().join("new"), dir.path().join("0")).unwrap();
        assert!(matches!(folder.parts(&table.files), Err(ClientError::Run(RunError::Changed { .. }))));
        assert!(folder.dataset.table(&name).is_err());
    }
}
