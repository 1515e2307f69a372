//! Storage targets join a cluster.

use super::Make;
use super::cluster::{Cluster, NO_TIME, cluster, file, path, target, who};
use crate::{MAX_ADDRESS_BYTES, MAX_CLUSTER_TARGETS, Namespace, NamespaceError, TargetRecord};

fn record(number: u32, id: u32, address: &str) -> TargetRecord {
    TargetRecord { number, id: target(id), address: address.into(), holds_files: true }
}

pub fn numbers_follow_the_order_of_joining_and_stay(make: Make<'_>) {
    let cluster = Cluster::empty(make);
    let namespace = &cluster.namespace;
    assert_eq!(namespace.targets().unwrap(), []);
    assert_eq!(namespace.join(&target(9), "a:1", true).unwrap(), 0);
    assert_eq!(namespace.join(&target(4), "b:1", true).unwrap(), 1);
    assert_eq!(namespace.join(&target(9), "a:1", true).unwrap(), 0);
    assert_eq!(namespace.join(&target(9), "c:1", true).unwrap(), 0);
    let cluster = cluster.reopen();
    let namespace = &cluster.namespace;
    assert_eq!(namespace.join(&target(5), "a:1", true).unwrap(), 2, "an abandoned address is free");
    let expected = [record(0, 9, "c:1"), record(1, 4, "b:1"), record(2, 5, "a:1")];
    assert_eq!(namespace.targets().unwrap(), expected);
}

pub fn an_address_moves_over_only_from_a_target_without_files(make: Make<'_>) {
    let cluster = cluster(make);
    let namespace = &cluster.namespace;
    let id = cluster.put("alice", &file("/a")).unwrap();
    // Target 1 has no file, and an expired attempt does not count. Targets 0 and 2 have /a.
    namespace.begin(&who("alice"), &crate::NewFile { targets: vec![1, 0], ..file("/b") }, NO_TIME).unwrap();
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
    let lost = crate::NewFile { targets: vec![1, 0], ..file("/c") };
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

pub fn an_invalid_address_and_too_many_targets_are_refused(make: Make<'_>) {
    let cluster = Cluster::empty(make);
    let namespace = &cluster.namespace;
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

pub fn a_target_says_whether_it_holds_files(make: Make<'_>) {
    let cluster = Cluster::empty(make);
    let held = |namespace: &dyn Namespace| -> Vec<bool> {
        namespace.targets().unwrap().iter().map(|target| target.holds_files).collect()
    };
    let namespace = &*cluster.namespace;
    assert_eq!(namespace.join(&target(1), "a:1", true).unwrap(), 0);
    assert_eq!(namespace.join(&target(2), "b:1", false).unwrap(), 1);
    assert_eq!(held(namespace), [true, false]);
    assert_eq!(namespace.join(&target(2), "b:1", true).unwrap(), 1);
    assert_eq!(namespace.join(&target(1), "a:1", false).unwrap(), 0);
    assert_eq!(held(&*cluster.reopen().namespace), [false, true]);
}
