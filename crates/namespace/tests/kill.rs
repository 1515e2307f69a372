//! A process that puts files and reports each is killed at random points. Every file that it reported must be there.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test: a panic is a failure")]

mod cluster;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use cluster::{MINUTE, NO_TIME, file, open, target, who};
use gristmill_namespace::{Access, FileId, ListEntry, Namespace, NewFile};

const DIR: &str = "GRISTMILL_NAMESPACE_TEST_DIR";
const KILLS: usize = 15;
const THREADS: usize = 4;

/// All properties of the file follow from its number.
fn numbered(n: u64) -> (NewFile, u64, [u64; 2]) {
    let new = NewFile { unit: 512 + n, record: Some(n + 1), ..file(&format!("/d{}/{n}", n % 7)) };
    (new, n * 3, [n, n + 9])
}

fn put(namespace: &dyn Namespace, n: u64) -> FileId {
    let (new, length, versions) = numbered(n);
    let id = namespace.begin(&who("alice"), &new, MINUTE).unwrap();
    namespace.commit(&who("alice"), &id, length, &versions).unwrap().file.id
}

/// The child: puts numbered files without end, each number twice, and prints `put number id` after each commit. It does
/// nothing unless the parent below starts it with a directory.
#[test]
fn child_puts_until_killed() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let from: u64 = std::env::var("FROM").unwrap().parse().unwrap();
    let namespace = open(dir.as_ref());
    let out = Mutex::new(std::io::stdout());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (namespace, out) = (&namespace, &out);
            scope.spawn(move || {
                for n in (from + thread as u64..).step_by(THREADS) {
                    for _ in 0..2 {
                        let id = put(namespace, n);
                        let mut out = out.lock().unwrap();
                        writeln!(out, "\nput {n} {id}").unwrap();
                        out.flush().unwrap();
                    }
                }
            });
        }
    });
}

#[test]
fn kill_at_any_point_loses_no_acknowledged_file() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("entry");
    let namespace = open(&dir);
    for n in 0..3 {
        namespace.join(&target(n), &format!("node{n}:7070"), true).unwrap();
    }
    drop(namespace);
    let (mut from, mut acknowledged) = (0, BTreeSet::new());
    for kill in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child_puts_until_killed", "--exact", "--nocapture"])
            .env(DIR, &dir)
            .env("FROM", from.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // The kill may cut the last line. Then its id is not valid and does not count.
        let report = |line: &str| -> Option<(u64, FileId)> {
            let (n, id) = line.strip_prefix("put ")?.split_once(' ')?;
            Some((n.parse().unwrap(), id.parse().ok()?))
        };
        let mut reports = Vec::new();
        while reports.len() < kill * 7 % 40 + 1 {
            reports.extend(report(&lines.next().expect("the child ended by itself").unwrap()));
        }
        child.kill().unwrap();
        reports.extend(lines.map_while(Result::ok).filter_map(|line| report(&line)));
        child.wait().unwrap();

        let namespace = open(&dir);
        let garbage: Vec<_> = namespace.garbage(1_000).unwrap().into_iter().map(|found| found.id).collect();
        for (n, id) in &reports {
            let (new, length, versions) = numbered(*n);
            let found = namespace.lookup(&who("alice"), &new.path, Access::Write).unwrap();
            assert!(found.id == *id || garbage.contains(id), "put {n} {id} is neither a file nor replaced");
            assert_eq!((found.length, &found.versions[..]), (length, &versions[..]));
            from = from.max(n + THREADS as u64);
        }
        // A file that was not reported is complete or not there.
        for dir in namespace.list(&"/".parse().unwrap(), None, 1_000).unwrap() {
            let at = format!("/{}", dir.name()).parse().unwrap();
            for entry in namespace.list(&at, None, 1_000).unwrap() {
                let ListEntry::File(found) = entry else { panic!("a directory in {at}") };
                let n: u64 = found.path.name().parse().unwrap();
                let (new, length, versions) = numbered(n);
                assert_eq!(found.path, new.path);
                assert_eq!((found.unit, found.record, found.targets), (new.unit, new.record, new.targets));
                assert_eq!((found.length, &found.versions[..]), (length, &versions[..]));
                assert!(!garbage.contains(&found.id));
                from = from.max(n + THREADS as u64);
            }
        }
        namespace.forget_collected(&garbage, NO_TIME).unwrap();
        acknowledged.extend(reports.iter().map(|(n, _)| *n));
        for n in &acknowledged {
            namespace.lookup(&who("alice"), &numbered(*n).0.path, Access::Read).unwrap();
        }
    }
}
