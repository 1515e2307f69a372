//! A tree as the entry node shows it to one user: its keys, its files with their stripes, and its size.

use std::collections::HashMap;
use std::sync::Arc;

use gristmill_backend::{
    Backend, BackendError, Content, Found, HostStripes, Key, Kind, MAX_DEPTH, MAX_LIST_PAGE,
};
use gristmill_namespace::AttachedTree;
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_wire::action::{Amount, FileInfo};
use gristmill_wire::{AttachedFile, Component, FileMap, FileReader, TreeSource};
use ring::digest::{SHA256, digest};

use super::near::{NodeStripes, TreeNode, near};
use crate::entry::{Places, Search, place};
use crate::error::{Answer, Refusal};
use crate::limits::{MAX_COUNTED, MAX_NEAR_STRIPES, MAX_TREE_STRIPES, MIN_TREE_STRIPE};

/// A tree as a user reads it.
pub(super) struct OpenTree {
    pub record: AttachedTree,
    pub source: TreeSource,
    pub backend: Arc<dyn Backend>,
    /// The user whose rights count, if the tree is a mount.
    pub reader: FileReader,
    /// The targets whose nodes reach the tree.
    pub numbers: Vec<u32>,
}

impl OpenTree {
    /// Number and size of all files below a folder.
    pub fn count(&self, folder: Key, path: &str) -> Result<Amount, BackendError> {
        let mut all = Amount { files: 0, bytes: 0, changed: 0, directory: true, unread: 0 };
        let count = |all: &mut Amount, content: &Content| match content {
            Content::File(found) => {
                all.files += 1;
                all.bytes = all.bytes.saturating_add(found.length);
            }
            Content::Folder => {}
            Content::Unreadable { .. } => all.unread += 1,
        };
        let (mut folders, mut counted) = (vec![(folder, 0)], 0u64);
        while let Some((folder, depth)) = folders.pop() {
            if depth > MAX_DEPTH {
                return Err(BackendError::TooDeep { name: path.to_owned() });
            }
            counted = counted.saturating_add(1);
            let mut from: Option<String> = None;
            loop {
                let page = match self.backend.list_below(&folder, from.as_deref(), MAX_LIST_PAGE) {
                    Err(BackendError::Denied { .. }) if depth > 0 => {
                        all.unread += 1;
                        break;
                    }
                    // It was removed meanwhile.
                    Err(BackendError::NotFound { .. }) if depth > 0 => break,
                    page => page?,
                };
                counted = counted.saturating_add(page.entries.len() as u64);
                if counted > MAX_COUNTED {
                    return Err(BackendError::TooMany { name: path.to_owned(), most: MAX_COUNTED as usize });
                }
                for entry in page.entries {
                    match &entry.content {
                        Content::Folder => folders.push((folder.join(&entry.name)?, depth + 1)),
                        content => count(&mut all, content),
                    }
                }
                from = page.next;
                if from.is_none() {
                    break;
                }
            }
        }
        Ok(all)
    }

    /// The key of a path in the tree.
    pub fn key(&self, path: &str) -> Answer<Key> {
        let path = path.strip_suffix('/').unwrap_or(path);
        Key::new(self.record.key_of(path).unwrap_or_default()).map_err(|error| self.refusal(error))
    }

    /// The meaning of an error for a client. A path that is no file counts as one that does not exist.
    pub fn refusal(&self, error: BackendError) -> Refusal {
        match error {
            BackendError::WrongKind { kind: Kind::Folder | Kind::BelowFile | Kind::File, .. } => {
                Refusal::new(ErrorKind::NotFound, format!("{}: {error}", self.record.path))
            }
            error => RunError::from(error).into(),
        }
    }

    /// A file in a state, which may be settled: its records are dealt to the nodes that reach the tree.
    pub fn info(
        &self,
        key: &Key,
        found: &Found,
        settled: bool,
        addresses: &HashMap<u32, String>,
    ) -> FileInfo {
        let id = id(&self.source, key, found);
        let version = found.stamp.number().max(1);
        let turn = turn(&id);
        let count = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX).max(1);
        let map = FileMap {
            id,
            path: format!("{}/{key}", self.record.path),
            length: found.length,
            unit: stripe_unit(found.length),
            first: turn % count,
            record: None,
            segments: false,
            attached: Some(Box::new(AttachedFile {
                tree: self.source.clone(),
                key: key.to_string(),
                stamp: found.stamp.to_string(),
                reader: self.reader.clone(),
                settled,
                growing: false,
                components: Vec::new(),
                access: None,
            })),
            targets: self.numbers.iter().map(|number| place(*number, addresses, version)).collect(),
        };
        let (owner, mode) = (self.record.owner.to_string(), self.record.mode.bits());
        // A page of a list has a thousand files. Most are small, and on a cluster of many nodes.
        FileInfo { file: map.without_empty_targets(), owner, mode, created: 0 }
    }

    /// Deals the stripes of a file to the nodes near them, if there are any.
    pub fn deal_to_near_nodes(&self, file: &mut FileMap, located: &[HostStripes], search: &Search) {
        let addresses = &search.addresses;
        // The tables of several files are joined.
        let most = match search.places {
            Places::OfSeveral => file.length.div_ceil(stripe_unit(file.length)).max(MAX_NEAR_STRIPES),
            Places::OfOne | Places::Unwanted => u64::MAX,
        };
        let node = |number: &u32| Some(TreeNode { number: *number, address: addresses.get(number)? });
        let nodes: Vec<_> = self.numbers.iter().filter_map(node).collect();
        let Some(stripes) = near(located, &nodes, file.length, turn(&file.id) as usize, most) else { return };
        let version = file.targets.first().map_or(0, |place| place.version);
        let mut numbers: Vec<u32> = Vec::new();
        let mut index = |number: &u32| {
            let at = numbers.iter().position(|known| known == number).unwrap_or(numbers.len());
            if at == numbers.len() {
                numbers.push(*number);
            }
            u32::try_from(at).unwrap_or(u32::MAX)
        };
        let component = |one: &NodeStripes| {
            let cycle = one.cycle.iter().map(&mut index).collect();
            Component { end: one.end, unit: one.unit, cycle }
        };
        let components: Vec<_> = stripes.iter().map(component).collect();
        let mut dealt = file.clone();
        dealt.targets = numbers.iter().map(|number| place(*number, addresses, version)).collect();
        (dealt.first, dealt.unit) = (0, stripes.first().map_or(dealt.unit, |one| one.unit));
        // The arithmetic of stripes that are dealt in turn needs no table.
        let in_turn = matches!(&*stripes, [one] if one.deals_in_turn());
        if let Some(attached) = dealt.attached.as_mut().filter(|_| !in_turn) {
            attached.components = components;
        }
        let dealt = dealt.without_empty_targets();
        // An answer that makes no layout is only a loss of time.
        if dealt.check().is_ok() {
            *file = dealt;
        }
    }
}

/// The number of a file among others, from its id. Files of few stripes begin on different nodes.
fn turn(id: &str) -> u32 {
    u32::from_str_radix(id.get(..8).unwrap_or_default(), 16).unwrap_or(0)
}

/// The stripe unit of a file: a few large requests for each stripe, and not too many stripes.
fn stripe_unit(length: u64) -> u64 {
    length.div_ceil(MAX_TREE_STRIPES).max(1).next_multiple_of(MIN_TREE_STRIPE)
}

/// The id of a file in a state: 32 hexadecimal digits of a hash of where it lies and of its version.
fn id(source: &TreeSource, key: &Key, found: &Found) -> String {
    let texts = [
        source.url.as_str(),
        source.endpoint.as_deref().unwrap_or_default(),
        key.as_str(),
        found.stamp.as_str(),
    ];
    let mut bytes = found.length.to_le_bytes().to_vec();
    for text in texts {
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.as_bytes());
    }
    digest(&SHA256, &bytes).as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use gristmill_backend::Stamp;

    use super::*;

    #[test]
    fn a_file_has_at_most_some_thousand_stripes() {
        assert_eq!((stripe_unit(0), stripe_unit(1), stripe_unit(1 << 30)), (8 << 20, 8 << 20, 8 << 20));
        for length in [1 << 37, (1 << 37) + 1, 5 << 40, i64::MAX as u64] {
            let unit = stripe_unit(length);
            assert!(
                length.div_ceil(unit) <= MAX_TREE_STRIPES && unit.is_multiple_of(MIN_TREE_STRIPE),
                "{length}"
            );
        }
    }

    #[test]
    fn an_id_differs_if_the_place_or_the_version_does() {
        let source = TreeSource { url: "s3://a/b".into(), ..TreeSource::default() };
        let elsewhere = TreeSource { endpoint: Some("http://host".into()), ..source.clone() };
        let key = |text: &str| Key::new(text).unwrap();
        let found = |length, stamp: &str| Found { length, stamp: Stamp::new(stamp).unwrap() };
        let ids = [
            id(&source, &key("c"), &found(1, "x")),
            id(&source, &key("d"), &found(1, "x")),
            id(&source, &key("c"), &found(2, "x")),
            id(&source, &key("c"), &found(1, "y")),
            id(&elsewhere, &key("c"), &found(1, "x")),
        ];
        let distinct: std::collections::HashSet<_> = ids.iter().collect();
        assert!(distinct.len() == ids.len() && ids.iter().all(|id| id.len() == 32));
    }
}
