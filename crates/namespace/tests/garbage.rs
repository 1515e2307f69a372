//! Garbage: given out in turn, and forgotten when it is collected for good.
#![allow(clippy::unwrap_used, reason = "a test: a panic is a failure")]

mod cluster;

use std::time::{Duration, SystemTime};

use cluster::{OVER, cluster, file, path, who};
use gristmill_namespace::{Access, Garbage, MAX_LEASE, NamespaceError};

#[test]
fn garbage_is_given_out_in_turn_until_it_is_collected() {
    let cluster = cluster();
    let ids: Vec<_> =
        (0..5).map(|_| cluster.namespace.begin(&who("alice"), &file("/a"), OVER).unwrap()).collect();
    let live = cluster.put("alice", &file("/a")).unwrap();
    let page = || cluster.namespace.garbage(2).unwrap().into_iter().map(|found| found.id).collect::<Vec<_>>();
    assert_eq!(page(), ids[0..2]);
    assert_eq!(page(), ids[2..4]);
    assert_eq!(page(), [ids[4].clone(), ids[0].clone()]);
    // Neither a file nor an attempt in progress is forgotten by mistake.
    let going = cluster.begin("alice", "/b").unwrap();
    cluster.namespace.collected(&[ids[1].clone(), live.clone(), going.clone()], OVER).unwrap();
    cluster.namespace.collected(&[ids[1].clone()], OVER).unwrap();
    assert_eq!(page(), ids[2..4]);
    assert_eq!(cluster.garbage().len(), 4);
    assert_eq!(cluster.namespace.garbage(0).unwrap(), []);
    assert_eq!(cluster.namespace.lookup(&who("alice"), &path("/a"), Access::Read).unwrap().id, live);
    assert!(!cluster.namespace.attempt(&going).unwrap().committed);
    let many = vec![live; gristmill_namespace::MAX_COLLECTED + 1];
    assert!(matches!(cluster.namespace.collected(&many, OVER), Err(NamespaceError::TooMany { .. })));
}

#[test]
fn what_may_be_written_again_is_garbage_once_more_when_that_is_over() {
    let cluster = cluster();
    let alice = who("alice");
    let given_up = cluster.begin("alice", "/a").unwrap();
    cluster.namespace.abandon(&alice, &given_up).unwrap();
    let removed = cluster.put("alice", &file("/b")).unwrap();
    cluster.namespace.remove(&alice, &path("/b")).unwrap();
    for id in [&given_up, &removed] {
        cluster.namespace.collected(std::slice::from_ref(id), MAX_LEASE).unwrap();
        // Until then it is as if it never was.
        let commit = cluster.namespace.commit(&alice, id, 100, &[5, 6]);
        assert!(matches!(commit, Err(NamespaceError::UnknownAttempt { .. })), "{commit:?}");
        assert!(matches!(cluster.namespace.attempt(id), Err(NamespaceError::UnknownAttempt { .. })));
    }
    assert_eq!(cluster.garbage(), []);
    let cluster = cluster.reopen();
    assert_eq!(cluster.garbage(), []);

    let short = Duration::from_nanos(1);
    let id = cluster.begin("alice", "/c").unwrap();
    cluster.namespace.abandon(&alice, &id).unwrap();
    cluster.namespace.collected(std::slice::from_ref(&id), short).unwrap();
    let cluster = cluster.reopen();
    let again = cluster.namespace.garbage(10).unwrap();
    assert_eq!(again, [Garbage { id: id.clone(), targets: vec![2, 0] }]);
    // Whatever is said of the time: it is over.
    cluster.namespace.collected(&[id], MAX_LEASE).unwrap();
    assert_eq!(cluster.garbage(), []);
    let too_long = cluster.namespace.collected(&[], MAX_LEASE + short);
    assert!(matches!(too_long, Err(NamespaceError::Invalid { .. })));
}

#[test]
fn a_file_put_long_ago_is_forgotten_at_once() {
    let cluster = cluster();
    let id = cluster.put("alice", &file("/a")).unwrap();
    let put = cluster.namespace.lookup(&who("alice"), &path("/a"), Access::Read).unwrap().created;
    cluster.namespace.remove(&who("alice"), &path("/a")).unwrap();
    let cluster = cluster.reopen();
    // Longer ago than its objects could be written.
    let writable = SystemTime::now().duration_since(put).unwrap() / 2;
    cluster.namespace.collected(std::slice::from_ref(&id), writable).unwrap();
    assert_eq!(cluster.garbage(), []);
}
