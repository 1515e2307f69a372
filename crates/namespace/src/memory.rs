//! A namespace in memory: for tests, and for programs that keep nothing.

mod directories;
mod lists;
mod puts;
mod state;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use state::State;

use crate::checks::check_lease;
use crate::{
    Access, Amount, AttachedTree, Attempt, CommitOutcome, DirPath, FileEntry, FileId, FilePath, Garbage,
    ListEntry, MAX_COLLECTED, MAX_GARBAGE_PAGE, MAX_LIST_PAGE, MAX_NAMED_PAGE, Mode, MoveOutcome, NamedPut,
    Namespace, NamespaceError, NewFile, PendingChange, Principal, Result, Rules, TargetId, TargetRecord,
};

/// A namespace in memory. It is empty at first, and forgets everything when it is dropped. Each change takes effect at once, and
/// holds a lock meanwhile.
#[derive(Debug, Default)]
pub struct MemoryNamespace {
    rules: Rules,
    state: Mutex<State>,
}

impl MemoryNamespace {
    /// An empty namespace, with a user that may do everything, in addition to `root` and `uid:0`.
    #[must_use]
    pub fn new(admin: Option<Principal>) -> Self {
        Self { rules: Rules::new(admin), state: Mutex::default() }
    }

    /// The state. Every change is checked before its first step, so a panic leaves a whole state.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Namespace for MemoryNamespace {
    fn rules(&self) -> &Rules {
        &self.rules
    }

    fn join(&self, id: &TargetId, address: &str, holds_files: bool) -> Result<u32> {
        self.lock().join(id, address, holds_files)
    }

    fn targets(&self) -> Result<Vec<TargetRecord>> {
        Ok(self.lock().targets.clone())
    }

    fn queue_begin(&self, who: &Principal, file: &NewFile, lease: Duration) -> Result<PendingChange<FileId>> {
        Ok(PendingChange::done(self.lock().begin(&self.rules, who, file, lease)))
    }

    fn renew(&self, who: &Principal, id: &FileId, lease: Duration) -> Result<()> {
        self.lock().renew(&self.rules, who, id, lease)
    }

    fn attempt(&self, id: &FileId) -> Result<Attempt> {
        self.lock().attempt(id)
    }

    fn queue_commit(
        &self,
        who: &Principal,
        id: &FileId,
        length: u64,
        versions: &[u64],
    ) -> Result<PendingChange<CommitOutcome>> {
        Ok(PendingChange::done(self.lock().commit(&self.rules, who, id, length, versions)))
    }

    fn abandon(&self, who: &Principal, id: &FileId) -> Result<()> {
        self.lock().abandon(&self.rules, who, id)
    }

    fn lookup(&self, who: &Principal, path: &FilePath, access: Access) -> Result<FileEntry> {
        let file = self.lock().file(path)?;
        self.rules.check(who, &file, access, access.verb())?;
        Ok(file)
    }

    fn list(&self, dir: &DirPath, after: Option<&str>, limit: usize) -> Result<Vec<ListEntry>> {
        self.lock().list(dir, after, limit.min(MAX_LIST_PAGE))
    }

    fn list_below(&self, dir: &DirPath, after: Option<&str>, limit: usize) -> Result<Vec<ListEntry>> {
        self.lock().list_below(dir, after, limit.min(MAX_LIST_PAGE))
    }

    fn remove(&self, who: &Principal, path: &FilePath) -> Result<FileId> {
        self.lock().remove(&self.rules, who, path)
    }

    fn set_mode(&self, who: &Principal, path: &FilePath, mode: Mode) -> Result<()> {
        self.lock().set_mode(&self.rules, who, path, mode)
    }

    fn rename(&self, who: &Principal, from: &str, to: &str) -> Result<MoveOutcome> {
        self.lock().rename(&self.rules, who, from, to)
    }

    fn remove_all(&self, who: &Principal, path: &str) -> Result<Amount> {
        self.lock().remove_all(&self.rules, who, path)
    }

    fn usage(&self, path: &str) -> Result<Amount> {
        self.lock().usage(path)
    }

    fn attach(&self, who: &Principal, path: &FilePath, source: &str, mode: Mode) -> Result<()> {
        self.rules.check_administrator(who, "attach trees")?;
        self.lock().attach(who, path, source, mode)
    }

    fn detach(&self, who: &Principal, path: &FilePath) -> Result<()> {
        self.rules.check_administrator(who, "detach trees")?;
        let removed = self.lock().trees.remove(&path.key());
        removed.map(drop).ok_or_else(|| NamespaceError::NotFound { path: path.to_string() })
    }

    fn trees(&self) -> Result<Vec<AttachedTree>> {
        Ok(self.lock().trees.values().cloned().collect())
    }

    fn tree_of(&self, path: &DirPath) -> Result<Option<AttachedTree>> {
        Ok(self.lock().tree_of(&path.key()).cloned())
    }

    fn garbage(&self, limit: usize) -> Result<Vec<Garbage>> {
        Ok(self.lock().garbage(limit.min(MAX_GARBAGE_PAGE)))
    }

    fn forget_collected(&self, ids: &[FileId], writable: Duration) -> Result<()> {
        if ids.len() > MAX_COLLECTED {
            return Err(NamespaceError::TooMany { what: "ids in one call", limit: MAX_COLLECTED as u64 });
        }
        check_lease(writable)?;
        self.lock().forget_collected(ids, writable);
        Ok(())
    }

    fn named_puts(
        &self,
        after: Option<&FileId>,
        last: Option<&FileId>,
        limit: usize,
    ) -> Result<Vec<NamedPut>> {
        Ok(self.lock().named_puts(after, last, limit.min(MAX_NAMED_PAGE)))
    }
}
