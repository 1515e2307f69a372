//! The location of variables, for descriptions of arrays.

use gristmill_client::{Share, joined_files, shares};
use gristmill_layout::Layout;
use gristmill_wire::TargetPlace;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::dataset::{Found, Where};
use crate::errors::Failure;
use crate::joined_files::JoinedFiles;

/// The files and targets that store a variable.
pub struct VariableLocation {
    stored_chunks: u64,
    stored_bytes: u64,
    /// Bytes of a stripe, if the file is striped.
    unit: Option<u64>,
    /// Number of files that store the variable.
    files: usize,
    /// Number in the cluster, node or directory, and share of each target. `None` if that is unknown.
    targets: Option<Vec<(Option<u32>, String, Share)>>,
}

impl VariableLocation {
    /// Sends at most one request to the entry node, and reads no element.
    pub fn find(found: &Found, variable: &str) -> Result<VariableLocation, Failure> {
        let table = found.parsed.table(variable).map_err(gristmill_client::ClientError::from)?;
        let whole = Share {
            chunks: table.stored_chunks(),
            whole: table.stored_chunks(),
            bytes: table.stored_bytes(),
        };
        let (unit, targets) = match &found.place {
            Where::Folder(_) | Where::Joined(JoinedFiles::Here(_)) => {
                (None, Some(vec![(None, "this machine".to_owned(), whole)]))
            }
            Where::Joined(JoinedFiles::Cluster { cluster, opened }) => {
                let files = joined_files(opened, &table.files)?;
                let held = files.map(|files| cluster.shares_of(&files, &table)).transpose()?.flatten();
                (None, held.map(by_node))
            }
            Where::File(file) => {
                let unit = match &file.layout {
                    Layout::Striped(striped) if file.parts.len() > 1 => Some(striped.unit()),
                    _ => None,
                };
                let names = file.parts.iter().map(|part| part.describe());
                let targets = match unit {
                    None => Some(vec![(None, "this machine".to_owned(), whole)]),
                    Some(_) => shares(&table, &file.layout, &[0])
                        .map(|shares| names.zip(shares).map(|(name, share)| (None, name, share)).collect()),
                };
                (unit, targets)
            }
            Where::Cluster { remote, .. } => {
                let unit = remote.opened.as_ref().map(|opened| &opened.info.file);
                let unit = unit.filter(|file| !file.segments).map(|file| file.unit);
                (unit, remote.shares(&table)?.map(by_node))
            }
        };
        Ok(VariableLocation {
            stored_chunks: whole.chunks,
            stored_bytes: whole.bytes,
            unit,
            files: table.files.len(),
            targets,
        })
    }

    pub fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("stored_chunks", self.stored_chunks)?;
        dict.set_item("stored_bytes", self.stored_bytes)?;
        dict.set_item("stripe_unit", self.unit)?;
        dict.set_item("files", self.files)?;
        let list = self.targets.map(|targets| {
            let each = targets
                .into_iter()
                .map(|(number, node, share)| (number, node, share.chunks, share.whole, share.bytes));
            PyList::new(py, each.collect::<Vec<_>>())
        });
        dict.set_item("targets", list.transpose()?)?;
        Ok(dict)
    }
}

/// Shares with the numbers and addresses of their nodes.
fn by_node(shares: Vec<(TargetPlace, Share)>) -> Vec<(Option<u32>, String, Share)> {
    shares.into_iter().map(|(place, share)| (Some(place.number), place.address, share)).collect()
}
