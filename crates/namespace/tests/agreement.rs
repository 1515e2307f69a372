//! The namespace in SQLite and the one in memory, which share no code for this, answer the same random operations alike.
#![allow(clippy::unwrap_used, reason = "a test: a panic is a failure")]

use std::collections::HashMap;
use std::time::Duration;

use gristmill_namespace::{
    Access, DirPath, FileId, FilePath, MemoryNamespace, Namespace, NamespaceError, NamespaceOptions, NewFile,
    Principal, SqliteNamespace,
};
use proptest::prelude::*;

const PATHS: [&str; 12] =
    ["/", "/a", "/a/", "/a/b", "/a/b/c", "/a-b", "/a/b.c", "/b", "/b/", "/a!/b", "/b/a/d", "/ü/x"];
const USERS: [&str; 3] = ["alice", "bob", "boss"];

#[derive(Debug, Clone)]
enum Op {
    Put { user: usize, path: usize, mode: u16, length: u64 },
    Begin { user: usize, path: usize },
    Commit { user: usize, attempt: usize },
    Abandon { user: usize, attempt: usize },
    Remove { user: usize, path: usize },
    RemoveAll { user: usize, path: usize },
    Rename { user: usize, from: usize, to: usize },
    SetMode { user: usize, path: usize, mode: u16 },
    Attach { user: usize, path: usize },
    Detach { user: usize, path: usize },
    Join { target: u32, address: u32, holds_files: bool },
    Collect { writable: bool },
}

fn op() -> impl Strategy<Value = Op> {
    let (user, path) = (0..USERS.len(), 0..PATHS.len());
    let mode = prop::sample::select(vec![0o600, 0o644, 0o606, 0o444, 0o666]);
    prop_oneof![
        8 => (user.clone(), path.clone(), mode.clone(), 0..9u64)
            .prop_map(|(user, path, mode, length)| Op::Put { user, path, mode, length }),
        2 => (user.clone(), path.clone()).prop_map(|(user, path)| Op::Begin { user, path }),
        2 => (user.clone(), 0..9usize).prop_map(|(user, attempt)| Op::Commit { user, attempt }),
        1 => (user.clone(), 0..9usize).prop_map(|(user, attempt)| Op::Abandon { user, attempt }),
        1 => (user.clone(), path.clone()).prop_map(|(user, path)| Op::Remove { user, path }),
        1 => (user.clone(), path.clone()).prop_map(|(user, path)| Op::RemoveAll { user, path }),
        4 => (user.clone(), path.clone(), path.clone()).prop_map(|(user, from, to)| Op::Rename { user, from, to }),
        1 => (user.clone(), path.clone(), mode).prop_map(|(user, path, mode)| Op::SetMode { user, path, mode }),
        2 => (1..USERS.len(), path.clone()).prop_map(|(user, path)| Op::Attach { user, path }),
        1 => (1..USERS.len(), path).prop_map(|(user, path)| Op::Detach { user, path }),
        1 => (0..4u32, 0..4u32, any::<bool>())
            .prop_map(|(target, address, holds_files)| Op::Join { target, address, holds_files }),
        1 => any::<bool>().prop_map(|writable| Op::Collect { writable }),
    ]
}

fn who(user: usize) -> Principal {
    USERS[user].parse().unwrap()
}

/// One namespace, with names for the ids that it chose.
struct Named<N> {
    namespace: N,
    ids: Vec<FileId>,
    names: HashMap<String, usize>,
}

impl<N: Namespace> Named<N> {
    fn new(namespace: N) -> Self {
        for n in 0..2 {
            namespace.join(&format!("{n:032x}").parse().unwrap(), &format!("node{n}:1"), true).unwrap();
        }
        Self { namespace, ids: Vec::new(), names: HashMap::new() }
    }

    /// The text without ids and times, which differ.
    fn text(&self, value: &impl std::fmt::Debug) -> String {
        let mut text = format!("{value:?}");
        for (id, name) in &self.names {
            text = text.replace(id, &format!("put {name}"));
        }
        let mut plain = String::new();
        let mut rest = text.as_str();
        while let Some((before, time)) = rest.split_once("SystemTime {") {
            plain.push_str(before);
            rest = time.split_once('}').map_or("", |(_, after)| after);
        }
        plain + rest
    }

    fn begin(&mut self, user: usize, path: &str, mode: Option<u16>) -> Result<FileId, NamespaceError> {
        let new = NewFile {
            path: FilePath::parse(path)?,
            unit: 64,
            first: 1,
            targets: vec![1, 0],
            record: None,
            segments: false,
            mode: mode.map(|mode| gristmill_namespace::Mode::new(mode).unwrap()),
        };
        let id = self.namespace.begin(&who(user), &new, Duration::from_secs(600))?;
        self.names.insert(id.as_str().to_owned(), self.ids.len());
        self.ids.push(id.clone());
        Ok(id)
    }

    /// Runs an operation, and returns its answer as a text.
    fn run(&mut self, op: &Op) -> String {
        let mode = |mode| gristmill_namespace::Mode::new(mode).unwrap();
        match *op {
            Op::Put { user, path, mode, length } => {
                let begun = self.begin(user, PATHS[path], Some(mode));
                let done = begun.and_then(|id| self.namespace.commit(&who(user), &id, length, &[1, 2]));
                self.text(&done)
            }
            Op::Begin { user, path } => {
                let begun = self.begin(user, PATHS[path], None);
                self.text(&begun)
            }
            Op::Commit { user, attempt } => {
                let Some(id) = self.ids.iter().rev().nth(attempt) else { return String::new() };
                let attempt = self.namespace.attempt(id);
                let done = self.namespace.commit(&who(user), id, 3, &[4, 5]);
                self.text(&(attempt, done))
            }
            Op::Abandon { user, attempt } => {
                let Some(id) = self.ids.iter().rev().nth(attempt) else { return String::new() };
                self.text(&self.namespace.abandon(&who(user), id))
            }
            Op::Remove { user, path } => {
                let at = FilePath::parse(PATHS[path]);
                self.text(&at.and_then(|at| self.namespace.remove(&who(user), &at)))
            }
            Op::RemoveAll { user, path } => self.text(&self.namespace.remove_all(&who(user), PATHS[path])),
            Op::Rename { user, from, to } => {
                self.text(&self.namespace.rename(&who(user), PATHS[from], PATHS[to]))
            }
            Op::SetMode { user, path, mode: bits } => {
                let at = FilePath::parse(PATHS[path]);
                self.text(&at.and_then(|at| self.namespace.set_mode(&who(user), &at, mode(bits))))
            }
            Op::Attach { user, path } => {
                let at = FilePath::parse(PATHS[path]);
                self.text(&at.and_then(|at| self.namespace.attach(&who(user), &at, "s3://b", mode(0o440))))
            }
            Op::Detach { user, path } => {
                let at = FilePath::parse(PATHS[path]);
                self.text(&at.and_then(|at| self.namespace.detach(&who(user), &at)))
            }
            Op::Join { target, address, holds_files } => {
                let id = format!("{target:032x}").parse().unwrap();
                self.text(&self.namespace.join(&id, &format!("node{address}:1"), holds_files))
            }
            Op::Collect { writable } => {
                let ids: Vec<_> =
                    self.namespace.garbage(3).unwrap().into_iter().map(|found| found.id).collect();
                let writable = if writable { Duration::from_secs(600) } else { Duration::ZERO };
                self.text(&(&ids, self.namespace.forget_collected(&ids, writable)))
            }
        }
    }

    /// Everything that one can ask.
    fn all(&self) -> String {
        let namespace = &self.namespace;
        let mut said = vec![self.text(&namespace.targets()), self.text(&namespace.trees())];
        for path in PATHS {
            let dir = DirPath::parse(path).unwrap();
            said.push(self.text(&namespace.usage(path)));
            said.push(self.text(&namespace.tree_of(&dir)));
            for (after, below) in [(None, None), (Some("a"), Some("a/b")), (Some("a!"), Some("b"))] {
                said.push(self.text(&namespace.list(&dir, after, 2)));
                said.push(self.text(&namespace.list_below(&dir, below, 3)));
            }
            let Ok(file) = FilePath::parse(path) else { continue };
            for user in 0..USERS.len() {
                let found =
                    [Access::Read, Access::Write].map(|access| namespace.lookup(&who(user), &file, access));
                said.push(self.text(&found));
            }
        }
        let mut puts: Vec<_> = namespace.named_puts(None, None, 4_096).unwrap();
        puts.sort_by_key(|put| self.names.get(put.id.as_str()).copied());
        said.push(self.text(&puts));
        said.join("\n")
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_namespaces_answer_alike(ops in prop::collection::vec(op(), 1..60)) {
        let folder = tempfile::tempdir().unwrap();
        let admin: Option<Principal> = "boss".parse().ok();
        let options = NamespaceOptions { admin: admin.clone(), ..NamespaceOptions::default() };
        let mut sqlite = Named::new(SqliteNamespace::open_with(folder.path(), options).unwrap());
        let mut memory = Named::new(MemoryNamespace::new(admin));
        for op in &ops {
            prop_assert_eq!(sqlite.run(op), memory.run(op), "{:?}", op);
        }
        prop_assert_eq!(sqlite.all(), memory.all());
    }
}
