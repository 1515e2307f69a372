//! Files below a directory of a cluster: as a tree for the reader of a format, opened together, and copied from a
//! folder.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use gristmill_format::{
    ChunkTable, Dataset, FileRef, FormatError, MAX_FILES, Source, Tree, is_zarr_name, open_tree,
};
use gristmill_peers::Files;
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_wire::TargetPlace;
use gristmill_wire::action::{MAX_BATCH, Opened, PathRequest, names};

use crate::array::{ArrayPlan, ArrayQuestion, PartsSource, Share, plan_dataset, read_dataset, shares};
use crate::file_states::{FileStates, check_listed};
use crate::{ClientError, Cluster};

/// Names of the files that make a folder a Zarr folder.
pub(crate) const OF_ZARR: [&str; 3] = ["zarr.json", ".zarray", ".zgroup"];

/// Messages that open files, at once.
const OPENING: usize = 4;

/// Most levels of directories.
const MAX_LEVELS: usize = 64;

/// A file or a directory of a cluster that holds variables.
pub struct RemoteDataset {
    /// The variables.
    pub dataset: Arc<Dataset>,
    cluster: Cluster,
    path: String,
    /// Ids of the files. Each put gives a file a new id.
    states: FileStates<String>,
    /// The opened file, if it is a single file.
    pub opened: Option<Opened>,
}

impl RemoteDataset {
    /// Plans a request about one of the variables.
    ///
    /// # Errors
    /// It fails as [`plan_dataset`] does.
    pub fn plan(&self, question: &ArrayQuestion) -> Result<ArrayPlan, ClientError> {
        plan_dataset(self.dataset.clone(), question)
    }

    /// Opens the files of chunks by their names below the directory. A format of a single file gives that file for any
    /// name. Returns `None` if no chunk is stored.
    ///
    /// # Errors
    /// Returns an error if a file does not exist any more, if it was replaced, or if there are more files than a
    /// request takes.
    pub fn files(&self, names: &[FileRef]) -> Result<Option<Files>, ClientError> {
        match &self.opened {
            Some(opened) => Ok(Some(Files::from(opened))),
            None if names.is_empty() => Ok(None),
            None => {
                let paths: Vec<String> = names.iter().map(|file| join(&self.path, &file.name)).collect();
                let files = self.cluster.open_many(paths)?;
                // The shard's index and the lengths were read from an earlier state.
                for (file, (map, _)) in names.iter().zip(files.each()) {
                    self.states.check(&file.name, map.id.clone())?;
                }
                Ok(Some(files))
            }
        }
    }

    /// Returns the part of a variable on each target. Returns `None` if that would take more than one message, or if
    /// there are too many chunks.
    ///
    /// # Errors
    /// Returns an error if a file does not exist any more.
    pub fn shares(&self, table: &ChunkTable) -> Result<Option<Vec<(TargetPlace, Share)>>, ClientError> {
        if self.opened.is_none() && table.files.len() > MAX_BATCH {
            return Ok(None);
        }
        match self.files(&table.files)? {
            Some(files) => self.cluster.shares_of(&files, table),
            None => Ok(None),
        }
    }
}

pub(crate) fn join(directory: &str, name: &str) -> String {
    format!("{}/{name}", directory.trim_end_matches('/'))
}

impl Cluster {
    /// Opens a file of a scientific format, or a directory of Zarr, and reads its metadata.
    ///
    /// # Errors
    /// Returns an error if the path is neither, or if the metadata cannot be read or parsed.
    pub fn dataset(&self, path: &str) -> Result<RemoteDataset, ClientError> {
        let (cluster, path) = (self.clone(), path.to_owned());
        match self.open(&path) {
            Ok(opened) => {
                let dataset = Arc::new(read_dataset(&self.parts(&opened)?, &opened.info.file.path)?);
                Ok(RemoteDataset {
                    dataset,
                    cluster,
                    path,
                    states: FileStates::default(),
                    opened: Some(opened),
                })
            }
            Err(ClientError::Run(error)) if error.kind() == ErrorKind::NotFound && self.is_zarr(&path) => {
                let states = FileStates::default();
                let lists_everything = self.lists_everything(&join(&path, ""))?;
                let tree = ClusterTree {
                    cluster: self.clone(),
                    root: path.clone(),
                    states: states.clone(),
                    lists_everything,
                };
                let dataset = Arc::new(open_tree(Arc::new(tree))?);
                Ok(RemoteDataset { dataset, cluster, path, states, opened: None })
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the part of a variable on each target of its files. Returns `None` if there are too many chunks.
    ///
    /// # Errors
    /// Returns an error if the layout of a file cannot be read.
    pub fn shares_of(
        &self,
        files: &Files,
        table: &ChunkTable,
    ) -> Result<Option<Vec<(TargetPlace, Share)>>, ClientError> {
        let layout = files.layout(&self.peers)?;
        let mut begins = Vec::new();
        let mut end = 0u64;
        for (map, _) in files.each() {
            begins.push(end);
            end = end.saturating_add(map.length);
        }
        let targets = files.map().targets.iter().cloned();
        Ok(shares(table, &layout, &begins).map(|shares| targets.zip(shares).collect()))
    }

    pub(crate) fn is_zarr(&self, path: &str) -> bool {
        OF_ZARR.iter().any(|name| self.stat(&join(path, name)).is_ok())
    }

    /// Opens many files at once.
    ///
    /// # Errors
    /// Returns the error of the first file that cannot be opened, and an error if there are more files than a request
    /// takes.
    pub fn open_many(&self, paths: Vec<String>) -> Result<Files, ClientError> {
        let paths: Vec<PathRequest> = paths.into_iter().map(|path| PathRequest { path }).collect();
        let opened = self.peers.wait(async {
            let asked = paths.chunks(MAX_BATCH).map(|some| self.each_of(names::OPEN_MANY, some.to_vec()));
            let answers: Vec<Vec<Result<Opened, RunError>>> =
                stream::iter(asked).buffered(OPENING).collect().await;
            answers.into_iter().flatten().collect::<Result<Vec<Opened>, RunError>>()
        })?;
        let each = opened.into_iter().map(|one| (one.info.file, one.grant.as_str().into()));
        Ok(Files::several(each.collect())?)
    }

    /// Returns all files below a directory: their paths below it, in ascending order, and their lengths.
    pub(crate) fn files_in(&self, directory: &str) -> Result<Vec<(String, u64)>, ClientError> {
        self.files_of_folders(directory, &|_| true)
    }

    /// Returns all files below a directory, as [`files_in`](Cluster::files_in) does, but none of attached trees below it.
    pub(crate) fn own_files_in(&self, directory: &str) -> Result<Vec<(String, u64)>, ClientError> {
        let trees: HashSet<String> = self.trees()?.into_iter().map(|tree| tree.path).collect();
        self.files_of_folders(directory, &|folder| !trees.contains(folder))
    }

    fn files_of_folders(
        &self,
        directory: &str,
        enters: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<(String, u64)>, ClientError> {
        let mut found = self.walk(directory, "", 0, &FileStates::default(), &|_| true, enters)?;
        found.sort_unstable();
        Ok(found)
    }

    /// Returns all files below a directory, with their paths below it. A name that is neither file nor directory is an
    /// error if it `matters`. Directories that it does not `enter` are left out.
    fn walk(
        &self,
        root: &str,
        folder: &str,
        level: usize,
        states: &FileStates<String>,
        matters: &dyn Fn(&str) -> bool,
        enters: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<(String, u64)>, ClientError> {
        FormatError::limit("levels of directories", level as u64, MAX_LEVELS as u64)?;
        let mut found = Vec::new();
        let below = if folder.is_empty() { root.to_owned() } else { join(root, folder) };
        let listed = self.list(&join(&below, "")).map_err(|error| match error {
            // It was there when the folder above was listed.
            ClientError::Run(error) if level > 0 && error.kind() == ErrorKind::NotFound => {
                let message = format!("{below} was removed while it was listed; start over");
                ClientError::Run(RunError::Remote { kind: ErrorKind::Stale, message })
            }
            error => error,
        });
        for entry in listed? {
            if !is_one_name(&entry.name) {
                let message =
                    format!("a node lists {:?} in {below}, which is not the name of a file", entry.name);
                return Err(RunError::Remote { kind: ErrorKind::Failed, message }.into());
            }
            let key = if folder.is_empty() { entry.name } else { format!("{folder}/{}", entry.name) };
            match entry.info {
                None if let Some(why) = entry.unreadable => {
                    if key.rsplit('/').next().is_some_and(matters) {
                        return Err(RunError::Remote { kind: ErrorKind::Failed, message: why }.into());
                    }
                }
                Some(info) => {
                    states.check(&key, info.file.id)?;
                    found.push((key, info.file.length));
                }
                None if !enters(&join(root, &key)) => {}
                None => found.extend(self.walk(root, &key, level + 1, states, matters, enters)?),
            }
            FormatError::limit("files", found.len() as u64, MAX_FILES as u64)?;
        }
        Ok(found)
    }
}

/// Returns whether a name is that of a single file or directory, and does not lead out of its directory. Nodes send
/// these names, and files of this machine are written under them.
fn is_one_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name)
}

/// The files below a directory of a cluster.
struct ClusterTree {
    cluster: Cluster,
    root: String,
    states: FileStates<String>,
    lists_everything: bool,
}

fn failed(what: &str, error: impl std::error::Error + Send + Sync + 'static) -> FormatError {
    FormatError::Io { what: what.to_owned(), source: std::io::Error::other(error) }
}

impl Tree for ClusterTree {
    fn lists_everything(&self) -> bool {
        self.lists_everything
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>, FormatError> {
        let path = join(&self.root, key);
        match self.cluster.open(&path) {
            Ok(opened) => {
                self.states.check(key, opened.info.file.id.clone())?;
                let parts = self.cluster.parts(&opened).map_err(|error| failed(&path, error))?;
                Ok(Some(Arc::new(PartsSource::new(parts))))
            }
            Err(ClientError::Run(error)) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&path, error)),
        }
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>, FormatError> {
        let known = self.states.known_below(folder);
        // Without its file a chunk would count as not stored, and read as the fill value. Other names do not matter.
        match self.cluster.walk(&self.root, folder, 0, &self.states, &is_zarr_name, &|_| true) {
            Ok(mut found) => {
                found.sort_unstable();
                check_listed(&known, found.iter().map(|(key, _)| key.as_str()))?;
                Ok(found)
            }
            Err(ClientError::Run(error)) if error.kind() == ErrorKind::NotFound => {
                check_listed(&known, std::iter::empty())?;
                Ok(Vec::new())
            }
            Err(error) => Err(failed(&join(&self.root, folder), error)),
        }
    }
}

/// Returns all files below a folder of this machine, in the order of their paths. Each has its path and its name
/// relative to the folder.
///
/// # Errors
/// Returns an error if the folder cannot be read, has no files or more than [`MAX_FILES`] files, or if a name is not
/// UTF-8.
pub fn files_below(folder: &Path) -> Result<Vec<(PathBuf, String)>, ClientError> {
    let mut found = Vec::new();
    below(folder, "", 0, &mut found)?;
    if found.is_empty() {
        let text =
            format!("{} has no files; a cluster has directories only where files are", folder.display());
        return Err(ClientError::Usage(text));
    }
    found.sort_unstable();
    Ok(found)
}

fn below(
    folder: &Path,
    directory: &str,
    level: usize,
    found: &mut Vec<(PathBuf, String)>,
) -> Result<(), ClientError> {
    FormatError::limit("levels of folders", level as u64, MAX_LEVELS as u64)?;
    let failed = |source| ClientError::Io { verb: "read", path: folder.to_owned(), source };
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            let text = format!("{} has a name that is not UTF-8; rename it", path.display());
            return Err(ClientError::Usage(text));
        };
        let to = if directory.is_empty() { name.to_owned() } else { join(directory, name) };
        if path.is_dir() {
            below(&path, &to, level + 1, found)?;
        } else {
            FormatError::limit("files", found.len() as u64 + 1, MAX_FILES as u64)?;
            found.push((path, to));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_one_name;

    #[test]
    fn names_that_lead_elsewhere_are_none() {
        for name in ["a", ".zarray", "0.0", "a b", "\u{fc}"] {
            assert!(is_one_name(name), "{name}");
        }
        for name in ["", ".", "..", "/", "/etc", "../a", "a/b", "a/", "./a"] {
            assert!(!is_one_name(name), "{name}");
        }
    }
}
