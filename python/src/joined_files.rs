//! Several opened files whose variables continue one another.

use std::sync::Arc;

use gristmill_client::Cluster;
use gristmill_runtime::FileParts;
use gristmill_wire::action::Opened;

use crate::dataset::{Found, Where};
use crate::errors::Failure;

/// The files of a joined dataset, in the order of their numbers.
pub enum JoinedFiles {
    Here(Vec<FileParts>),
    Cluster { cluster: Arc<Cluster>, opened: Vec<Opened> },
}

impl JoinedFiles {
    /// Joins opened files along a dimension. All of them are on this machine, or in one cluster.
    pub fn open(parts: &[Arc<Found>], dimension: &str) -> Result<Found, Failure> {
        let here = parts.iter().map(|part| match &part.place {
            Where::File(file) => Some(file.clone()),
            _ => None,
        });
        let place = match here.collect::<Option<Vec<FileParts>>>() {
            Some(files) => JoinedFiles::Here(files),
            None => JoinedFiles::of_cluster(parts).ok_or_else(|| {
                Failure::usage(
                    "only files of this machine, or files of one cluster, are read as one file".to_owned(),
                )
            })?,
        };
        let each = parts.iter().map(|part| part.parsed.clone()).collect();
        let parsed = gristmill_format::join(each, dimension).map_err(gristmill_client::ClientError::from)?;
        Ok(Found { parsed: Arc::new(parsed), place: Where::Joined(place) })
    }

    /// `None` if the parts are not single files of one cluster.
    fn of_cluster(parts: &[Arc<Found>]) -> Option<JoinedFiles> {
        let (mut opened, mut of) = (Vec::new(), None);
        for part in parts {
            let Where::Cluster { cluster, remote, .. } = &part.place else { return None };
            if !Arc::ptr_eq(of.get_or_insert_with(|| cluster.clone()), cluster) {
                return None;
            }
            opened.push(remote.opened.clone()?);
        }
        Some(JoinedFiles::Cluster { cluster: of?, opened })
    }

    /// The states of all files together; `None` on this machine.
    pub fn id(&self) -> Option<String> {
        match self {
            JoinedFiles::Here(_) => None,
            JoinedFiles::Cluster { opened, .. } => {
                let ids: Vec<&str> = opened.iter().map(|one| one.info.file.id.as_str()).collect();
                Some(ids.join("+"))
            }
        }
    }
}
