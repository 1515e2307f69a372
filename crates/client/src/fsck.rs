//! Comparison of a cluster's namespace with the objects on its storage nodes.

use std::path::Path;

use gristmill_runtime::{Control, ErrorKind, RunError};
use gristmill_wire::action::Node;
use gristmill_wire::{FIRST_ID, FsckStep, LostObject, UnnamedObject};

use crate::{ClientError, Cluster};

/// The result for one storage node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeCheck {
    /// The node.
    pub node: Node,
    /// Number of objects that were compared.
    pub objects: u64,
    /// Bytes of these objects.
    pub bytes: u64,
    /// Files whose object on this node is missing or wrong.
    pub lost: Vec<LostObject>,
    /// Objects that belong to no file.
    pub unnamed: Vec<UnnamedObject>,
    /// Why the rest of the node was not compared, if it was not.
    pub error: Option<String>,
}

impl NodeCheck {
    /// Whether all was compared and nothing is wrong any more.
    pub fn is_sound(&self) -> bool {
        self.error.is_none() && self.lost.is_empty() && self.unnamed.iter().all(|object| object.removed)
    }
}

/// The result of a check: one entry for each storage node, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FsckReport {
    /// The result for each node.
    pub nodes: Vec<NodeCheck>,
}

impl FsckReport {
    /// Whether all was compared and nothing is wrong any more.
    pub fn is_sound(&self) -> bool {
        self.nodes.iter().all(NodeCheck::is_sound)
    }
}

impl Cluster {
    /// Compares the namespace with the objects of all storage nodes, one after the other. With `remove`, which only
    /// administrators may use, objects that belong to no file are removed. A node that cannot be reached is in the
    /// report.
    ///
    /// # Errors
    /// Returns an error if the entry node cannot be reached or refuses, and if `stop` is stopped.
    pub fn fsck(&self, remove: bool, stop: &Control) -> Result<FsckReport, ClientError> {
        let mut report = FsckReport::default();
        for node in self.nodes()? {
            report.nodes.push(self.fsck_node(node, remove, stop)?);
        }
        Ok(report)
    }

    fn fsck_node(&self, node: Node, remove: bool, stop: &Control) -> Result<NodeCheck, ClientError> {
        let number = node.number;
        let (lost, unnamed) = (Vec::new(), Vec::new());
        let mut check = NodeCheck { node, objects: 0, bytes: 0, lost, unnamed, error: None };
        let mut after = FIRST_ID.to_owned();
        loop {
            if stop.stopped() {
                return Err(crate::copy::stopped(Path::new("fsck")));
            }
            let step = FsckStep { number, after: after.clone(), remove };
            let found = match self.peers.wait(self.peers.fsck(&self.entry, &step)) {
                Ok(found) => found,
                Err(error) if matches!(error.kind(), ErrorKind::Usage | ErrorKind::Denied) => {
                    return Err(error.into());
                }
                Err(error) => {
                    check.error = Some(error.to_string());
                    return Ok(check);
                }
            };
            check.objects = check.objects.saturating_add(found.objects);
            check.bytes = check.bytes.saturating_add(found.bytes);
            check.lost.extend(found.lost);
            check.unnamed.extend(found.unnamed);
            match found.next {
                Some(next) if next > after => after = next,
                Some(next) => {
                    let message = format!(
                        "the entry node compared the objects up to {after} and goes on at {next}; report it"
                    );
                    return Err(RunError::Remote { kind: ErrorKind::Failed, message }.into());
                }
                None => return Ok(check),
            }
        }
    }
}
