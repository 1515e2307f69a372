//! The chunks of a folder of this machine as one file: opened when they are read, so that any number is possible.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_format::{Dataset, FileRef, FolderTree, FormatError, Source, Tree, open_tree};
use gristmill_layout::{Layout, Striped};
use gristmill_runtime::{FileParts, Part, Placement, RunError};

use crate::ClientError;
use crate::seen::Seen;

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

/// A folder of Zarr of this machine, as one state of each of its files.
pub struct Folder {
    /// What is in it.
    pub dataset: Arc<Dataset>,
    root: PathBuf,
    seen: Seen<State>,
}

/// A folder whose files are noted as they are seen.
struct WatchedTree {
    tree: FolderTree,
    root: PathBuf,
    seen: Seen<State>,
}

impl WatchedTree {
    fn note(&self, key: &str) -> Result<(), FormatError> {
        let failed = |source| FormatError::Io { what: key.to_owned(), source };
        self.seen.note(key, State::of(&std::fs::metadata(self.root.join(key)).map_err(failed)?))
    }
}

impl Tree for WatchedTree {
    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>, FormatError> {
        let found = self.tree.open(key)?;
        if found.is_some() {
            self.note(key)?;
        }
        Ok(found)
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>, FormatError> {
        let found = self.tree.list(folder)?;
        found.iter().try_for_each(|(key, _)| self.note(key))?;
        Ok(found)
    }
}

impl Folder {
    /// Reads what a folder says about itself.
    ///
    /// # Errors
    /// What the format's parser refuses.
    pub fn open(root: &Path) -> Result<Folder, FormatError> {
        let seen = Seen::default();
        let tree = WatchedTree { tree: FolderTree::new(root), root: root.to_owned(), seen: seen.clone() };
        Ok(Folder { dataset: Arc::new(open_tree(Arc::new(tree))?), root: root.to_owned(), seen })
    }

    /// These files of it, one behind the other.
    ///
    /// # Errors
    /// One that is not there, or was changed since the folder was opened.
    pub fn parts(&self, files: &[FileRef]) -> Result<FileParts, ClientError> {
        let part = |file: &FileRef| {
            let path = self.root.join(&file.name);
            let meta = std::fs::metadata(&path);
            let meta = meta.map_err(|source| ClientError::Io { verb: "read", path: path.clone(), source })?;
            let (state, length, name) = (State::of(&meta), meta.len(), path.display().to_string());
            if length != file.length || self.seen.note(&file.name, state).is_err() {
                return Err(RunError::Changed { name }.into());
            }
            let layout: Layout = Striped::new(length.max(1), 1, 0).map_err(RunError::from)?.into();
            let parts = vec![Arc::new(FolderPart { path, state }) as Arc<dyn Part>];
            Ok((FileParts { name, length, layout, parts, place: HERE }, vec![0]))
        };
        let files = files.iter().map(part).collect::<Result<Vec<_>, ClientError>>()?;
        Ok(FileParts::joined(self.root.display().to_string(), files, 1, HERE)?)
    }
}

/// A file without a byte, for requests about arrays of which no chunk is stored.
///
/// # Errors
/// None that is known.
pub fn nowhere(name: &str) -> Result<FileParts, ClientError> {
    Ok(FileParts::joined(name.to_owned(), Vec::new(), 1, HERE)?)
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
        // As long as before, and put in its place as others do it: under another name first.
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
