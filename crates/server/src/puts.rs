//! Puts on the entry node: choice of the targets of a file, and check that all of its bytes arrived. Many small puts
//! share messages and commits.

use std::collections::HashMap;

use gristmill_layout::{Striped, fit_unit};
use gristmill_namespace::{
    Attempt, CommitOutcome, FileId, FilePath, Mode, NewFile, PendingChange, Principal,
};
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_wire::action::{Batch, Commit, Create, Created, FileInfo, Outcome, Receipt};
use gristmill_wire::{FileMap, GRANT_SECONDS, Grant, MAX_FILE_TARGETS, Rights};

use crate::entry::{info, place};
use crate::error::{Answer, Refusal};
use crate::limits::PUT_LEASE;
use crate::shared::{Shared, now};

/// A put whose beginning is not durable yet.
struct Beginning {
    path: String,
    file: NewFile,
    id: PendingChange<FileId>,
}

impl Shared {
    /// Begins a put.
    pub fn create(&self, principal: &Principal, create: &Create) -> Answer<Created> {
        self.created(principal, self.begin(principal, create)?, &self.addresses()?)
    }

    /// Begins many puts.
    pub fn create_many(
        &self,
        principal: &Principal,
        many: &Batch<Create>,
    ) -> Answer<Batch<Outcome<Created>>> {
        let addresses = self.addresses()?;
        // All puts are queued before a wait for the first one.
        let begun: Vec<Answer<Beginning>> =
            many.each.iter().map(|create| self.begin(principal, create)).collect();
        let created = begun.into_iter().map(|begun| self.created(principal, begun?, &addresses));
        Ok(Batch { each: created.map(outcome).collect() })
    }

    fn begin(&self, principal: &Principal, create: &Create) -> Answer<Beginning> {
        self.ready()?;
        self.has_room()?;
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
            segments: create.segments,
            mode: create.mode.map(Mode::new).transpose()?,
        };
        let id = self.namespace()?.queue_begin(principal, &file, PUT_LEASE)?;
        Ok(Beginning { path: create.path.clone(), file, id })
    }

    fn created(
        &self,
        principal: &Principal,
        begun: Beginning,
        addresses: &HashMap<u32, String>,
    ) -> Answer<Created> {
        let Beginning { path, file, id } = begun;
        let map = FileMap {
            id: id.wait()?.to_string(),
            path,
            length: 0,
            unit: file.unit,
            first: file.first,
            record: file.record,
            segments: file.segments,
            attached: None,
            targets: file.targets.iter().map(|number| place(*number, addresses, 0)).collect(),
        };
        // The same bounds apply to readers of the file.
        map.check()?;
        let expires = now() + GRANT_SECONDS;
        let grant =
            Grant { principal: principal.to_string(), rights: Rights::Write, file: map.clone(), expires };
        Ok(Created { file: map, grant: self.key.seal(&grant)?, lease_seconds: PUT_LEASE.as_secs() })
    }

    /// Chooses the targets of a file, and the target of the first stripe unit.
    fn choose(&self, create: &Create) -> Answer<(Vec<u32>, u32)> {
        let usage = |text: String| Err(Refusal::new(ErrorKind::Usage, text));
        let targets = self.namespace()?.targets()?;
        if let Some(on) = &create.on {
            if on.is_empty() || on.len() > MAX_FILE_TARGETS {
                return usage(format!("name 1 to {MAX_FILE_TARGETS} targets, not {}", on.len()));
            }
            let reads_only = |number: &&u32| targets.iter().any(|t| t.number == **number && !t.holds_files);
            if let Some(number) = on.iter().find(reads_only) {
                return usage(format!("target {number} holds no files of the cluster; name others"));
            }
            return Ok((on.clone(), 0));
        }
        // A lost target must not prevent puts of all files.
        let holding = targets.iter().filter(|target| target.holds_files).map(|target| target.number);
        let mut numbers: Vec<u32> = holding.filter(|number| self.alive(*number)).collect();
        let all = numbers.len();
        if all == 0 && targets.iter().any(|target| target.holds_files) {
            let text = "no node that holds files answers now; see 'gristmill nodes'";
            return Err(Refusal::new(ErrorKind::Unavailable, text));
        }
        if all == 0 {
            return usage(
                "no node of the cluster holds files (--without-store); only attached trees can be read"
                    .into(),
            );
        }
        let count = create.targets.map_or(all, |count| count as usize);
        if count == 0 || count > all {
            return usage(format!("{all} targets of the cluster are there; give --targets 1 to {all}"));
        }
        // Most small files have only one stripe unit, so the first one goes to another target each time.
        let turn = fastrand::usize(..all);
        if count < all {
            numbers.rotate_left(turn);
            numbers.truncate(count);
            return Ok((numbers, 0));
        }
        Ok((numbers, u32::try_from(turn).unwrap_or(0)))
    }

    /// Makes a file visible, if there are receipts of all nodes for their bytes.
    pub fn commit(&self, principal: &Principal, commit: &Commit) -> Answer<FileInfo> {
        self.committed(self.swap(principal, commit)?, &self.addresses()?)
    }

    /// Makes many files visible, each with its own outcome.
    pub fn commit_many(
        &self,
        principal: &Principal,
        many: &Batch<Commit>,
    ) -> Answer<Batch<Outcome<FileInfo>>> {
        let addresses = self.addresses()?;
        let swaps: Vec<_> = many.each.iter().map(|commit| self.swap(principal, commit)).collect();
        let committed = swaps.into_iter().map(|swap| self.committed(swap?, &addresses));
        Ok(Batch { each: committed.map(outcome).collect() })
    }

    fn swap(&self, principal: &Principal, commit: &Commit) -> Answer<PendingChange<CommitOutcome>> {
        let namespace = self.namespace()?;
        let id = commit.id.parse::<FileId>()?;
        let attempt = namespace.attempt(&id)?;
        if !attempt.committed {
            self.check_receipts(commit, attempt)?;
        }
        let version = |receipt: &Option<Receipt>| receipt.as_ref().map_or(0, |receipt| receipt.version);
        let versions: Vec<u64> = commit.receipts.iter().map(version).collect();
        Ok(namespace.queue_commit(principal, &id, commit.length, &versions)?)
    }

    fn committed(
        &self,
        swap: PendingChange<CommitOutcome>,
        addresses: &HashMap<u32, String>,
    ) -> Answer<FileInfo> {
        let committed = swap.wait()?;
        if committed.replaced.is_some() {
            self.garbage.notify_one();
        }
        Ok(info(&committed.file, addresses))
    }

    fn check_receipts(&self, commit: &Commit, attempt: Attempt) -> Answer<()> {
        let refuse = |text: String| Err(Refusal::new(ErrorKind::Usage, text));
        let Attempt { unit, first, targets, segments, .. } = attempt;
        let count = u32::try_from(targets.len()).unwrap_or(u32::MAX);
        let layout = Striped::new(unit, count, first).map_err(RunError::from)?;
        let mut pieces = 0u64;
        if commit.receipts.len() != targets.len() {
            return refuse(format!("{} receipts for {} targets", commit.receipts.len(), targets.len()));
        }
        for ((place, number), receipt) in (0..).zip(&targets).zip(&commit.receipts) {
            // The length of each object of a segments file is not known before. The sum must be the length of the file.
            let expected = if segments { 0 } else { layout.object_len(place, commit.length) };
            let word = match receipt {
                None if expected == 0 => continue,
                None => return refuse(format!("target {number} gave no receipt for {expected} bytes")),
                Some(receipt) => receipt,
            };
            let text = word.signed_text(&commit.id, *number);
            if !self.key.verify(text.as_bytes(), &word.seal) {
                return refuse(format!(
                    "the receipt of target {number} has a wrong seal; put the file again"
                ));
            }
            if segments {
                pieces = pieces.saturating_add(word.data.unwrap_or(0));
            } else if word.length != expected || word.data.is_some() {
                return refuse(format!(
                    "target {number} has {} bytes of the file and should have {expected}; put it again",
                    word.length
                ));
            }
        }
        if segments && pieces != commit.length {
            return refuse(format!(
                "the targets have {pieces} bytes of the file and should have {}; make it again",
                commit.length
            ));
        }
        Ok(())
    }
}

pub(crate) fn outcome<T>(answer: Answer<T>) -> Outcome<T> {
    match answer {
        Ok(done) => Outcome::Done(done),
        Err(refusal) => Outcome::Error(refusal.0),
    }
}
