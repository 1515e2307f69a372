//! Many threads, two handles, and damaged files.
#![allow(clippy::unwrap_used, reason = "a test: a panic is a failure")]

mod cluster;

use std::path::Path;
use std::sync::{Arc, Barrier};

use cluster::{MINUTE, NO_TIME, cluster, file, open, path, who};
use gristmill_namespace::{Access, Namespace, NamespaceError, NamespaceOptions, READERS, SqliteNamespace};

#[test]
fn commits_of_many_threads_are_all_kept() {
    const THREADS: usize = 16;
    const FILES: usize = 25;
    let (cluster, _folder) = cluster();
    let barrier = Barrier::new(THREADS);
    let ids: Vec<_> = std::thread::scope(|scope| {
        let work = |thread| {
            let (cluster, barrier) = (&cluster, &barrier);
            move || {
                barrier.wait();
                let put = |n| {
                    let at = format!("/t{}/{thread}-{n}", n % 3);
                    let id = cluster.put("alice", &file(&at)).unwrap();
                    // An acknowledged file is visible at once.
                    let found = cluster.namespace.lookup(&who("bob"), &path(&at), Access::Read);
                    assert_eq!(found.unwrap().id, id);
                    (at, id)
                };
                (0..FILES).map(put).collect::<Vec<_>>()
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(work(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let cluster = cluster.reopen();
    for (at, id) in &ids {
        assert_eq!(&cluster.namespace.lookup(&who("alice"), &path(at), Access::Read).unwrap().id, id);
    }
    let listed: usize = (0..3).map(|n| cluster.names(&format!("/t{n}"), None, 1_000).unwrap().len()).sum();
    assert_eq!(listed, THREADS * FILES);
    assert_eq!(cluster.garbage(), []);
}

#[test]
fn racing_commits_to_one_path_leave_one_file_and_one_piece_of_garbage() {
    let (cluster, _folder) = cluster();
    for round in 0..20 {
        let at = format!("/race{round}");
        let ids = [cluster.begin("alice", &at).unwrap(), cluster.begin("alice", &at).unwrap()];
        let barrier = Barrier::new(2);
        let done = std::thread::scope(|scope| {
            let threads = ids.each_ref().map(|id| {
                let (cluster, barrier) = (&cluster, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    cluster.namespace.commit(&who("alice"), id, 9, &[1, 2]).unwrap()
                })
            });
            threads.map(|thread| thread.join().unwrap())
        });
        let [first, second] = if done[0].replaced.is_none() { [0, 1] } else { [1, 0] };
        assert_eq!(
            (done[first].replaced.as_ref(), done[second].replaced.as_ref()),
            (None, Some(&ids[first]))
        );
        let found = cluster.namespace.lookup(&who("alice"), &path(&at), Access::Read).unwrap();
        assert_eq!(found, done[second].file);
        assert_eq!(cluster.garbage(), std::slice::from_ref(&ids[first]));
        cluster.namespace.forget_collected(&cluster.garbage(), NO_TIME).unwrap();
    }
}

#[test]
fn a_reader_sees_the_old_file_or_the_new_one() {
    let (cluster, _folder) = cluster();
    let mut known = vec![cluster.put("alice", &file("/a")).unwrap()];
    let start = Barrier::new(READERS + 2);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            start.wait();
            (0..50).map(|_| cluster.put("alice", &file("/a")).unwrap()).collect::<Vec<_>>()
        });
        let readers: Vec<_> = (0..READERS + 1)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    let look =
                        |_| cluster.namespace.lookup(&who("alice"), &path("/a"), Access::Read).unwrap().id;
                    (0..200).map(look).collect::<Vec<_>>()
                })
            })
            .collect();
        known.extend(writer.join().unwrap());
        for reader in readers {
            let positions = reader.join().unwrap().into_iter();
            let positions: Vec<_> =
                positions.map(|id| known.iter().position(|k| *k == id).unwrap()).collect();
            assert!(positions.is_sorted(), "an older file came back");
        }
    });
}

#[test]
fn only_one_handle_may_be_open() {
    let (cluster, folder) = cluster();
    let second = SqliteNamespace::open(folder.path()).unwrap_err();
    assert!(matches!(&second, NamespaceError::Locked { dir } if dir == folder.path()));
    assert!(!second.is_usage());
    cluster.put("alice", &file("/a")).unwrap();
    let cluster = cluster.reopen();
    assert_eq!(cluster.names("/", None, 10).unwrap(), ["a"]);
}

#[test]
fn closing_leaves_one_whole_file() {
    let (cluster, dir) = cluster();
    let id = cluster.put("alice", &file("/a")).unwrap();
    drop(cluster);
    assert!(!dir.path().join("namespace.sqlite-wal").exists());
    let copy = tempfile::tempdir().unwrap();
    std::fs::copy(dir.path().join("namespace.sqlite"), copy.path().join("namespace.sqlite")).unwrap();
    let found = open(copy.path()).lookup(&who("alice"), &path("/a"), Access::Read).unwrap();
    assert_eq!(found.id, id);
}

/// A closed namespace with the file /a, changed by `change`.
fn changed(change: impl FnOnce(&Path)) -> Arc<tempfile::TempDir> {
    let (cluster, dir) = cluster();
    cluster.put("alice", &file("/a")).unwrap();
    drop(cluster);
    change(&dir.path().join("namespace.sqlite"));
    dir
}

fn sql(statement: &'static str) -> impl FnOnce(&Path) {
    move |file| {
        let connection = rusqlite::Connection::open(file).unwrap();
        connection.execute_batch(statement).unwrap();
    }
}

#[test]
fn a_database_of_another_format_is_refused() {
    let newer = changed(sql("PRAGMA user_version = 7"));
    let error = SqliteNamespace::open(newer.path()).unwrap_err();
    assert!(matches!(error, NamespaceError::NewerFormat { found: 7, known: 6 }), "{error}");
    for (what, dir) in [
        ("text", changed(|file| std::fs::write(file, "no database at all\n".repeat(99)).unwrap())),
        ("format", changed(sql("PRAGMA user_version = 0"))),
        ("table", changed(sql("DROP TABLE files"))),
        ("index", changed(sql("DROP INDEX live_paths"))),
        ("application", changed(sql("PRAGMA application_id = 7"))),
        ("foreign", changed(sql("PRAGMA application_id = 0; PRAGMA user_version = 0"))),
    ] {
        let error = SqliteNamespace::open(dir.path()).unwrap_err();
        assert!(matches!(error, NamespaceError::Damaged { .. }), "{what}: {error}");
        assert!(!error.is_usage());
        // The refusal keeps no lock.
        let again = SqliteNamespace::open(dir.path()).unwrap_err();
        assert!(matches!(again, NamespaceError::Damaged { .. }), "{what}: {again}");
    }
    // A crash during the creation of the database leaves an empty file.
    let empty = changed(|file| std::fs::write(file, "").unwrap());
    assert_eq!(SqliteNamespace::open(empty.path()).unwrap().targets().unwrap(), []);
}

#[test]
fn an_impossible_value_is_damage_and_no_panic() {
    for statement in [
        "UPDATE files SET owner = 'no name'",
        "UPDATE files SET owner = NULL",
        "UPDATE files SET mode = 512",
        "UPDATE files SET mode = -1",
        "UPDATE files SET mode = NULL",
        "UPDATE files SET length = -1",
        "UPDATE files SET length = NULL",
        "UPDATE files SET unit = -5",
        "UPDATE files SET first = -1",
        "UPDATE files SET record = -1",
        "UPDATE files SET targets = x'0000'",
        "UPDATE files SET targets = x''",
        "UPDATE files SET versions = x'01'",
        "UPDATE files SET versions = x'0100000000000000'",
        "UPDATE files SET id = 'short'",
        "UPDATE files SET replaced = 'short'",
        "UPDATE files SET who = ''",
        "UPDATE files SET first = 2",
        "UPDATE files SET unit = 0",
        "UPDATE files SET record = 0",
        "UPDATE files SET targets = x'0100000001000000'",
    ] {
        let dir = changed(sql(statement));
        let namespace = open(dir.path());
        let error = namespace.lookup(&who("root"), &path("/a"), Access::Read).unwrap_err();
        assert!(matches!(error, NamespaceError::Damaged { .. }), "{statement}: {error}");
        let error = namespace.remove(&who("root"), &path("/a")).unwrap_err();
        assert!(matches!(error, NamespaceError::Damaged { .. }), "{statement}: {error}");
        let error = namespace.list(&"/".parse().unwrap(), None, 10).unwrap_err();
        assert!(matches!(error, NamespaceError::Damaged { .. }), "{statement}: {error}");
        namespace.begin(&who("alice"), &file("/b"), MINUTE).unwrap();
    }
    let dir = changed(sql("UPDATE targets SET id = 'x' WHERE number = 1"));
    assert!(matches!(open(dir.path()).targets(), Err(NamespaceError::Damaged { .. })));
}

#[test]
fn overwritten_pages_are_damage_and_no_panic() {
    let dir = changed(|file| {
        let mut bytes = std::fs::read(file).unwrap();
        bytes[4_096..].fill(0x5a);
        std::fs::write(file, bytes).unwrap();
    });
    let namespace = open(dir.path());
    let look = namespace.lookup(&who("root"), &path("/a"), Access::Read);
    assert!(matches!(look, Err(NamespaceError::Damaged { .. })));
    let begin = namespace.begin(&who("root"), &file("/a"), MINUTE);
    assert!(matches!(begin, Err(NamespaceError::Damaged { .. })));
}

#[test]
fn reopening_renews_the_leases_of_puts() {
    let (cluster, dir) = cluster();
    let (alice, new) = (who("alice"), file("/a"));
    let expired = cluster.namespace.begin(&alice, &new, NO_TIME).unwrap();
    drop(cluster);
    let renewed = NamespaceOptions { renew_leases: Some(MINUTE), ..NamespaceOptions::default() };
    let namespace = SqliteNamespace::open_with(dir.path(), renewed).unwrap();
    assert!(namespace.garbage(10).unwrap().is_empty());
    namespace.commit(&alice, &expired, 0, &[0, 0]).unwrap();
}
