//! The trait of namespaces.

use std::fmt::Debug;
use std::time::Duration;

use crate::{
    Access, Amount, AttachedTree, Attempt, CommitOutcome, DirPath, FileEntry, FileId, FilePath, Garbage,
    ListEntry, Mode, MoveOutcome, NamedPut, NamespaceError, NewFile, PendingChange, Principal, Result, Rules,
    TargetId, TargetRecord,
};
#[cfg(doc)]
use crate::{
    MAX_ADDRESS_BYTES, MAX_COLLECTED, MAX_FILE_BYTES, MAX_GARBAGE_PAGE, MAX_LEASE, MAX_LIST_PAGE,
    MAX_NAMED_PAGE, MAX_SOURCE_BYTES, MAX_TREES,
};

/// The files, puts, targets and trees of a cluster. A change that returned `Ok` is as durable as the namespace is. Every change
/// is one step: readers see the state before it or after it.
pub trait Namespace: Send + Sync + Debug {
    /// The rules of permission.
    fn rules(&self) -> &Rules;

    /// Adds a target to the cluster, or sets the address of a target of the cluster, and whether its node holds files.
    /// Returns its number, which stays the same: 0 for the first target that joined, then 1, and so on. A repeated call
    /// without a change writes nothing.
    ///
    /// If another target has the address, that target loses it, and has no address until it joins again. This is only
    /// possible while it has no file and no put in progress. Otherwise a target with a wrong address would make
    /// readable files unreachable.
    ///
    /// # Errors
    /// Returns [`AddressTaken`](NamespaceError::AddressTaken), [`TooMany`](NamespaceError::TooMany) for too many
    /// targets, [`Invalid`](NamespaceError::Invalid) if the address is empty, longer than [`MAX_ADDRESS_BYTES`] or
    /// contains spaces or control characters, or a failure of the system.
    fn join(&self, id: &TargetId, address: &str, holds_files: bool) -> Result<u32>;

    /// Returns all targets that ever joined, in the order of their numbers.
    ///
    /// # Errors
    /// Returns a failure of the system.
    fn targets(&self) -> Result<Vec<TargetRecord>>;

    /// Begins a put of a file. Nothing is visible at the path before [`commit`](Self::commit). If the lease is not
    /// renewed in time, the attempt becomes garbage. Leases follow the clock of the system.
    ///
    /// # Errors
    /// Returns [`Denied`](NamespaceError::Denied) if there is a file at the path that `who` may not write, or if its
    /// mode would change and `who` is not the owner; [`Conflict`](NamespaceError::Conflict);
    /// [`UnknownTarget`](NamespaceError::UnknownTarget); [`TooMany`](NamespaceError::TooMany) for too many targets;
    /// [`Invalid`](NamespaceError::Invalid) for no targets, a target that is named twice, a unit or record of 0 or
    /// above [`MAX_FILE_BYTES`], a `first` after the last target, or a lease above [`MAX_LEASE`];
    /// [`TooManyPuts`](NamespaceError::TooManyPuts); or a failure of the system.
    fn begin(&self, who: &Principal, file: &NewFile, lease: Duration) -> Result<FileId> {
        self.queue_begin(who, file, lease)?.wait()
    }

    /// [`begin`](Self::begin) without a wait, so that many puts share commits.
    ///
    /// # Errors
    /// Returns some of the errors of [`begin`](Self::begin) at once. [`PendingChange::wait`] returns the others.
    fn queue_begin(&self, who: &Principal, file: &NewFile, lease: Duration) -> Result<PendingChange<FileId>>;

    /// Sets the lease of an attempt, counted from now.
    ///
    /// # Errors
    /// Returns [`UnknownAttempt`](NamespaceError::UnknownAttempt), also if it is committed or its lease expired;
    /// [`Denied`](NamespaceError::Denied) if another user began it;
    /// [`Invalid`](NamespaceError::Invalid) for a lease above [`MAX_LEASE`]; or a failure of the system.
    fn renew(&self, who: &Principal, id: &FileId, lease: Duration) -> Result<()>;

    /// Returns the put that [`begin`](Self::begin) stored, as long as [`commit`](Self::commit) knows it.
    ///
    /// # Errors
    /// Returns [`UnknownAttempt`](NamespaceError::UnknownAttempt), or a failure of the system.
    fn attempt(&self, id: &FileId) -> Result<Attempt>;

    /// Puts the file at its path and removes the file that was there, in one step. `length` is in bytes. `versions` are
    /// the versions of the object on each target, in the order of the targets. The file belongs to the owner of the
    /// file that it replaces, or else to the user that began the put.
    ///
    /// After a success, a repeated call changes nothing and has the same answer (with the mode at that time). This ends
    /// when the file was removed or replaced and [`forget_collected`](Self::forget_collected) was called.
    ///
    /// # Errors
    /// Returns [`UnknownAttempt`](NamespaceError::UnknownAttempt) if the lease expired or the attempt was abandoned;
    /// [`Denied`](NamespaceError::Denied) if another user began it, and as for [`begin`](Self::begin);
    /// [`Conflict`](NamespaceError::Conflict); [`Invalid`](NamespaceError::Invalid) for a length above
    /// [`MAX_FILE_BYTES`], a wrong number of versions, or a length or versions that differ from those of the first
    /// commit; or a failure of the system. After any of these but the first, the attempt stays in progress.
    fn commit(&self, who: &Principal, id: &FileId, length: u64, versions: &[u64]) -> Result<CommitOutcome> {
        self.queue_commit(who, id, length, versions)?.wait()
    }

    /// [`commit`](Self::commit) without a wait, so that many puts share commits.
    ///
    /// # Errors
    /// Returns some of the errors of [`commit`](Self::commit) at once. [`PendingChange::wait`] returns the others.
    fn queue_commit(
        &self,
        who: &Principal,
        id: &FileId,
        length: u64,
        versions: &[u64],
    ) -> Result<PendingChange<CommitOutcome>>;

    /// Ends an attempt, which becomes garbage. If it has ended already, this does nothing. A commit is not undone.
    ///
    /// # Errors
    /// Returns [`Denied`](NamespaceError::Denied) if another user began it, or a failure of the system.
    fn abandon(&self, who: &Principal, id: &FileId) -> Result<()>;

    /// Returns the file at `path`, if `who` has this access to it.
    ///
    /// # Errors
    /// Returns [`NotFound`](NamespaceError::NotFound), [`Denied`](NamespaceError::Denied) (also if `who` may not read
    /// the file), or a failure of the system.
    fn lookup(&self, who: &Principal, path: &FilePath, access: Access) -> Result<FileEntry>;

    /// Returns up to `limit` names in `dir` (at most [`MAX_LIST_PAGE`]) after the name `after`: one level, in bytewise
    /// order. An empty answer is the end. An attached tree is listed as a directory. Directories have no
    /// permissions: all users see all names.
    ///
    /// # Errors
    /// Returns [`NotFound`](NamespaceError::NotFound) if no file and no tree lies in `dir`, unless it is `/`;
    /// [`InvalidPath`](NamespaceError::InvalidPath) if `after` is not a valid name; or a failure of the system.
    fn list(&self, dir: &DirPath, after: Option<&str>, limit: usize) -> Result<Vec<ListEntry>>;

    /// Returns up to `limit` files on all levels below `dir` (at most [`MAX_LIST_PAGE`]) after the path `after` below it, in
    /// bytewise order of the lists of their names. An empty answer is the end. An attached tree is listed as a directory, by
    /// its path below `dir`, without its files. Directories have no permissions: all users see all names.
    ///
    /// # Errors
    /// Returns [`NotFound`](NamespaceError::NotFound) if no file and no tree lies in `dir`, unless it is `/`;
    /// [`InvalidPath`](NamespaceError::InvalidPath) if `after` is not a path below a directory; or a failure of the system.
    fn list_below(&self, dir: &DirPath, after: Option<&str>, limit: usize) -> Result<Vec<ListEntry>>;

    /// Removes the file, which becomes garbage. Returns its id.
    ///
    /// # Errors
    /// Returns [`NotFound`](NamespaceError::NotFound), [`Denied`](NamespaceError::Denied) if `who` may not write it,
    /// [`Conflict`](NamespaceError::Conflict) for a path in an attached tree, or a failure of the system.
    fn remove(&self, who: &Principal, path: &FilePath) -> Result<FileId>;

    /// Sets the mode of the file. Only its owner may do that.
    ///
    /// # Errors
    /// Returns [`NotFound`](NamespaceError::NotFound), [`Denied`](NamespaceError::Denied),
    /// [`Conflict`](NamespaceError::Conflict) for a path in an attached tree, or a failure of the system.
    fn set_mode(&self, who: &Principal, path: &FilePath, mode: Mode) -> Result<()>;

    /// Moves a file, or all files of a directory, to another path, in one step. `from` and `to` are read as `mv` reads
    /// them. A path that ends with a slash is a directory. If `to` is an existing directory or ends with a slash, the
    /// source gets its old name in that directory. A file replaces another file. Owners and modes stay.
    ///
    /// # Errors
    /// Returns [`NotFound`](NamespaceError::NotFound); [`Denied`](NamespaceError::Denied) unless `who` may write every
    /// moved file and the replaced file; [`Conflict`](NamespaceError::Conflict), also if `to` would be a directory that
    /// has files already; [`Invalid`](NamespaceError::Invalid) for a move of a directory into itself or to the path of
    /// a file, and if `from` and `to` are the same; [`InvalidPath`](NamespaceError::InvalidPath), also if a new path is
    /// too long; [`TooMany`](NamespaceError::TooMany) for too many files; or a failure of the system.
    fn rename(&self, who: &Principal, from: &str, to: &str) -> Result<MoveOutcome>;

    /// Removes a file, or all files of a directory, in one step. They become garbage.
    ///
    /// # Errors
    /// Returns [`NotFound`](NamespaceError::NotFound); [`Denied`](NamespaceError::Denied) without any removal unless
    /// `who` may write every file; [`Invalid`](NamespaceError::Invalid) for the root;
    /// [`TooMany`](NamespaceError::TooMany) for too many files; or a failure of the system.
    fn remove_all(&self, who: &Principal, path: &str) -> Result<Amount>;

    /// Returns the size of a file, or of all files of a directory. All users may ask.
    ///
    /// # Errors
    /// Returns [`NotFound`](NamespaceError::NotFound), unless the path is `/`; or a failure of the system.
    fn usage(&self, path: &str) -> Result<Amount>;

    /// Attaches a tree. From then on all paths below `path` are its files.
    ///
    /// # Errors
    /// Returns [`NotAdministrator`](NamespaceError::NotAdministrator); [`Conflict`](NamespaceError::Conflict) if there is a
    /// file, a directory or a tree at the path, above it or below it; [`TooMany`](NamespaceError::TooMany) for more than
    /// [`MAX_TREES`]; [`Invalid`](NamespaceError::Invalid) for a source longer than [`MAX_SOURCE_BYTES`]; or a failure of the
    /// system.
    fn attach(&self, who: &Principal, path: &FilePath, source: &str, mode: Mode) -> Result<()>;

    /// Detaches the tree at `path`. Its files stay where they are.
    ///
    /// # Errors
    /// Returns [`NotFound`](NamespaceError::NotFound) if no tree is attached exactly there,
    /// [`NotAdministrator`](NamespaceError::NotAdministrator), or a failure of the system.
    fn detach(&self, who: &Principal, path: &FilePath) -> Result<()>;

    /// Returns all attached trees, in the order of their paths.
    ///
    /// # Errors
    /// Returns a failure of the system.
    fn trees(&self) -> Result<Vec<AttachedTree>>;

    /// Returns the tree at `path` or above it.
    ///
    /// # Errors
    /// Returns a failure of the system.
    fn tree_of(&self, path: &DirPath) -> Result<Option<AttachedTree>>;

    /// Checks that `who` may read the files of a tree.
    ///
    /// # Errors
    /// Returns [`Denied`](NamespaceError::Denied).
    fn check_reader(&self, who: &Principal, tree: &AttachedTree) -> Result<()> {
        if self.is_administrator(who) || tree.mode.allows(*who == tree.owner, Access::Read) {
            return Ok(());
        }
        Err(NamespaceError::Denied { who: who.clone(), path: tree.path.clone(), verb: "read" })
    }

    /// Returns up to `limit` pieces of garbage, at most [`MAX_GARBAGE_PAGE`]. First it makes attempts with an expired
    /// lease garbage, and also files that [`forget_collected`](Self::forget_collected) held until now. Each call
    /// continues after the last one, and starts over at the end. So garbage on a target that is down does not hide
    /// other garbage.
    ///
    /// # Errors
    /// Returns a failure of the system.
    fn garbage(&self, limit: usize) -> Result<Vec<Garbage>>;

    /// Forgets garbage whose objects were removed from all its targets. An id that is not garbage has no effect.
    ///
    /// `writable` is the time after the beginning of a put in which its objects may be written, because a client may
    /// still have the permission. Garbage that is collected before is returned as garbage once more after that time, in
    /// case its objects were written again.
    ///
    /// # Errors
    /// Returns [`TooMany`](NamespaceError::TooMany) for too many ids, [`Invalid`](NamespaceError::Invalid) if
    /// `writable` is above [`MAX_LEASE`](crate::MAX_LEASE), or a failure of the system.
    fn forget_collected(&self, ids: &[FileId], writable: Duration) -> Result<()>;

    /// Returns up to `limit` puts (at most [`MAX_NAMED_PAGE`]) with ids after `after` and up to `last`, in the order of
    /// their ids. Without `after` they begin with the first put, and without `last` they end with the last.
    ///
    /// # Errors
    /// Returns [`Damaged`](NamespaceError::Damaged), or a failure of the system.
    fn named_puts(
        &self,
        after: Option<&FileId>,
        last: Option<&FileId>,
        limit: usize,
    ) -> Result<Vec<NamedPut>>;

    /// Whether `who` may do everything.
    fn is_administrator(&self, who: &Principal) -> bool {
        self.rules().is_administrator(who)
    }

    /// Checks that `who` may do everything.
    ///
    /// # Errors
    /// Returns [`NotAdministrator`](NamespaceError::NotAdministrator) with `verb`.
    fn check_administrator(&self, who: &Principal, verb: &'static str) -> Result<()> {
        self.rules().check_administrator(who, verb)
    }
}
