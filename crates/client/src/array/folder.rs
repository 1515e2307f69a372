//! The chunks of a folder of this machine, of an object store or of a web server as one file. Only some of the chunk files stay open,
//! so their number is not limited.

use std::path::Path;
use std::sync::Arc;

use gristmill_backend::{Backend, Found, Object};
use gristmill_format::{BackendTree, Dataset, FileRef, FormatError, Source, Tree, is_zarr_name, open_tree};
use gristmill_runtime::{FileParts, Placement, RunError};

use crate::ClientError;
use crate::file_states::{FileStates, check_listed};

/// Placement of requests over files of this machine.
const CLIENT: Placement = Placement {
    place: "client",
    why: "the files of a folder of this machine are folded by the client",
    remote: false,
};

/// The reader of the files, in reports.
const READER: &str = "this process";

/// A Zarr folder that this process reads, with one state of each of its files.
pub struct Folder {
    /// The variables of the folder.
    pub dataset: Arc<Dataset>,
    name: String,
    place: Placement,
    tree: BackendTree,
    states: FileStates<Found>,
}

/// A folder that notes the state of each file when it is first used.
struct WatchedTree {
    tree: BackendTree,
    states: FileStates<Found>,
}

impl Tree for WatchedTree {
    fn lists_everything(&self) -> bool {
        self.tree.lists_everything()
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>, FormatError> {
        let Some(object) = self.tree.object(key)? else { return Ok(None) };
        self.states.check(key, object.found().clone())?;
        Ok(Some(Arc::new(WatchedFile { key: key.to_owned(), object })))
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>, FormatError> {
        let known = self.states.known_below(folder);
        let mut files = self.tree.files(folder)?;
        // Files that other programs leave there come and go.
        files.retain(|(key, _)| is_zarr_name(key.rsplit('/').next().unwrap_or(key)));
        files.iter().try_for_each(|(key, found)| self.states.check(key, found.clone()))?;
        check_listed(&known, files.iter().map(|(key, _)| key.as_str()))?;
        Ok(files.into_iter().map(|(key, found)| (key, found.length)).collect())
    }
}

/// A file of a folder. All bytes that are read are of the state in which it was opened.
struct WatchedFile {
    key: String,
    object: Arc<dyn Object>,
}

impl Source for WatchedFile {
    fn len(&self) -> u64 {
        self.object.found().length
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), FormatError> {
        let read = self.object.read_at(offset, into).and_then(|()| self.object.unchanged());
        read.map_err(|error| {
            let source = std::io::Error::other(RunError::from(error));
            FormatError::Io { what: self.key.clone(), source }
        })
    }
}

impl Folder {
    /// Opens a folder of this machine and reads its metadata.
    ///
    /// # Errors
    /// Returns an error if the metadata cannot be read or parsed.
    pub fn open(root: &Path) -> Result<Folder, FormatError> {
        let failed = |source| FormatError::Io { what: root.display().to_string(), source };
        let root = &std::path::absolute(root).map_err(failed)?;
        Folder::read(BackendTree::of_folder(root)?, root.display().to_string(), CLIENT)
    }

    /// Opens the root of a backend and reads its metadata.
    ///
    /// # Errors
    /// Returns an error if the metadata cannot be read or parsed.
    pub fn of_backend(backend: Arc<dyn Backend>, place: Placement) -> Result<Folder, FormatError> {
        let name = backend.name();
        Folder::read(BackendTree::new(backend), name, place)
    }

    fn read(tree: BackendTree, name: String, place: Placement) -> Result<Folder, FormatError> {
        let states = FileStates::default();
        let watched = WatchedTree { tree: tree.clone(), states: states.clone() };
        Ok(Folder { dataset: Arc::new(open_tree(Arc::new(watched))?), name, place, tree, states })
    }

    /// Returns some files of the folder as one, one after the other.
    ///
    /// # Errors
    /// Returns [`FormatError::Io`] if a file cannot be opened, and [`RunError::Changed`] if it was changed after the folder was
    /// opened.
    pub fn parts(&self, files: &[FileRef]) -> Result<FileParts, ClientError> {
        let part = |file: &FileRef| {
            let changed = || RunError::Changed { name: format!("{}/{}", self.name, file.name) };
            let object = self.object(&file.name)?.ok_or_else(changed)?;
            let found = object.found().clone();
            if found.length != file.length || self.states.check(&file.name, found).is_err() {
                return Err(changed().into());
            }
            Ok((FileParts::of_object(object, READER, self.place)?, vec![0]))
        };
        let files = files.iter().map(part).collect::<Result<Vec<_>, ClientError>>()?;
        Ok(FileParts::joined(self.name.clone(), files, 1, self.place)?)
    }

    /// A file in the state that was noted before. For storage behind a network that needs no request.
    fn object(&self, key: &str) -> Result<Option<Arc<dyn Object>>, FormatError> {
        match self.states.known(key) {
            Some(found) => self.tree.object_at(key, &found),
            None => self.tree.object(key),
        }
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

    /// A folder of Zarr with the chunks 0 and 1 of the array `v`.
    fn made(root: &Path) {
        let about = r#"{"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i2", "compressor": null,
            "filters": null, "fill_value": 0, "order": "C"}"#;
        std::fs::create_dir_all(root.join("v")).unwrap();
        std::fs::write(root.join(".zgroup"), r#"{"zarr_format": 2}"#).unwrap();
        std::fs::write(root.join("v/.zarray"), about).unwrap();
        std::fs::write(root.join("v/0"), [1, 0, 2, 0]).unwrap();
        std::fs::write(root.join("v/1"), [3, 0, 4, 0]).unwrap();
    }

    #[test]
    fn a_chunk_that_cannot_be_read_is_not_the_fill_value() {
        let dir = tempfile::tempdir().unwrap();
        made(dir.path());
        assert_eq!(Folder::open(dir.path()).unwrap().dataset.table("v").unwrap().files.len(), 2);
        std::fs::remove_file(dir.path().join("v/1")).unwrap();
        std::os::unix::fs::symlink("/nowhere/annexed", dir.path().join("v/1")).unwrap();
        let table = Folder::open(dir.path()).and_then(|folder| folder.dataset.table("v"));
        assert!(table.is_err_and(|error| error.to_string().contains("v/1")));
        // A chunk that no file stands for is the fill value.
        std::fs::remove_file(dir.path().join("v/1")).unwrap();
        assert_eq!(Folder::open(dir.path()).unwrap().dataset.table("v").unwrap().stored_chunks(), 1);
    }

    #[test]
    fn files_of_other_programs_come_and_go() {
        let dir = tempfile::tempdir().unwrap();
        made(dir.path());
        std::os::unix::fs::symlink("nobody@nowhere", dir.path().join(".#notes")).unwrap();
        std::fs::write(dir.path().join("v/1.6c1f.partial"), [9]).unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        assert_eq!(folder.dataset.table("v").unwrap().files.len(), 2);
        std::fs::remove_file(dir.path().join("v/1.6c1f.partial")).unwrap();
        std::fs::write(dir.path().join("v/.nfs0001"), [9]).unwrap();
        assert_eq!(folder.dataset.table("v").unwrap().files.len(), 2);
    }

    #[test]
    fn a_file_that_is_written_in_place_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        made(dir.path());
        let folder = Folder::open(dir.path()).unwrap();
        let watched = WatchedTree { tree: folder.tree.clone(), states: folder.states.clone() };
        let source = watched.open("v/0").unwrap().unwrap();
        source.read_at(0, &mut [0; 4]).unwrap();
        std::fs::write(dir.path().join("v/0"), [5, 0, 6, 0]).unwrap();
        let file = std::fs::File::options().write(true).open(dir.path().join("v/0")).unwrap();
        file.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(5)).unwrap();
        let error = ClientError::from(source.read_at(0, &mut [0; 4]).unwrap_err());
        assert!(matches!(error.storage(), Some(RunError::Changed { .. })), "{error}");
        assert!(watched.open("v/0").is_err());
    }

    #[test]
    fn a_folder_that_was_made_anew_is_not_the_fill_value() {
        let above = tempfile::tempdir().unwrap();
        let root = above.path().join("folder");
        made(&root);
        let folder = Folder::open(&root).unwrap();
        std::fs::remove_dir_all(&root).unwrap();
        assert!(folder.dataset.table("v").is_err());
        made(&root);
        std::fs::rename(root.join("v"), root.join("w")).unwrap();
        assert!(folder.dataset.table("v").is_err());
    }
}
