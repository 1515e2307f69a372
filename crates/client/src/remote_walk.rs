//! All files below a directory of a cluster.

use std::collections::HashSet;
use std::path::{Component, Path};

use gristmill_format::{FormatError, MAX_FILES};
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_wire::action::{Entry, Listing, names};

use crate::file_states::FileStates;
use crate::remote_tree::join;
use crate::{ClientError, Cluster};

/// Most levels of directories.
pub(crate) const MAX_LEVELS: usize = 64;

/// The options of a walk through a directory.
pub(crate) struct Walk<'a> {
    /// The states of the files that it finds are noted here, or compared with those that were.
    pub states: &'a FileStates<String>,
    /// Whether the last part of a name matters. If so, and it is neither a file nor a directory, the walk fails.
    pub matters: &'a dyn Fn(&str) -> bool,
    /// Whether to enter the directory of this path.
    pub enters: &'a dyn Fn(&str) -> bool,
}

/// The files that a walk found.
#[derive(Default)]
pub(crate) struct Walked {
    /// Paths below the directory in ascending order, and lengths.
    pub files: Vec<(String, u64)>,
    /// Whether the lists may have lacked names, as those of web servers do.
    pub lacks_names: bool,
}

impl Cluster {
    /// Returns all files below a directory: their paths below it, in ascending order, and their lengths.
    pub(crate) fn files_in(&self, directory: &str) -> Result<Vec<(String, u64)>, ClientError> {
        self.files_of(directory, &|_| true)
    }

    /// Returns all files below a directory, as [`files_in`](Cluster::files_in) does, but none of attached trees below it.
    pub(crate) fn own_files_in(&self, directory: &str) -> Result<Vec<(String, u64)>, ClientError> {
        let trees: HashSet<String> = self.trees()?.into_iter().map(|tree| tree.path).collect();
        self.files_of(directory, &|folder| !trees.contains(folder))
    }

    fn files_of(
        &self,
        directory: &str,
        enters: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<(String, u64)>, ClientError> {
        let walk = Walk { states: &FileStates::default(), matters: &|_| true, enters };
        Ok(self.walk(directory, "", &walk)?.files)
    }

    /// Returns all files below a folder of a directory, with their paths below the directory.
    pub(crate) fn walk(&self, root: &str, folder: &str, walk: &Walk<'_>) -> Result<Walked, ClientError> {
        let mut walked = Walked::default();
        let mut folders = vec![(folder.to_owned(), 0)];
        while let Some((folder, level)) = folders.pop() {
            FormatError::limit("levels of directories", level, MAX_LEVELS as u64)?;
            let below = if folder.is_empty() { root.to_owned() } else { join(root, &folder) };
            let listed = self.pages(names::LIST_BELOW, &join(&below, ""), &mut |page: Listing| {
                walked.lacks_names |= page.may_lack_names;
                for entry in page.entries {
                    let key = key_of(&folder, &below, &entry)?;
                    if let Some(info) = entry.info {
                        walk.states.check(&key, info.file.id)?;
                        walked.files.push((key, info.file.length));
                    } else if let Some(why) = entry.unreadable {
                        if key.rsplit('/').next().is_some_and(walk.matters) {
                            return Err(RunError::Remote { kind: ErrorKind::Failed, message: why }.into());
                        }
                    } else if (walk.enters)(&join(root, &key)) {
                        folders.push((key, level + 1));
                    }
                }
                let most = walked.files.len().max(folders.len());
                Ok(FormatError::limit("files", most as u64, MAX_FILES as u64)?)
            });
            listed.map_err(|error| match error {
                // It was there when the folder above was listed.
                ClientError::Run(error) if level > 0 && error.kind() == ErrorKind::NotFound => {
                    let message = format!("{below} was removed while it was listed; start over");
                    ClientError::Run(RunError::Remote { kind: ErrorKind::Stale, message })
                }
                error => error,
            })?;
        }
        walked.files.sort_unstable();
        Ok(walked)
    }
}

/// The path of an entry of the list of `folder`.
fn key_of(folder: &str, listed: &str, entry: &Entry) -> Result<String, ClientError> {
    if !entry.name.split('/').all(is_one_name) {
        let message = format!("a node lists {:?} in {listed}, which is not the path of a file", entry.name);
        return Err(RunError::Remote { kind: ErrorKind::Failed, message }.into());
    }
    Ok(if folder.is_empty() { entry.name.clone() } else { format!("{folder}/{}", entry.name) })
}

/// Returns whether a name is that of a single file or directory, and does not lead out of its directory. Nodes send
/// these names, and files of this machine are written under them.
fn is_one_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name)
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
