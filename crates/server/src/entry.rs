//! What the entry node does with files: the namespace, and grants.

use std::collections::HashMap;
use std::time::UNIX_EPOCH;

use gristmill_layout::fit_unit;
use gristmill_namespace::{
    Access, DirPath, FileEntry, FileId, FilePath, ListEntry, Mode, Namespace, NewFile, Principal,
};
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_wire::action::{
    Attempt, Commit, Create, Created, Entry, FileInfo, List, Listing, Node, Nodes, Opened, PathOf, Receipt,
    SetMode,
};
use gristmill_wire::{FileMap, GRANT_SECONDS, Grant, MAX_FILE_TARGETS, Rights, TargetPlace};

use crate::error::{Answer, Refusal};
use crate::limits::PUT_LEASE;
use crate::node::{Shared, now};

/// Names of one answer to `list`.
const LIST_PAGE: usize = 1000;

impl Shared {
    /// The namespace; an error that names the entry node where this is none.
    pub fn namespace(&self) -> Answer<&Namespace> {
        self.namespace.as_ref().ok_or_else(|| {
            let entry = self.entry.as_deref().unwrap_or("the entry node");
            Refusal::new(
                ErrorKind::Usage,
                format!("this node has no namespace; ask the entry node at {entry}"),
            )
        })
    }

    fn addresses(&self) -> Answer<HashMap<u32, String>> {
        let targets = self.namespace()?.targets()?;
        Ok(targets.into_iter().map(|target| (target.number, target.address)).collect())
    }

    /// Opens a file for a principal.
    pub fn open(&self, who: &Principal, path: &str) -> Answer<Opened> {
        let info = self.stat(who, path)?;
        let (principal, file) = (who.to_string(), info.file.clone());
        let grant = Grant { principal, rights: Rights::Read, file, expires: now() + GRANT_SECONDS };
        Ok(Opened { info, grant: self.key.seal(&grant)? })
    }

    /// What is known about a file that a principal may read.
    pub fn stat(&self, who: &Principal, path: &str) -> Answer<FileInfo> {
        let entry = self.namespace()?.lookup(who, &FilePath::parse(path)?, Access::Read)?;
        Ok(info(&entry, &self.addresses()?))
    }

    /// Begins a put.
    pub fn create(&self, who: &Principal, create: &Create) -> Answer<Created> {
        let namespace = self.namespace()?;
        let unit = match create.record {
            Some(record) => fit_unit(create.unit, record).map_err(RunError::from)?,
            None => create.unit,
        };
        let (targets, first) = self.choose(create)?;
        let file = NewFile {
            path: FilePath::parse(&create.path)?,
            unit,
            first,
            targets,
            record: create.record,
            mode: create.mode.map(Mode::new).transpose()?,
        };
        let addresses = self.addresses()?;
        let id = namespace.begin(who, &file, PUT_LEASE)?;
        let places = file.targets.iter().map(|number| place(*number, &addresses, 0));
        let map = FileMap {
            id: id.to_string(),
            path: create.path.clone(),
            length: 0,
            unit,
            first,
            record: create.record,
            targets: places.collect(),
        };
        // The same bounds hold for whoever reads it back.
        map.check()?;
        let expires = now() + GRANT_SECONDS;
        let grant = Grant { principal: who.to_string(), rights: Rights::Write, file: map.clone(), expires };
        Ok(Created { file: map, grant: self.key.seal(&grant)?, lease_seconds: PUT_LEASE.as_secs() })
    }

    /// Which targets a file goes to, and which of them has the first stripe.
    fn choose(&self, create: &Create) -> Answer<(Vec<u32>, u32)> {
        let usage = |text: String| Err(Refusal::new(ErrorKind::Usage, text));
        if let Some(on) = &create.on {
            if on.is_empty() || on.len() > MAX_FILE_TARGETS {
                return usage(format!("name 1 to {MAX_FILE_TARGETS} targets, not {}", on.len()));
            }
            return Ok((on.clone(), 0));
        }
        let mut numbers: Vec<u32> = self.namespace()?.targets()?.iter().map(|target| target.number).collect();
        let all = numbers.len();
        let count = create.targets.map_or(all, |count| count as usize);
        if count == 0 || count > all {
            return usage(format!("the cluster has {all} targets; give --targets 1 to {all}"));
        }
        // Small files begin, and mostly end, with their first stripe: it goes to another target each time.
        let turn = fastrand::usize(..all);
        if count < all {
            numbers.rotate_left(turn);
            numbers.truncate(count);
            return Ok((numbers, 0));
        }
        Ok((numbers, u32::try_from(turn).unwrap_or(0)))
    }

    /// Makes a file visible, if every node's word is there for what it must have.
    pub fn commit(&self, who: &Principal, commit: &Commit) -> Answer<FileInfo> {
        let namespace = self.namespace()?;
        let id = commit.id.parse::<FileId>()?;
        let refuse = |text: String| Err(Refusal::new(ErrorKind::Usage, text));
        let attempt = namespace.attempt(&id)?;
        if !attempt.committed {
            let (unit, first, targets) = (attempt.unit, attempt.first, attempt.targets);
            let count = u32::try_from(targets.len()).unwrap_or(u32::MAX);
            let layout = gristmill_layout::Striped::new(unit, count, first).map_err(RunError::from)?;
            if commit.receipts.len() != targets.len() {
                return refuse(format!("{} receipts for {} targets", commit.receipts.len(), targets.len()));
            }
            for ((place, number), receipt) in (0..).zip(&targets).zip(&commit.receipts) {
                let expected = layout.object_len(place, commit.length);
                let word = match receipt {
                    None if expected == 0 => continue,
                    None => return refuse(format!("target {number} gave no receipt for {expected} bytes")),
                    Some(receipt) => receipt,
                };
                let text = Receipt::signed_text(&commit.id, *number, word.length, word.version);
                if !self.key.signed(text.as_bytes(), &word.seal) {
                    return refuse(format!(
                        "the receipt of target {number} is not its own; put the file again"
                    ));
                }
                if word.length != expected {
                    return refuse(format!(
                        "target {number} has {} bytes of the file and should have {expected}; put it again",
                        word.length
                    ));
                }
            }
        }
        let version = |receipt: &Option<Receipt>| receipt.as_ref().map_or(0, |receipt| receipt.version);
        let versions: Vec<u64> = commit.receipts.iter().map(version).collect();
        let committed = namespace.commit(who, &id, commit.length, &versions)?;
        if committed.replaced.is_some() {
            self.garbage.notify_one();
        }
        Ok(info(&committed.file, &self.addresses()?))
    }

    /// A put is still going on.
    pub fn renew(&self, who: &Principal, attempt: &Attempt) -> Answer<()> {
        Ok(self.namespace()?.renew(who, &attempt.id.parse()?, PUT_LEASE)?)
    }

    /// A put is given up.
    pub fn abandon(&self, who: &Principal, attempt: &Attempt) -> Answer<()> {
        self.namespace()?.abandon(who, &attempt.id.parse()?)?;
        self.garbage.notify_one();
        Ok(())
    }

    /// Removes a file.
    pub fn remove(&self, who: &Principal, path: &PathOf) -> Answer<()> {
        self.namespace()?.remove(who, &FilePath::parse(&path.path)?)?;
        self.garbage.notify_one();
        Ok(())
    }

    /// Changes permission bits.
    pub fn chmod(&self, who: &Principal, change: &SetMode) -> Answer<()> {
        Ok(self.namespace()?.set_mode(who, &FilePath::parse(&change.path)?, Mode::new(change.mode)?)?)
    }

    /// Names of a directory, and what is known about its files; whoever may not read a file sees all but its bytes.
    pub fn list(&self, list: &List) -> Answer<Listing> {
        let found = self.namespace()?.list(&DirPath::parse(&list.path)?, list.after.as_deref(), LIST_PAGE)?;
        let addresses = self.addresses()?;
        let more = found.len() == LIST_PAGE;
        let entry = |found: ListEntry| Entry {
            name: found.name().to_owned(),
            info: match found {
                ListEntry::Dir(_) => None,
                ListEntry::File(file) => Some(info(&file, &addresses)),
            },
        };
        Ok(Listing { entries: found.into_iter().map(entry).collect(), more })
    }

    /// The storage nodes.
    pub fn nodes(&self) -> Answer<Nodes> {
        let targets = self.namespace()?.targets()?.into_iter();
        let node = |t: gristmill_namespace::TargetRecord| Node {
            number: t.number,
            target: t.id.to_string(),
            address: t.address,
        };
        Ok(Nodes { nodes: targets.map(node).collect() })
    }
}

fn place(number: u32, addresses: &HashMap<u32, String>, version: u64) -> TargetPlace {
    TargetPlace { number, address: addresses.get(&number).cloned().unwrap_or_default(), version }
}

fn info(entry: &FileEntry, addresses: &HashMap<u32, String>) -> FileInfo {
    let places = entry.targets.iter().zip(&entry.versions);
    FileInfo {
        file: FileMap {
            id: entry.id.to_string(),
            path: entry.path.to_string(),
            length: entry.length,
            unit: entry.unit,
            first: entry.first,
            record: entry.record,
            targets: places.map(|(number, version)| place(*number, addresses, *version)).collect(),
        },
        owner: entry.owner.to_string(),
        mode: entry.mode.bits(),
        created: entry.created.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
    }
}
