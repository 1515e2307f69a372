//! Changes of files and whole directories in memory.

use std::time::SystemTime;

use super::state::{State, conflict};
use crate::{
    Access, Amount, DirPath, FileEntry, FileId, FilePath, MAX_CHANGED_AT_ONCE, MAX_PATH_BYTES, Mode,
    MoveOutcome, NamespaceError, PathConflict, PathFault, Principal, Result, Rules,
};

impl State {
    pub fn remove(&mut self, rules: &Rules, who: &Principal, path: &FilePath) -> Result<FileId> {
        self.check_not_in_tree(path)?;
        let file = self.file(path)?;
        rules.check(who, &file, Access::Write, "remove")?;
        self.discard(&file.id);
        Ok(file.id)
    }

    pub fn set_mode(&mut self, rules: &Rules, who: &Principal, path: &FilePath, mode: Mode) -> Result<()> {
        self.check_not_in_tree(path)?;
        let file = self.file(path)?;
        rules.check_owner(who, &file.owner, path, "change the mode of")?;
        self.change(&file.id, |file| file.mode = mode);
        Ok(())
    }

    pub fn rename(&mut self, rules: &Rules, who: &Principal, from: &str, to: &str) -> Result<MoveOutcome> {
        let source = DirPath::parse(from)?;
        if source.is_root() {
            return Err(NamespaceError::invalid("/ is not moved", "name a file or a directory in it"));
        }
        let source = FilePath::parse(source.as_str())?;
        let destination = DirPath::parse(to)?;
        let file = self.file(&source).ok().filter(|_| !from.ends_with('/'));
        if file.is_none() {
            self.check_no_trees(&source)?;
            if !self.directory_exists(&DirPath::from(&source)) {
                return Err(NamespaceError::NotFound { path: source.to_string() });
            }
        }
        let target = match to.ends_with('/') || self.directory_exists(&destination) {
            true => {
                let parent = destination.as_str().trim_end_matches('/');
                FilePath::parse(&format!("{parent}/{}", source.name()))?
            }
            false => FilePath::parse(destination.as_str())?,
        };
        if target == source || destination.as_str() == source.as_str() {
            return Err(NamespaceError::same_path(&source, &destination));
        }
        let files = match file {
            Some(file) => self.move_file(rules, who, &file, &target)?,
            None => self.move_directory(rules, who, &source, &target)?,
        };
        Ok(MoveOutcome { path: target, files })
    }

    pub fn remove_all(&mut self, rules: &Rules, who: &Principal, path: &str) -> Result<Amount> {
        let dir = DirPath::parse(path)?;
        if dir.is_root() {
            let remedy = "name files or directories in it";
            return Err(NamespaceError::invalid("/ is not removed as a whole", remedy));
        }
        let at = FilePath::parse(dir.as_str())?;
        if let (false, Ok(file)) = (path.ends_with('/'), self.file(&at)) {
            rules.check(who, &file, Access::Write, "remove")?;
            self.discard(&file.id);
            return Ok(amount_of(&file));
        }
        self.check_no_trees(&at)?;
        let amount = self.amount(&dir)?;
        for id in self.changeable(rules, who, &dir, "remove")? {
            self.discard(&id);
        }
        Ok(amount)
    }

    pub fn usage(&self, path: &str) -> Result<Amount> {
        let dir = DirPath::parse(path)?;
        if !path.ends_with('/')
            && let Ok(file) = self.file(&FilePath::parse(path)?)
        {
            return Ok(amount_of(&file));
        }
        self.amount(&dir)
    }

    fn move_file(
        &mut self,
        rules: &Rules,
        who: &Principal,
        file: &FileEntry,
        target: &FilePath,
    ) -> Result<u64> {
        rules.check(who, file, Access::Write, "move")?;
        if let Some(old) = self.check_destination(rules, who, target, None)? {
            self.discard(&old.id);
        }
        self.set_path(&file.id, target);
        Ok(1)
    }

    fn move_directory(
        &mut self,
        rules: &Rules,
        who: &Principal,
        source: &FilePath,
        target: &FilePath,
    ) -> Result<u64> {
        let from = DirPath::from(source);
        if target.key().starts_with(&from.prefix()) {
            return Err(NamespaceError::into_itself(source, target));
        }
        self.check_not_in_tree(target)?;
        if self.at(target).is_some() {
            return Err(NamespaceError::onto_file(source, target));
        }
        if let Some(parent) = self.file_above(target) {
            return Err(conflict(target, PathConflict::ParentIsFile(parent)));
        }
        if self.directory_exists(&DirPath::from(target)) {
            return Err(conflict(target, PathConflict::IsDirectory));
        }
        let ids = self.changeable(rules, who, &from, "move")?;
        let mut moved = Vec::with_capacity(ids.len());
        for (_, file) in self.files_in(&from) {
            let below = file.path.as_str().strip_prefix(source.as_str()).unwrap_or_default();
            let path = format!("{target}{below}");
            if path.len() > MAX_PATH_BYTES {
                let path = crate::error::shorten(target.as_str());
                return Err(NamespaceError::InvalidPath { path, why: PathFault::TooLong });
            }
            moved.push((file.id.clone(), FilePath::parse(&path)?));
        }
        for (id, path) in &moved {
            self.set_path(id, path);
        }
        Ok(moved.len() as u64)
    }

    /// Number and size of all files of a directory.
    fn amount(&self, dir: &DirPath) -> Result<Amount> {
        let mut all = Amount { files: 0, bytes: 0, changed: SystemTime::UNIX_EPOCH, directory: true };
        for (_, file) in self.files_in(dir) {
            all.files += 1;
            all.bytes = all.bytes.saturating_add(file.length);
            all.changed = all.changed.max(file.created);
        }
        if all.files == 0 && !dir.is_root() && !self.directory_exists(dir) {
            return Err(NamespaceError::NotFound { path: dir.to_string() });
        }
        Ok(all)
    }

    /// The files of a directory, if they are not too many and `who` may write each of them.
    fn changeable(
        &self,
        rules: &Rules,
        who: &Principal,
        dir: &DirPath,
        verb: &'static str,
    ) -> Result<Vec<FileId>> {
        let mut ids = Vec::new();
        for (_, file) in self.files_in(dir) {
            if ids.len() as u64 >= MAX_CHANGED_AT_ONCE {
                let (what, limit) = ("files in the directory to change at once", MAX_CHANGED_AT_ONCE);
                return Err(NamespaceError::TooMany { what, limit });
            }
            rules.check(who, file, Access::Write, verb)?;
            ids.push(file.id.clone());
        }
        Ok(ids)
    }

    /// Refuses a change of a whole directory that has trees in it, or lies in one.
    fn check_no_trees(&self, path: &FilePath) -> Result<()> {
        self.check_not_in_tree(path)?;
        match self.trees_in(&DirPath::from(path)).next() {
            Some((_, tree)) => Err(conflict(path, PathConflict::HasTree(tree.path.clone()))),
            None => Ok(()),
        }
    }

    fn change(&mut self, id: &FileId, change: impl FnOnce(&mut FileEntry)) {
        if let Some(file) = self.by_id.get(id).and_then(|n| self.puts.get_mut(n)?.file.as_mut()) {
            change(file);
        }
    }

    fn set_path(&mut self, id: &FileId, path: &FilePath) {
        let Some(n) = self.by_id.get(id).copied() else { return };
        let Some(file) = self.puts.get_mut(&n).and_then(|put| put.file.as_mut()) else { return };
        self.files.remove(&file.path.key());
        file.path = path.clone();
        self.files.insert(path.key(), n);
    }
}

fn amount_of(file: &FileEntry) -> Amount {
    Amount { files: 1, bytes: file.length, changed: file.created, directory: false }
}
