//! Storage targets join a cluster.
#![allow(clippy::unwrap_used, reason = "a test: a panic is a failure")]

mod cluster;

use cluster::{NO_TIME, cluster, file, open, path, target, who};
use gristmill_namespace::{MAX_ADDRESS_BYTES, MAX_CLUSTER_TARGETS, Namespace, NamespaceError, TargetRecord};

fn record(number: u32, id: u32, address: &str) -> TargetRecord {
    TargetRecord { number, id: target(id), address: address.into(), holds_files: true }
}

#[test]
fn numbers_follow_the_order_of_joining_and_stay() {
    let dir = tempfile::tempdir().unwrap();
    let namespace = open(dir.path());
    assert_eq!(namespace.targets().unwrap(), []);
    assert_eq!(namespace.join(&target(9), "a:1", true).unwrap(), 0);
    assert_eq!(namespace.join(&target(4), "b:1", true).unwrap(), 1);
    assert_eq!(namespace.join(&target(9), "a:1", true).unwrap(), 0);
    assert_eq!(namespace.join(&target(9), "c:1", true).unwrap(), 0);
    drop(namespace);
    let namespace = open(dir.path());
    assert_eq!(namespace.join(&target(5), "a:1", true).unwrap(), 2, "an abandoned address is free");
    let expected = [record(0, 9, "c:1"), record(1, 4, "b:1"), record(2, 5, "a:1")];
    assert_eq!(namespace.targets().unwrap(), expected);
}

#[test]
fn an_address_moves_over_only_from_a_target_without_files() {
    let cluster = cluster();
    let namespace = &cluster.namespace;
    let id = cluster.put("alice", &file("/a")).unwrap();
    // Target 1 has no file, and an expired attempt does not count. Targets 0 and 2 have /a.
    namespace
        .begin(&who("alice"), &gristmill_namespace::NewFile { targets: vec![1, 0], ..file("/b") }, NO_TIME)
        .unwrap();
    assert_eq!(namespace.join(&target(7), "node1:7070", true).unwrap(), 3);
    let taken = namespace.join(&target(8), "node2:7070", true);
    assert!(matches!(taken, Err(NamespaceError::AddressTaken { number: 2, .. })));
    assert!(matches!(
        namespace.join(&target(7), "node0:7070", true),
        Err(NamespaceError::AddressTaken { .. })
    ));
    let expected = [
        record(0, 0, "node0:7070"),
        record(1, 1, ""),
        record(2, 2, "node2:7070"),
        record(3, 7, "node1:7070"),
    ];
    assert_eq!(namespace.targets().unwrap(), expected);

    // Nothing can be put on a target without an address.
    let lost = gristmill_namespace::NewFile { targets: vec![1, 0], ..file("/c") };
    let begun = namespace.begin(&who("alice"), &lost, NO_TIME);
    assert!(matches!(begun, Err(NamespaceError::UnknownTarget { number: 1 })));
    assert_eq!(namespace.join(&target(1), "node9:7070", true).unwrap(), 1);
    namespace.begin(&who("alice"), &lost, NO_TIME).unwrap();

    // A put in progress keeps the address too. Garbage does not.
    let going = cluster.begin("alice", "/d").unwrap();
    assert_eq!(namespace.remove(&who("alice"), &path("/a")).unwrap(), id);
    assert!(namespace.join(&target(8), "node2:7070", true).is_err());
    namespace.abandon(&who("alice"), &going).unwrap();
    assert_eq!(namespace.join(&target(8), "node2:7070", true).unwrap(), 4);
}

#[test]
fn an_invalid_address_and_too_many_targets_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let namespace = open(dir.path());
    for bad in ["", "a b", "a\n", &"x".repeat(MAX_ADDRESS_BYTES + 1)] {
        assert!(
            matches!(namespace.join(&target(1), bad, true), Err(NamespaceError::Invalid { .. })),
            "{bad:?}"
        );
    }
    std::thread::scope(|scope| {
        for part in 0..8 {
            let namespace = &namespace;
            scope.spawn(move || {
                for n in (part..MAX_CLUSTER_TARGETS as u32).step_by(8) {
                    namespace.join(&target(n), &format!("node{n}:1"), true).unwrap();
                }
            });
        }
    });
    let more = namespace.join(&target(99_999), "more:1", true);
    assert!(matches!(more, Err(NamespaceError::TooMany { .. })));
    let targets = namespace.targets().unwrap();
    assert!(targets.iter().map(|target| target.number).eq(0..MAX_CLUSTER_TARGETS as u32));
    let (known, n) = (&targets[17], targets[17].number);
    assert_eq!(namespace.join(&known.id, "elsewhere:1", true).unwrap(), n);
}

#[test]
fn a_target_says_whether_it_holds_files() {
    let dir = tempfile::tempdir().unwrap();
    let held = |namespace: &Namespace| -> Vec<bool> {
        namespace.targets().unwrap().iter().map(|target| target.holds_files).collect()
    };
    let namespace = Namespace::open(dir.path()).unwrap();
    assert_eq!(namespace.join(&target(1), "a:1", true).unwrap(), 0);
    assert_eq!(namespace.join(&target(2), "b:1", false).unwrap(), 1);
    assert_eq!(held(&namespace), [true, false]);
    assert_eq!(namespace.join(&target(2), "b:1", true).unwrap(), 1);
    assert_eq!(namespace.join(&target(1), "a:1", false).unwrap(), 0);
    drop(namespace);
    assert_eq!(held(&Namespace::open(dir.path()).unwrap()), [false, true]);
}
