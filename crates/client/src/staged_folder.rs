//! Folders of a cluster that appear as a whole.

use std::path::Path;

use crate::remote_tree::{OF_ZARR, join};
use crate::{ClientError, Cluster};

/// Most files of a folder that appears as a whole: the entry node renames no more at once.
pub const MAX_STAGED_FILES: usize = 500_000;

/// The permission bit without which a file cannot be renamed or removed by its owner.
pub(crate) const OWNER_WRITES: u16 = 0o200;

/// A folder of a cluster that is being written. Its files have another path until all of them are written. Until then
/// the folder of its name is unchanged.
#[must_use = "a folder that is not published stays under another name"]
#[derive(Debug)]
pub struct StagedFolder {
    into: String,
    /// Path to which files are written: the folder itself, if it has other files that stay.
    at: String,
    /// Whether the new folder replaces an existing one.
    replaces: bool,
}

impl Cluster {
    /// Prepares a folder for files of these names, relative to it. A new folder appears as a whole, and so does a Zarr
    /// folder that replaces another one. In any other existing folder the files appear one by one among the old files.
    /// The same holds for a new folder if `mode`, the permission bits, keep the owner from renaming its files.
    ///
    /// # Errors
    /// Returns [`ClientError::Usage`] if chunks of an old array could be mistaken for those of a new one: if a Zarr
    /// folder would go into an ordinary existing folder, or would replace a Zarr folder with files that cannot be
    /// renamed. Returns another error if the cluster cannot be reached.
    pub fn stage_folder<'a>(
        &self,
        into: &str,
        names: impl Iterator<Item = &'a str>,
        mode: Option<u16>,
    ) -> Result<StagedFolder, ClientError> {
        let (mut count, mut zarr, mut inner_zarr) = (0, false, false);
        for name in names {
            count += 1;
            zarr |= OF_ZARR.contains(&name);
            inner_zarr |= name.rsplit_once('/').is_some_and(|(_, last)| OF_ZARR.contains(&last));
        }
        let into = if into == "/" { into } else { into.trim_end_matches('/') }.to_owned();
        let exists = self.is_directory(&into)?;
        if exists && !zarr && inner_zarr {
            let text = format!(
                "{into} is there already, and chunks of arrays in it would be taken for new ones; remove it first, or give \
                 another name"
            );
            return Err(ClientError::Usage(text));
        }
        if exists && zarr && !self.is_zarr(&into) {
            let text =
                format!("{into} exists and is not a Zarr folder; remove it first, or give another name");
            return Err(ClientError::Usage(text));
        }
        let together = count <= MAX_STAGED_FILES && mode.is_none_or(|mode| mode & OWNER_WRITES != 0);
        if exists && zarr && !together {
            let text =
                format!("{into} is there already and cannot be replaced by these files; remove it first");
            return Err(ClientError::Usage(text));
        }
        let at = match (!exists || zarr) && together && !self.is_file(&into)? {
            true => hidden_sibling(&into, "partial"),
            false => into.clone(),
        };
        Ok(StagedFolder { into, at, replaces: exists && zarr })
    }
}

impl StagedFolder {
    /// The directory to which files are written.
    pub fn path(&self) -> &str {
        &self.at
    }

    /// The directory in which the files will be.
    pub fn destination(&self) -> &str {
        &self.into
    }

    /// Whether the folder is invisible until it is published.
    pub fn is_apart(&self) -> bool {
        self.at != self.into
    }

    /// Gives the folder its name. It replaces the old folder, if there is one.
    ///
    /// # Errors
    /// Returns an error if the client may not remove the old folder or make the new one, or if another client made a
    /// folder of this name meanwhile. Nothing of the new folder is left then, and the old one is unchanged.
    pub fn publish(self, cluster: &Cluster) -> Result<(), ClientError> {
        if !self.is_apart() {
            return Ok(());
        }
        let published = self.rename(cluster);
        if published.is_err() {
            self.discard(cluster);
        }
        published
    }

    /// Moves the old folder aside, and moves it back if the new one cannot take its place.
    fn rename(&self, cluster: &Cluster) -> Result<(), ClientError> {
        let old = self.replaces.then(|| hidden_sibling(&self.into, "replaced"));
        if let Some(old) = &old {
            cluster.rename(&self.into, old)?;
        }
        let now = match cluster.rename(&self.at, &self.into) {
            Ok(renamed) => renamed.path,
            Err(error) => {
                if let Some(old) = &old {
                    cluster.rename(old, &self.into)?;
                }
                return Err(error);
            }
        };
        if let Some(old) = &old {
            cluster.remove_all(old)?;
        }
        if now == self.into {
            return Ok(());
        }
        // The folder went into another folder that appeared meanwhile.
        cluster.remove_all(&now)?;
        Err(ClientError::Usage(format!(
            "{} was made by somebody else meanwhile; repeat the command, or give another name",
            self.into
        )))
    }

    /// Returns the error of a copy to this folder that was stopped.
    pub fn stopped(&self) -> ClientError {
        match self.is_apart() {
            true => crate::copy::stopped(Path::new(&self.into)),
            false => ClientError::StoppedAmong { path: self.into.clone() },
        }
    }

    /// Removes the written files, unless they are among other files. Files that cannot be removed stay under a path
    /// that tells what they are.
    pub fn discard(&self, cluster: &Cluster) {
        if self.is_apart() {
            let _ = cluster.remove_all(&self.at);
        }
    }
}

/// Returns a hidden name in the same directory that tells the name of the folder and the purpose.
fn hidden_sibling(into: &str, why: &str) -> String {
    let (directory, name) = into.rsplit_once('/').unwrap_or(("", into));
    join(directory, &format!(".{name}.{:016x}.{why}", fastrand::u64(..)))
}
