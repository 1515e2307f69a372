//! Attached trees of a cluster.

use gristmill_wire::action::{Attach, PathRequest, Tree, Trees, names};

use crate::{ClientError, Cluster};

impl Cluster {
    /// Attaches a tree: its files appear under a path of the cluster. Only administrators may do that.
    ///
    /// # Errors
    /// Returns an error if the entry node does not reach the tree, if its URL is malformed, if files or another tree are at
    /// the path, above it or below it, or if the client is no administrator.
    pub fn attach(&self, attach: &Attach) -> Result<Tree, ClientError> {
        self.wait(names::ATTACH, attach)
    }

    /// Detaches the tree at a path. Its files stay where they are. Only administrators may do that.
    ///
    /// # Errors
    /// Returns an error if no tree is attached exactly there, or if the client is no administrator.
    pub fn detach(&self, path: &str) -> Result<(), ClientError> {
        self.wait(names::DETACH, &PathRequest { path: path.to_owned() })
    }

    /// Returns the attached trees that the client may read, in the order of their paths.
    ///
    /// # Errors
    /// It fails if the entry node cannot be reached, does not answer or refuses.
    pub fn trees(&self) -> Result<Vec<Tree>, ClientError> {
        let trees: Trees = self.wait(names::TREES, &())?;
        Ok(trees.trees)
    }
}
