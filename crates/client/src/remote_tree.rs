//! Files below a directory of a cluster: as a tree for the reader of a format, opened together, and copied from a
//! folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
use crate::remote_walk::{MAX_LEVELS, Walk};
use crate::{ClientError, Cluster};

/// Names of the files that make a folder a Zarr folder.
pub(crate) const OF_ZARR: [&str; 3] = ["zarr.json", ".zarray", ".zgroup"];

/// Messages that open files, at once.
const OPENING: usize = 4;

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
                let tree = ClusterTree {
                    cluster: self.clone(),
                    root: path.clone(),
                    states: states.clone(),
                    lacks_names: AtomicBool::new(false),
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
}

/// The files below a directory of a cluster.
struct ClusterTree {
    cluster: Cluster,
    root: String,
    states: FileStates<String>,
    /// Whether a list may have lacked names.
    lacks_names: AtomicBool,
}

fn failed(what: &str, error: impl std::error::Error + Send + Sync + 'static) -> FormatError {
    FormatError::Io { what: what.to_owned(), source: std::io::Error::other(error) }
}

impl Tree for ClusterTree {
    fn lists_everything(&self) -> bool {
        !self.lacks_names.load(Ordering::Relaxed)
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
        let walk = Walk { states: &self.states, matters: &is_zarr_name, enters: &|_| true };
        match self.cluster.walk(&self.root, folder, &walk) {
            Ok(walked) => {
                self.lacks_names.fetch_or(walked.lacks_names, Ordering::Relaxed);
                check_listed(&known, walked.files.iter().map(|(key, _)| key.as_str()))?;
                Ok(walked.files)
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
