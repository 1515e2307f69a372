//! Attached trees: paths of the namespace whose files lie in storage outside the cluster. The namespace keeps their paths,
//! owners and modes, and a text that says where they lie. It does not read this text.

use std::time::SystemTime;

use crate::{FilePath, Mode, Principal};

/// An attached tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedTree {
    /// The path under which its files appear.
    pub path: FilePath,
    /// Where it lies: a text of the caller.
    pub source: String,
    /// The user who attached it.
    pub owner: Principal,
    /// Permission bits of all its files. Only the bits for reading count.
    pub mode: Mode,
    /// Time when it was attached.
    pub attached: SystemTime,
}

impl AttachedTree {
    /// The path of a file or directory below the tree, without the path of the tree; empty for the tree itself. `None` for a
    /// path that is not in the tree.
    #[must_use]
    pub fn key_of<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(self.path.as_str())?;
        if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
    }
}
