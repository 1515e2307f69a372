//! Puts in memory, from their beginning to the removal of their objects.

use std::time::{Duration, SystemTime};

use super::state::{Put, Stage, State, conflict};
use crate::checks::{check_layout, check_lease, check_length};
use crate::{
    Attempt, CommitOutcome, DirPath, FileEntry, FileId, FilePath, Garbage, MAX_GARBAGE_PAGE, MAX_UNFINISHED,
    Mode, NamedPut, NamespaceError, NewFile, PathConflict, Principal, Result, Rules, clock,
};

impl State {
    pub fn begin(
        &mut self,
        rules: &Rules,
        who: &Principal,
        new: &NewFile,
        lease: Duration,
    ) -> Result<FileId> {
        check_layout(new.unit, new.first, &new.targets, new.record)?;
        check_lease(lease)?;
        let has_address = |number: &u32| {
            self.targets.iter().any(|target| target.number == *number && !target.address.is_empty())
        };
        if let Some(number) = new.targets.iter().find(|number| !has_address(number)) {
            return Err(NamespaceError::UnknownTarget { number: *number });
        }
        self.check_destination(rules, who, &new.path, new.mode)?;
        let unfinished = |put: &&Put| put.file.is_none() && !put.is_held() && put.who == *who;
        if self.puts.values().filter(unfinished).take(MAX_UNFINISHED as usize).count()
            == MAX_UNFINISHED as usize
        {
            return Err(NamespaceError::TooManyPuts { who: who.clone(), limit: MAX_UNFINISHED.into() });
        }
        let id = self.new_id()?;
        let stage = Stage::Begun { lease: clock::lease_end(lease) };
        let put =
            Put { id: id.clone(), who: who.clone(), new: new.clone(), stage, file: None, replaced: None };
        self.puts.insert(self.next, put);
        self.by_id.insert(id.clone(), self.next);
        self.next += 1;
        Ok(id)
    }

    pub fn renew(&mut self, rules: &Rules, who: &Principal, id: &FileId, lease: Duration) -> Result<()> {
        check_lease(lease)?;
        let put = self.known(id)?;
        rules.check_owner(who, &put.who, &put.new.path, "go on with the put of")?;
        if !put.in_progress() {
            return Err(unknown(id));
        }
        self.set_stage(id, Stage::Begun { lease: clock::lease_end(lease) });
        Ok(())
    }

    pub fn attempt(&self, id: &FileId) -> Result<Attempt> {
        let put = self.known(id)?;
        let committed = put.file.is_some();
        if !committed && !put.in_progress() {
            return Err(unknown(id));
        }
        // A file may have another path than its put, after a move.
        let path = put.file.as_ref().map_or(&put.new.path, |file| &file.path).clone();
        let NewFile { unit, first, targets, record, segments, .. } = put.new.clone();
        Ok(Attempt { path, who: put.who.clone(), unit, first, targets, record, segments, committed })
    }

    pub fn commit(
        &mut self,
        rules: &Rules,
        who: &Principal,
        id: &FileId,
        length: u64,
        versions: &[u64],
    ) -> Result<CommitOutcome> {
        check_length(length, versions)?;
        let put = self.known(id)?.clone();
        let path = put.file.as_ref().map_or(&put.new.path, |file| &file.path);
        rules.check_owner(who, &put.who, path, "commit the put of")?;
        if let Some(file) = put.file {
            if file.length != length || file.versions != versions {
                return Err(NamespaceError::committed_otherwise(id));
            }
            return Ok(CommitOutcome { file, replaced: put.replaced });
        }
        if !put.in_progress() {
            return Err(unknown(id));
        }
        if versions.len() != put.new.targets.len() {
            return Err(NamespaceError::wrong_versions(versions.len(), put.new.targets.len()));
        }
        let old = self.check_destination(rules, who, &put.new.path, put.new.mode)?;
        if let Some(old) = &old {
            self.discard(&old.id);
        }
        let NewFile { path, unit, first, targets, record, segments, mode } = put.new;
        let file = FileEntry {
            id: id.clone(),
            path,
            owner: old.as_ref().map_or(put.who, |old| old.owner.clone()),
            mode: mode.or(old.as_ref().map(|old| old.mode)).unwrap_or_default(),
            length,
            unit,
            first,
            targets,
            record,
            segments,
            versions: versions.to_vec(),
            created: SystemTime::now(),
        };
        let replaced = old.map(|old| old.id);
        let n = self.by_id.get(id).copied();
        if let Some((n, put)) = n.and_then(|n| Some((n, self.puts.get_mut(&n)?))) {
            (put.stage, put.file, put.replaced) = (Stage::Live, Some(file.clone()), replaced.clone());
            self.files.insert(file.path.key(), n);
        }
        Ok(CommitOutcome { file, replaced })
    }

    pub fn abandon(&mut self, rules: &Rules, who: &Principal, id: &FileId) -> Result<()> {
        let put = self.known(id).ok().filter(|put| matches!(put.stage, Stage::Begun { .. }));
        let Some(put) = put else { return Ok(()) };
        rules.check_owner(who, &put.who, &put.new.path, "abandon the put of")?;
        self.discard(id);
        Ok(())
    }

    /// Checks that `who` may put a file with `mode` at `path`. Returns the file that is there now.
    pub fn check_destination(
        &self,
        rules: &Rules,
        who: &Principal,
        path: &FilePath,
        mode: Option<Mode>,
    ) -> Result<Option<FileEntry>> {
        if let Some(file) = self.at(path).and_then(|put| put.file.clone()) {
            rules.check_replace(who, &file, mode)?;
            return Ok(Some(file));
        }
        if let Some(parent) = self.file_above(path) {
            return Err(conflict(path, PathConflict::ParentIsFile(parent)));
        }
        self.check_not_in_tree(path)?;
        match self.directory_exists(&DirPath::from(path)) {
            true => Err(conflict(path, PathConflict::IsDirectory)),
            false => Ok(None),
        }
    }

    /// Makes a file or an attempt garbage.
    pub fn discard(&mut self, id: &FileId) {
        let Some(put) = self.by_id.get(id).and_then(|n| self.puts.get_mut(n)) else { return };
        let was_live = put.stage == Stage::Live;
        put.stage = Stage::Garbage { again: false };
        if let Some(file) = put.file.as_ref().filter(|_| was_live) {
            self.files.remove(&file.path.key());
        }
    }

    pub fn garbage(&mut self, limit: usize) -> Vec<Garbage> {
        let now = clock::now();
        let ended = |put: &&mut Put| matches!(put.stage, Stage::Begun { lease } if lease <= now);
        for put in self.puts.values_mut().filter(ended).take(MAX_GARBAGE_PAGE) {
            put.stage = Stage::Garbage { again: false };
        }
        let over = |put: &&mut Put| matches!(put.stage, Stage::Held { until } if until <= now);
        for put in self.puts.values_mut().filter(over).take(MAX_GARBAGE_PAGE) {
            put.stage = Stage::Garbage { again: true };
        }
        let start = self.cursor.map_or(0, |n| n + 1);
        let in_turn = self.puts.range(start..).chain(self.puts.range(..start));
        let garbage = in_turn.filter(|(_, put)| matches!(put.stage, Stage::Garbage { .. })).take(limit);
        let found: Vec<_> = garbage
            .map(|(n, put)| (*n, Garbage { id: put.id.clone(), targets: put.new.targets.clone() }))
            .collect();
        self.cursor = found.last().map(|(n, _)| *n).or(self.cursor);
        found.into_iter().map(|(_, garbage)| garbage).collect()
    }

    pub fn forget_collected(&mut self, ids: &[FileId], writable: Duration) {
        let (now, writable) = (clock::now(), i64::try_from(writable.as_nanos()).unwrap_or(i64::MAX));
        for id in ids {
            let Some(n) = self.by_id.get(id).copied() else { continue };
            let Some(put) = self.puts.get_mut(&n) else { continue };
            let Stage::Garbage { again } = put.stage else { continue };
            // A put began before its commit and before now, and the two clocks may differ. So the earlier of these times counts.
            let begun = put.file.as_ref().map_or(now, |file| clock::to_nanos(file.created)).min(now);
            if again || begun <= now.saturating_sub(writable) {
                self.puts.remove(&n);
                self.by_id.remove(id);
            } else {
                put.stage = Stage::Held { until: begun.saturating_add(writable) };
            }
        }
    }

    pub fn named_puts(&self, after: Option<&FileId>, last: Option<&FileId>, limit: usize) -> Vec<NamedPut> {
        let named =
            |put: &&Put| after.is_none_or(|after| put.id > *after) && last.is_none_or(|last| put.id <= *last);
        let mut found: Vec<&Put> = self.puts.values().filter(named).collect();
        found.sort_by(|one, other| one.id.cmp(&other.id));
        let named = found.into_iter().take(limit).map(|put| NamedPut {
            id: put.id.clone(),
            targets: put.new.targets.clone(),
            file: put.file.clone().filter(|_| put.stage == Stage::Live),
        });
        named.collect()
    }

    /// The put with this id, if it is not collected.
    fn known(&self, id: &FileId) -> Result<&Put> {
        let put = self.by_id.get(id).and_then(|n| self.puts.get(n)).filter(|put| !put.is_held());
        put.ok_or_else(|| unknown(id))
    }

    fn set_stage(&mut self, id: &FileId, stage: Stage) {
        if let Some(put) = self.by_id.get(id).and_then(|n| self.puts.get_mut(n)) {
            put.stage = stage;
        }
    }
}

fn unknown(id: &FileId) -> NamespaceError {
    NamespaceError::UnknownAttempt { id: id.clone() }
}
