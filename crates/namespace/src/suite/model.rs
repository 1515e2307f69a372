//! Random operations against a model in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;

use super::Make;
use super::cluster::{Cluster, MINUTE, NO_TIME, cluster, file, mode, path, who};
use crate::{Access, FileId, FilePath, NamespaceError, NewFile, PathConflict};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

const PATHS: [&str; 9] = ["/a", "/a/b", "/a/b/c", "/a-b", "/a/b.c", "/b", "/a/c", "/a!/b", "/b/a/d"];
const USERS: [&str; 3] = ["alice", "bob", "root"];
const MODES: [&str; 4] = ["600", "644", "606", "444"];

#[derive(Debug, Clone)]
enum Op {
    Begin { user: usize, path: usize, mode: Option<usize>, expired: bool },
    Commit { user: usize, attempt: usize },
    Abandon { user: usize, attempt: usize },
    Remove { user: usize, path: usize },
    SetMode { user: usize, path: usize, mode: usize },
    Lookup { user: usize, path: usize, write: bool },
    List { path: Option<usize>, after: Option<usize>, limit: usize },
    Collect,
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    let (user, path, attempt) = (0..USERS.len(), 0..PATHS.len(), 0..6usize);
    let bits = 0..MODES.len();
    prop_oneof![
        6 => (user.clone(), path.clone(), prop::option::of(bits.clone()), prop::bool::weighted(0.1))
            .prop_map(|(user, path, mode, expired)| Op::Begin { user, path, mode, expired }),
        6 => (user.clone(), attempt.clone()).prop_map(|(user, attempt)| Op::Commit { user, attempt }),
        1 => (user.clone(), attempt).prop_map(|(user, attempt)| Op::Abandon { user, attempt }),
        2 => (user.clone(), path.clone()).prop_map(|(user, path)| Op::Remove { user, path }),
        1 => (user.clone(), path.clone(), bits).prop_map(|(user, path, mode)| Op::SetMode { user, path, mode }),
        2 => (user, path.clone(), any::<bool>())
            .prop_map(|(user, path, write)| Op::Lookup { user, path, write }),
        3 => (prop::option::of(path.clone()), prop::option::of(path), 1..4usize)
            .prop_map(|(path, after, limit)| Op::List { path, after, limit }),
        1 => Just(Op::Collect),
        1 => Just(Op::Reopen),
    ]
}

#[derive(Debug, Clone)]
struct Put {
    id: FileId,
    who: &'static str,
    path: &'static str,
    mode: Option<&'static str>,
    state: State,
}

#[derive(Debug, Clone, PartialEq)]
enum State {
    Going,
    Committed,
    Gone,
}

#[derive(Debug, Clone, PartialEq)]
struct Live {
    id: FileId,
    owner: &'static str,
    mode: &'static str,
}

#[derive(Default)]
struct Model {
    files: BTreeMap<&'static str, Live>,
    puts: Vec<Put>,
    garbage: BTreeSet<FileId>,
}

fn denied() -> NamespaceError {
    NamespaceError::Denied { who: who("x"), path: path("/x"), verb: "x" }
}

fn not_found() -> NamespaceError {
    NamespaceError::NotFound { path: String::new() }
}

impl Model {
    fn may(user: &str, file: &Live, write: bool) -> bool {
        let bits: Vec<u32> = file.mode.chars().map(|digit| digit.to_digit(8).unwrap()).collect();
        let digit = if user == file.owner { bits[0] } else { bits[2] };
        user == "root" || digit & (if write { 2 } else { 4 }) != 0
    }

    fn check(&self, user: &str, at: &str, mode: Option<&str>) -> Result<(), NamespaceError> {
        if let Some(file) = self.files.get(at) {
            let owns = user == "root" || user == file.owner;
            let keeps = mode.is_none_or(|mode| mode == file.mode);
            return if Self::may(user, file, true) && (owns || keeps) { Ok(()) } else { Err(denied()) };
        }
        let below = |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.starts_with('/'));
        let parent = self.files.keys().find(|other| below(at, other));
        let conflict = match parent {
            Some(parent) => PathConflict::ParentIsFile(path(parent)),
            None if self.files.keys().any(|other| below(other, at)) => PathConflict::IsDirectory,
            None => return Ok(()),
        };
        Err(NamespaceError::Conflict { path: path(at), conflict })
    }

    fn list(&self, dir: &str, after: Option<&str>, limit: usize) -> Result<Vec<String>, NamespaceError> {
        let prefix = if dir == "/" { "/".to_owned() } else { format!("{dir}/") };
        let names: BTreeMap<&str, bool> = self
            .files
            .keys()
            .filter_map(|at| at.strip_prefix(&prefix))
            .map(|rest| rest.split_once('/').map_or((rest, false), |(name, _)| (name, true)))
            .collect();
        if names.is_empty() && dir != "/" {
            return Err(not_found());
        }
        let behind = names.into_iter().filter(|(name, _)| after.is_none_or(|after| *name > after));
        Ok(behind.take(limit).map(|(name, dir)| format!("{name}{}", if dir { "/" } else { "" })).collect())
    }
}

/// Checks that both succeed with equal values, or both fail in the same way.
fn same<T: PartialEq + std::fmt::Debug>(
    found: Result<T, NamespaceError>,
    expected: Result<T, NamespaceError>,
) -> Result<bool, TestCaseError> {
    match (found, expected) {
        (Ok(found), Ok(expected)) => {
            prop_assert_eq!(found, expected);
            Ok(true)
        }
        (
            Err(NamespaceError::Conflict { conflict: a, .. }),
            Err(NamespaceError::Conflict { conflict: b, .. }),
        ) => {
            prop_assert_eq!(a, b);
            Ok(false)
        }
        (Err(found), Err(expected)) => {
            prop_assert_eq!(discriminant(&found), discriminant(&expected), "{}", found);
            Ok(false)
        }
        (found, expected) => Err(TestCaseError::fail(format!("{found:?} instead of {expected:?}"))),
    }
}

fn step(cluster: &Cluster, model: &mut Model, op: &Op) -> Result<(), TestCaseError> {
    let namespace = &cluster.namespace;
    match *op {
        Op::Begin { user, path: at, mode: bits, expired } => {
            let (user, at, bits) = (USERS[user], PATHS[at], bits.map(|bits| MODES[bits]));
            let new = NewFile { mode: bits.map(mode), ..file(at) };
            let begun = namespace.begin(&who(user), &new, if expired { NO_TIME } else { MINUTE });
            if same(begun.as_ref().map(|_| ()).map_err(Clone::clone), model.check(user, at, bits))? {
                let id = begun.unwrap();
                if expired {
                    model.garbage.insert(id.clone());
                }
                let state = if expired { State::Gone } else { State::Going };
                model.puts.push(Put { id, who: user, path: at, mode: bits, state });
            }
        }
        Op::Commit { user, attempt } => {
            let Some(n) = model.puts.len().checked_sub(attempt + 1) else { return Ok(()) };
            let (user, put) = (USERS[user], model.puts[n].clone());
            let known = put.state != State::Gone;
            let unknown = NamespaceError::UnknownAttempt { id: put.id.clone() };
            let done = namespace.commit(&who(user), &put.id, 5, &[1, 2]);
            // A collected put is unknown to all users. Any other put is denied to other users.
            if user != "root" && user != put.who {
                let refused = matches!(
                    done,
                    Err(NamespaceError::Denied { .. } | NamespaceError::UnknownAttempt { .. })
                );
                prop_assert!(refused);
            } else if put.state == State::Committed {
                prop_assert_eq!(done.unwrap().file.id, put.id);
            } else {
                let expected = if known { model.check(user, put.path, put.mode) } else { Err(unknown) };
                let old = model.files.get(put.path).cloned();
                let replaced = expected.map(|()| old.as_ref().map(|old| old.id.clone()));
                if same(done.map(|done| done.replaced), replaced)? {
                    model.garbage.extend(old.as_ref().map(|old| old.id.clone()));
                    let owner = old.as_ref().map_or(put.who, |old| old.owner);
                    let mode = put.mode.unwrap_or(old.map_or("644", |old| old.mode));
                    model.files.insert(put.path, Live { id: put.id, owner, mode });
                    model.puts[n].state = State::Committed;
                }
            }
        }
        Op::Abandon { user, attempt } => {
            let Some(n) = model.puts.len().checked_sub(attempt + 1) else { return Ok(()) };
            let (user, put) = (USERS[user], &mut model.puts[n]);
            let going = put.state == State::Going;
            let stranger = user != "root" && user != put.who;
            let abandoned = namespace.abandon(&who(user), &put.id);
            if going && same(abandoned, if stranger { Err(denied()) } else { Ok(()) })? {
                put.state = State::Gone;
                model.garbage.insert(put.id.clone());
            }
        }
        Op::Remove { user, path: at } => {
            let (user, at) = (USERS[user], PATHS[at]);
            let expected = match model.files.get(at) {
                None => Err(not_found()),
                Some(file) if Model::may(user, file, true) => Ok(file.id.clone()),
                Some(_) => Err(denied()),
            };
            if same(namespace.remove(&who(user), &path(at)), expected)? {
                model.garbage.extend(model.files.remove(at).map(|file| file.id));
            }
        }
        Op::SetMode { user, path: at, mode: bits } => {
            let (user, at, bits) = (USERS[user], PATHS[at], MODES[bits]);
            let expected = match model.files.get_mut(at) {
                None => Err(not_found()),
                Some(file) if user == "root" || user == file.owner => {
                    file.mode = bits;
                    Ok(())
                }
                Some(_) => Err(denied()),
            };
            same(namespace.set_mode(&who(user), &path(at), mode(bits)), expected)?;
        }
        Op::Lookup { user, path: at, write } => {
            let (user, at) = (USERS[user], PATHS[at]);
            let expected = match model.files.get(at) {
                None => Err(not_found()),
                Some(file) if Model::may(user, file, write) => {
                    Ok((file.id.clone(), file.owner.to_owned(), mode(file.mode)))
                }
                Some(_) => Err(denied()),
            };
            let access = if write { Access::Write } else { Access::Read };
            let found = namespace.lookup(&who(user), &path(at), access);
            same(found.map(|file| (file.id, file.owner.to_string(), file.mode)), expected)?;
        }
        Op::List { path: at, after, limit } => {
            let dir = at.map_or("/", |at| PATHS[at]);
            let after = after.map(|at| FilePath::name(&path(PATHS[at])).to_owned());
            let expected = model.list(dir, after.as_deref(), limit);
            same(cluster.names(dir, after.as_deref(), limit), expected)?;
        }
        Op::Collect => {
            let found = cluster.garbage();
            prop_assert_eq!(&found, &model.garbage.iter().cloned().collect::<Vec<_>>());
            namespace.forget_collected(&found, NO_TIME).unwrap();
            model.garbage.clear();
            for put in &mut model.puts {
                if found.contains(&put.id) {
                    put.state = State::Gone;
                }
            }
        }
        Op::Reopen => {}
    }
    Ok(())
}

/// Random operations have the outcome that a model in memory has.
pub fn the_namespace_agrees_with_the_model(make: Make<'_>) {
    let config = ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() };
    let run = |ops: Vec<Op>| {
        let mut cluster = cluster(make);
        let mut model = Model::default();
        for op in &ops {
            if matches!(op, Op::Reopen) {
                cluster = cluster.reopen();
            }
            step(&cluster, &mut model, op)?;
        }
        step(&cluster, &mut model, &Op::Collect)?;
        for at in PATHS {
            let found = cluster.namespace.lookup(&who("root"), &path(at), Access::Read).ok();
            let expected = model.files.get(at);
            prop_assert_eq!(found.map(|file| file.id), expected.map(|file| file.id.clone()));
        }
        Ok(())
    };
    let done = TestRunner::new(config).run(&prop::collection::vec(op(), 1..60), run);
    done.unwrap_or_else(|error| panic!("{error}"));
}
