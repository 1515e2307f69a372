//! Folders of a cluster that appear as wholes.

use std::path::Path;

use crate::remote_tree::join;
use crate::{ClientError, Cluster};

/// Names that make a folder one of Zarr.
pub(crate) const OF_ZARR: [&str; 3] = ["zarr.json", ".zarray", ".zgroup"];

/// The most files that appear as a whole: the entry node renames no more at once.
pub const MAX_STAGED_FILES: usize = 500_000;

/// The permission bit without which a file cannot be renamed or removed by its owner.
pub(crate) const OWNER_WRITES: u16 = 0o200;

/// A folder of a cluster that is being written. Its files lie under another name until all of them are there: what
/// happens before leaves the folder of that name as it was.
#[must_use = "a folder that is not published stays under another name"]
#[derive(Debug)]
pub struct StagedFolder {
    into: String,
    /// Where files are written: the folder itself, if they go among others.
    at: String,
    /// The new folder takes the place of one that is there.
    replaces: bool,
}

impl Cluster {
    /// Prepares a folder for files of these names, relative to it. A new folder, and one of Zarr that takes the
    /// place of another, appear as wholes. Files for another folder that is there go among those that it has, one by one.
    /// So do files of a new folder whose permission bits, `mode`, keep their owner from renaming them.
    ///
    /// # Errors
    /// [`ClientError::Usage`] where chunks of an old array would be taken for those of a new one: a Zarr folder cannot go
    /// into an ordinary folder that is there, nor replace a Zarr folder with files that cannot be renamed. The cluster cannot
    /// be asked.
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
                format!("{into} is there and is no Zarr folder; remove it first, or give another name");
            return Err(ClientError::Usage(text));
        }
        let together = count <= MAX_STAGED_FILES && mode.is_none_or(|mode| mode & OWNER_WRITES != 0);
        if exists && zarr && !together {
            let text =
                format!("{into} is there already and cannot be replaced by these files; remove it first");
            return Err(ClientError::Usage(text));
        }
        let at = match (!exists || zarr) && together && !self.is_file(&into)? {
            true => beside(&into, "partial"),
            false => into.clone(),
        };
        Ok(StagedFolder { into, at, replaces: exists && zarr })
    }
}

impl StagedFolder {
    /// The directory to write the files to.
    pub fn path(&self) -> &str {
        &self.at
    }

    /// The directory where they will be.
    pub fn destination(&self) -> &str {
        &self.into
    }

    /// Whether nothing is seen of it before it is published.
    pub fn is_apart(&self) -> bool {
        self.at != self.into
    }

    /// Gives the folder its name, in the place of what was there.
    ///
    /// # Errors
    /// The old folder may not be removed, the new one may not be made, or somebody else made a folder of this name meanwhile.
    /// Nothing of the new folder is left then, and the old one is where it was.
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
        let old = self.replaces.then(|| beside(&self.into, "replaced"));
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
        // It went into a folder that appeared meanwhile.
        cluster.remove_all(&now)?;
        Err(ClientError::Usage(format!(
            "{} was made by somebody else meanwhile; repeat the command, or give another name",
            self.into
        )))
    }

    /// The error of a copy to this folder that was told to stop.
    pub fn stopped(&self) -> ClientError {
        match self.is_apart() {
            true => crate::copy::stopped(Path::new(&self.into)),
            false => ClientError::StoppedAmong { path: self.into.clone() },
        }
    }

    /// Removes what was written, unless it went among other files. What cannot be removed stays under a name that says
    /// what it is.
    pub fn discard(&self, cluster: &Cluster) {
        if self.is_apart() {
            let _ = cluster.remove_all(&self.at);
        }
    }
}

/// A hidden name in the same directory that says what it is of and why it is there.
fn beside(into: &str, why: &str) -> String {
    let (directory, name) = into.rsplit_once('/').unwrap_or(("", into));
    join(directory, &format!(".{name}.{:016x}.{why}", fastrand::u64(..)))
}
