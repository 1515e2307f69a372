//! Files below a directory of a cluster: as a tree that a format is read from, opened together, and put from a folder.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use gristmill_format::{ChunkTable, Dataset, FileRef, FormatError, MAX_FILES, Source, Tree, open_tree};
use gristmill_peers::Files;
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_wire::TargetPlace;
use gristmill_wire::action::{MAX_MANY, Opened, PathOf, names};

use crate::array::{ArrayPlan, ArrayQuestion, PartsSource, Share, plan_dataset, read_dataset, shares};
use crate::seen::Seen;
use crate::staged_folder::OF_ZARR;
use crate::{ClientError, Cluster};

/// Messages that open files under way at once.
const OPENING: usize = 4;

/// Most levels of directories that are looked into.
const MAX_LEVELS: usize = 64;

/// A file or a directory of a cluster with variables in it.
pub struct RemoteDataset {
    /// What is in it.
    pub dataset: Arc<Dataset>,
    cluster: Cluster,
    path: String,
    /// Ids of files, which are others for each put.
    seen: Seen<String>,
    /// The file, where it is one.
    pub opened: Option<Opened>,
}

impl RemoteDataset {
    /// Works out what is asked of one of its variables.
    ///
    /// # Errors
    /// As [`plan_dataset`].
    pub fn plan(&self, question: &ArrayQuestion) -> Result<ArrayPlan, ClientError> {
        plan_dataset(self.dataset.clone(), question)
    }

    /// The files that chunks lie in, opened: by their names below the directory. Of a format that has one file that file,
    /// whatever it is called. `None` where no chunk is stored anywhere.
    ///
    /// # Errors
    /// Files that are not there any more, and more than a request takes.
    pub fn files(&self, names: &[FileRef]) -> Result<Option<Files>, ClientError> {
        match &self.opened {
            Some(opened) => Ok(Some(Files::from(opened))),
            None if names.is_empty() => Ok(None),
            None => {
                let paths: Vec<String> = names.iter().map(|file| join(&self.path, &file.name)).collect();
                let files = self.cluster.open_many(paths)?;
                // A shard's index was read, and lengths were listed, before.
                for (file, (map, _)) in names.iter().zip(files.each()) {
                    self.seen.note(&file.name, map.id.clone())?;
                }
                Ok(Some(files))
            }
        }
    }

    /// What each target holds of a variable. `None` where that would take more than one
    /// message to find out, and for too many chunks.
    ///
    /// # Errors
    /// Files that are not there any more.
    pub fn shares(&self, table: &ChunkTable) -> Result<Option<Vec<(TargetPlace, Share)>>, ClientError> {
        if self.opened.is_none() && table.files.len() > MAX_MANY {
            return Ok(None);
        }
        let Some(files) = self.files(&table.files)? else { return Ok(None) };
        let layout = files.layout(&self.cluster.peers)?;
        let mut begins = Vec::new();
        let mut end = 0u64;
        for (map, _) in files.each() {
            begins.push(end);
            end = end.saturating_add(map.length);
        }
        let targets = files.map().targets.iter().cloned();
        Ok(shares(table, &layout, &begins).map(|shares| targets.zip(shares).collect()))
    }
}

pub(crate) fn join(directory: &str, name: &str) -> String {
    format!("{}/{name}", directory.trim_end_matches('/'))
}

impl Cluster {
    /// Opens a file of a scientific format, or a directory with Zarr, and reads what it says about itself.
    ///
    /// # Errors
    /// A path that is neither, and what the format's parser refuses.
    pub fn dataset(&self, path: &str) -> Result<RemoteDataset, ClientError> {
        let (cluster, path) = (self.clone(), path.to_owned());
        match self.open(&path) {
            Ok(opened) => {
                let dataset = Arc::new(read_dataset(&self.parts(&opened)?, &opened.info.file.path)?);
                Ok(RemoteDataset { dataset, cluster, path, seen: Seen::default(), opened: Some(opened) })
            }
            Err(ClientError::Run(error)) if error.kind() == ErrorKind::NotFound && self.is_zarr(&path) => {
                let seen = Seen::default();
                let tree = ClusterTree { cluster: self.clone(), root: path.clone(), seen: seen.clone() };
                let dataset = Arc::new(open_tree(Arc::new(tree))?);
                Ok(RemoteDataset { dataset, cluster, path, seen, opened: None })
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn is_zarr(&self, path: &str) -> bool {
        OF_ZARR.iter().any(|name| self.stat(&join(path, name)).is_ok())
    }

    /// Opens many files at once.
    ///
    /// # Errors
    /// The first that cannot be opened, and more than a request takes.
    pub fn open_many(&self, paths: Vec<String>) -> Result<Files, ClientError> {
        let paths: Vec<PathOf> = paths.into_iter().map(|path| PathOf { path }).collect();
        let opened = self.peers.wait(async {
            let asked = paths.chunks(MAX_MANY).map(|some| self.each_of(names::OPEN_MANY, some.to_vec()));
            let answers: Vec<Vec<Result<Opened, RunError>>> =
                stream::iter(asked).buffered(OPENING).collect().await;
            answers.into_iter().flatten().collect::<Result<Vec<Opened>, RunError>>()
        })?;
        let each = opened.into_iter().map(|one| (one.info.file, one.grant.as_str().into()));
        Ok(Files::several(each.collect())?)
    }

    /// All files below a directory, with their paths below it and their lengths, in ascending order of the paths.
    pub(crate) fn files_in(&self, directory: &str) -> Result<Vec<(String, u64)>, ClientError> {
        let mut found = self.walk(directory, "", 0, &Seen::default())?;
        found.sort_unstable();
        Ok(found)
    }

    /// All files below a directory, with their paths below it.
    fn walk(
        &self,
        root: &str,
        folder: &str,
        level: usize,
        seen: &Seen<String>,
    ) -> Result<Vec<(String, u64)>, ClientError> {
        FormatError::limit("levels of directories", level as u64, MAX_LEVELS as u64)?;
        let mut found = Vec::new();
        let below = if folder.is_empty() { root.to_owned() } else { join(root, folder) };
        for entry in self.list(&join(&below, ""))? {
            if !is_one_name(&entry.name) {
                let message = format!("a node lists {:?} in {below}, which is no name of a file", entry.name);
                return Err(RunError::Remote { kind: ErrorKind::Failed, message }.into());
            }
            let key = if folder.is_empty() { entry.name } else { format!("{folder}/{}", entry.name) };
            match entry.info {
                Some(info) => {
                    seen.note(&key, info.file.id)?;
                    found.push((key, info.file.length));
                }
                None => found.extend(self.walk(root, &key, level + 1, seen)?),
            }
            FormatError::limit("files", found.len() as u64, MAX_FILES as u64)?;
        }
        Ok(found)
    }
}

/// Whether it names one file or directory, and does not lead out of the one that it is joined to. Nodes give names, and files of
/// this machine are written under them.
fn is_one_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name)
}

/// The files below a directory of a cluster.
struct ClusterTree {
    cluster: Cluster,
    root: String,
    seen: Seen<String>,
}

fn failed(what: &str, error: impl std::error::Error + Send + Sync + 'static) -> FormatError {
    FormatError::Io { what: what.to_owned(), source: std::io::Error::other(error) }
}

impl Tree for ClusterTree {
    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>, FormatError> {
        let path = join(&self.root, key);
        match self.cluster.open(&path) {
            Ok(opened) => {
                self.seen.note(key, opened.info.file.id.clone())?;
                let parts = self.cluster.parts(&opened).map_err(|error| failed(&path, error))?;
                Ok(Some(Arc::new(PartsSource::new(parts))))
            }
            Err(ClientError::Run(error)) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&path, error)),
        }
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>, FormatError> {
        match self.cluster.walk(&self.root, folder, 0, &self.seen) {
            Ok(mut found) => {
                found.sort_unstable();
                Ok(found)
            }
            Err(ClientError::Run(error)) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(failed(&join(&self.root, folder), error)),
        }
    }
}

/// All files below a folder of this machine, each with its name relative to the folder, in the order of their paths.
///
/// # Errors
/// A folder that cannot be read or has no files, names that are no text, and more than [`MAX_FILES`] files.
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
            let text = format!("{} has a name that is no text; rename it", path.display());
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
