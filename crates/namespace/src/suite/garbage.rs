//! Garbage is returned in turn, and forgotten after it is collected.

use std::time::{Duration, SystemTime};

use super::Make;
use super::cluster::{NO_TIME, cluster, file, path, who};
use crate::{Access, Garbage, MAX_LEASE, NamespaceError};

pub fn garbage_is_returned_in_turn_until_it_is_collected(make: Make<'_>) {
    let cluster = cluster(make);
    let ids: Vec<_> =
        (0..5).map(|_| cluster.namespace.begin(&who("alice"), &file("/a"), NO_TIME).unwrap()).collect();
    let live = cluster.put("alice", &file("/a")).unwrap();
    let page = || cluster.namespace.garbage(2).unwrap().into_iter().map(|found| found.id).collect::<Vec<_>>();
    assert_eq!(page(), ids[0..2]);
    assert_eq!(page(), ids[2..4]);
    assert_eq!(page(), [ids[4].clone(), ids[0].clone()]);
    // Files and attempts in progress are not forgotten by mistake.
    let going = cluster.begin("alice", "/b").unwrap();
    cluster.namespace.forget_collected(&[ids[1].clone(), live.clone(), going.clone()], NO_TIME).unwrap();
    cluster.namespace.forget_collected(&[ids[1].clone()], NO_TIME).unwrap();
    assert_eq!(page(), ids[2..4]);
    assert_eq!(cluster.garbage().len(), 4);
    assert_eq!(cluster.namespace.garbage(0).unwrap(), []);
    assert_eq!(cluster.namespace.lookup(&who("alice"), &path("/a"), Access::Read).unwrap().id, live);
    assert!(!cluster.namespace.attempt(&going).unwrap().committed);
    let many = vec![live; crate::MAX_COLLECTED + 1];
    assert!(matches!(
        cluster.namespace.forget_collected(&many, NO_TIME),
        Err(NamespaceError::TooMany { .. })
    ));
}

pub fn rewritable_objects_become_garbage_again(make: Make<'_>) {
    let cluster = cluster(make);
    let alice = who("alice");
    let given_up = cluster.begin("alice", "/a").unwrap();
    cluster.namespace.abandon(&alice, &given_up).unwrap();
    let removed = cluster.put("alice", &file("/b")).unwrap();
    cluster.namespace.remove(&alice, &path("/b")).unwrap();
    for id in [&given_up, &removed] {
        cluster.namespace.forget_collected(std::slice::from_ref(id), MAX_LEASE).unwrap();
        // Until then the put is unknown.
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
    cluster.namespace.forget_collected(std::slice::from_ref(&id), short).unwrap();
    let cluster = cluster.reopen();
    let again = cluster.namespace.garbage(10).unwrap();
    assert_eq!(again, [Garbage { id: id.clone(), targets: vec![2, 0] }]);
    // The time is over, whatever `writable` is.
    cluster.namespace.forget_collected(&[id], MAX_LEASE).unwrap();
    assert_eq!(cluster.garbage(), []);
    let too_long = cluster.namespace.forget_collected(&[], MAX_LEASE + short);
    assert!(matches!(too_long, Err(NamespaceError::Invalid { .. })));
}

pub fn a_file_put_long_ago_is_forgotten_at_once(make: Make<'_>) {
    let cluster = cluster(make);
    let id = cluster.put("alice", &file("/a")).unwrap();
    let put = cluster.namespace.lookup(&who("alice"), &path("/a"), Access::Read).unwrap().created;
    cluster.namespace.remove(&who("alice"), &path("/a")).unwrap();
    let cluster = cluster.reopen();
    // The put began before the time in which its objects may be written.
    let writable = SystemTime::now().duration_since(put).unwrap() / 2;
    cluster.namespace.forget_collected(std::slice::from_ref(&id), writable).unwrap();
    assert_eq!(cluster.garbage(), []);
}
