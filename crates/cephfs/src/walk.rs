//! From a key to a file or folder.
//!
//! Links are followed here and not by the servers, so that none leads out of the tree. Each folder on the way is looked up with the rights
//! of the reader.

use std::collections::VecDeque;
use std::sync::Arc;

use gristmill_backend::{BackendError, Key, Result};
use rustix::io::Errno;

use crate::client::{Attributes, Inode};
use crate::error::explain;
use crate::reader::ReadingUser;
use crate::state::{Thing, thing};

/// Most symbolic links on the way to a file, as for Linux.
pub const MAX_LINKS: usize = 40;

/// Why a name leads nowhere.
#[derive(Debug)]
pub(crate) enum Lost {
    /// The servers refuse it.
    Errno(Errno),
    /// A link leads out of the tree, or links lead in a circle.
    Link,
    /// Not everybody may look it up.
    NotForEverybody,
}

impl From<Errno> for Lost {
    fn from(errno: Errno) -> Lost {
        Lost::Errno(errno)
    }
}

impl Lost {
    /// The error for a file or folder of this name.
    pub fn explain(self, verb: &'static str, name: String) -> BackendError {
        match self {
            Lost::Errno(errno) => explain(verb, name, errno),
            Lost::Link => {
                let why = "a symbolic link on the way leads out of the tree or in a circle; put the file itself there";
                BackendError::Denied { name, why: why.to_owned() }
            }
            Lost::NotForEverybody => not_for_everybody(name),
        }
    }
}

/// The error of a file or folder that not everybody may read.
pub(crate) fn not_for_everybody(name: String) -> BackendError {
    let why = "not every user may read it, and its node does not know which user of the system you are (--mount-users); its owner can \
               let all read it (chmod go+r, and go+x for the folders above it)";
    BackendError::Denied { name, why: why.to_owned() }
}

/// A folder, with those above it up to the root of the tree.
#[derive(Clone)]
pub(crate) struct Place {
    folders: Vec<(Arc<Inode>, Attributes)>,
}

impl Place {
    /// The root of the tree.
    pub fn root(root: Inode, reader: &ReadingUser) -> std::result::Result<Place, Errno> {
        let attributes = root.attributes(&reader.user)?;
        Ok(Place { folders: vec![(Arc::new(root), attributes)] })
    }

    /// The file or folder of a key, seen from this folder, with its attributes. The place is the folder itself afterwards, or the one
    /// in which the file lies.
    pub fn enter(
        &mut self,
        key: &Key,
        reader: &ReadingUser,
    ) -> std::result::Result<(Arc<Inode>, Attributes), Lost> {
        let (mut names, mut links) = (VecDeque::new(), 0);
        push(&mut names, key.as_str());
        while let Some(name) = names.pop_front() {
            if name == ".." {
                if self.folders.len() < 2 {
                    return Err(Lost::Link);
                }
                self.folders.pop();
                continue;
            }
            let Some((folder, attributes)) = self.folders.last() else { return Err(Lost::Link) };
            if reader.may_not_search(attributes) {
                return Err(Lost::NotForEverybody);
            }
            let (inode, found) = folder.look_up(&name, &reader.user)?;
            match thing(&found) {
                Thing::Folder => self.folders.push((Arc::new(inode), found)),
                Thing::Link => {
                    links += 1;
                    // Its target is no path of ours.
                    let odd = |errno| matches!(errno, Errno::ILSEQ | Errno::NAMETOOLONG);
                    let target = inode.target(&reader.user);
                    let target =
                        target.map_err(|errno| if odd(errno) { Lost::Link } else { Lost::Errno(errno) })?;
                    if links > MAX_LINKS || target.starts_with('/') || target.is_empty() {
                        return Err(Lost::Link);
                    }
                    push(&mut names, &target);
                }
                Thing::Other(_) if names.is_empty() => return Ok((Arc::new(inode), found)),
                Thing::Other(_) => return Err(Lost::Errno(Errno::NOTDIR)),
            }
        }
        self.folders.last().cloned().ok_or(Lost::Link)
    }

    /// This folder as the root of a tree: links do not lead out of it.
    pub fn into_root(mut self) -> Place {
        self.folders.drain(..self.folders.len().saturating_sub(1));
        self
    }

    /// Whether this folder has a name, whatever it leads to.
    pub fn has(&self, name: &str, reader: &ReadingUser) -> bool {
        self.folders.last().is_some_and(|(folder, _)| folder.look_up(name, &reader.user).is_ok())
    }
}

/// Puts the names of a path before others.
fn push(names: &mut VecDeque<String>, path: &str) {
    let parts = path.split('/').rev().filter(|part| !matches!(*part, "" | "."));
    parts.for_each(|part| names.push_front(part.to_owned()));
}

/// A result of the crate, for a file or folder of this name.
pub(crate) fn named<T>(
    result: std::result::Result<T, Lost>,
    verb: &'static str,
    name: impl FnOnce() -> String,
) -> Result<T> {
    result.map_err(|lost| lost.explain(verb, name()))
}
