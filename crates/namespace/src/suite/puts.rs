//! Puts: begin, renew, commit, abandon, and their garbage.

use std::time::{Duration, SystemTime};

use super::Make;
use super::cluster::{MINUTE, NO_TIME, cluster, file, file_with_mode, mode, path, who};
use crate::{
    Access, Attempt, FileEntry, Garbage, MAX_FILE_BYTES, MAX_LEASE, MAX_UNFINISHED, NamespaceError, NewFile,
    PathConflict,
};

pub fn a_committed_file_is_found_as_it_was_put_also_after_a_restart(make: Make<'_>) {
    let cluster = cluster(make);
    let (alice, new) =
        (who("alice"), NewFile { record: Some(80), segments: true, mode: Some(mode("604")), ..file("/a/b") });
    let before = SystemTime::now();
    let id = cluster.namespace.begin(&alice, &new, MINUTE).unwrap();
    let done = cluster.namespace.commit(&alice, &id, MAX_FILE_BYTES, &[u64::MAX, 0]).unwrap();
    assert_eq!(done.replaced, None);
    assert!(done.file.created >= before && done.file.created <= SystemTime::now());
    let expected = FileEntry {
        id,
        path: path("/a/b"),
        owner: alice.clone(),
        mode: mode("604"),
        length: MAX_FILE_BYTES,
        unit: 4_096,
        first: 1,
        targets: vec![2, 0],
        record: Some(80),
        segments: true,
        versions: vec![u64::MAX, 0],
        created: done.file.created,
    };
    assert_eq!(done.file, expected);
    let cluster = cluster.reopen();
    assert_eq!(cluster.namespace.lookup(&alice, &path("/a/b"), Access::Write).unwrap(), expected);
    assert_eq!(cluster.garbage(), []);
}

pub fn an_attempt_is_durable_and_unseen_until_it_is_committed(make: Make<'_>) {
    let cluster = cluster(make);
    let id = cluster.begin("alice", "/a/b").unwrap();
    let cluster = cluster.reopen();
    let (unit, first, targets) = (4_096, 1, vec![2, 0]);
    let expected = Attempt {
        path: path("/a/b"),
        who: who("alice"),
        unit,
        first,
        targets,
        record: None,
        segments: false,
        committed: false,
    };
    assert_eq!(cluster.namespace.attempt(&id).unwrap(), expected);
    let unseen = cluster.namespace.lookup(&who("alice"), &path("/a/b"), Access::Read);
    assert!(matches!(unseen, Err(NamespaceError::NotFound { .. })));
    assert_eq!(cluster.names("/", None, 10).unwrap(), [""; 0]);
    cluster.namespace.commit(&who("alice"), &id, 1, &[1, 2]).unwrap();
    assert_eq!(cluster.namespace.attempt(&id).unwrap(), Attempt { committed: true, ..expected });
}

pub fn a_new_file_takes_the_place_of_the_old_one_which_becomes_garbage(make: Make<'_>) {
    let cluster = cluster(make);
    let old = cluster.put("alice", &file_with_mode("/a", "606")).unwrap();
    let id = cluster.begin("bob", "/a").unwrap();
    assert_eq!(cluster.namespace.lookup(&who("bob"), &path("/a"), Access::Read).unwrap().id, old);
    let done = cluster.namespace.commit(&who("bob"), &id, 7, &[1, 2]).unwrap();
    assert_eq!(done.replaced, Some(old.clone()));
    // The owner and the mode are those of the replaced file.
    assert_eq!((done.file.owner.as_str(), done.file.mode), ("alice", mode("606")));
    assert_eq!(cluster.namespace.lookup(&who("bob"), &path("/a"), Access::Read).unwrap(), done.file);
    let garbage = cluster.namespace.garbage(10).unwrap();
    assert_eq!(garbage, [Garbage { id: old, targets: vec![2, 0] }]);
}

pub fn a_repeated_commit_has_the_same_answer_until_it_is_collected(make: Make<'_>) {
    let cluster = cluster(make);
    let (alice, bob, root) = (who("alice"), who("bob"), who("root"));
    let old = cluster.put("alice", &file_with_mode("/a", "606")).unwrap();
    let id = cluster.begin("bob", "/a").unwrap();
    let first = cluster.namespace.commit(&bob, &id, 7, &[1, 2]).unwrap();
    assert_eq!(first.replaced, Some(old.clone()));
    let again = |who| cluster.namespace.commit(who, &id, 7, &[1, 2]);
    assert_eq!(again(&bob).unwrap(), first);
    assert_eq!(again(&root).unwrap(), first);
    assert!(matches!(again(&alice), Err(NamespaceError::Denied { .. })));
    for (length, versions) in [(8, vec![1, 2]), (7, vec![1, 3]), (7, vec![1])] {
        let other = cluster.namespace.commit(&bob, &id, length, &versions);
        assert!(matches!(other, Err(NamespaceError::Invalid { .. })), "{length} {versions:?}");
    }
    let third = cluster.put("alice", &file("/a")).unwrap();
    assert_eq!(again(&bob).unwrap(), first, "also when the file is replaced");
    assert_eq!(cluster.namespace.lookup(&alice, &path("/a"), Access::Read).unwrap().id, third);
    cluster.namespace.forget_collected(&[old, id.clone()], NO_TIME).unwrap();
    assert!(matches!(again(&bob), Err(NamespaceError::UnknownAttempt { .. })));
    assert_eq!(cluster.garbage(), []);
}

pub fn an_attempt_whose_lease_ran_out_cannot_go_on_and_becomes_garbage(make: Make<'_>) {
    let cluster = cluster(make);
    let alice = who("alice");
    let id = cluster.namespace.begin(&alice, &file("/a"), NO_TIME).unwrap();
    let unknown = |result: Result<(), NamespaceError>| match result {
        Err(NamespaceError::UnknownAttempt { id: named }) => assert_eq!(named, id),
        other => panic!("{other:?}"),
    };
    let refused = || {
        unknown(cluster.namespace.commit(&alice, &id, 1, &[1, 2]).map(|_| ()));
        unknown(cluster.namespace.renew(&alice, &id, MINUTE));
        unknown(cluster.namespace.attempt(&id).map(|_| ()));
    };
    refused();
    assert_eq!(cluster.garbage(), std::slice::from_ref(&id));
    refused();
    cluster.namespace.abandon(&alice, &id).unwrap();
    cluster.namespace.forget_collected(std::slice::from_ref(&id), NO_TIME).unwrap();
    refused();
    assert_eq!(cluster.garbage(), []);
}

pub fn renewing_counts_from_now_and_may_shorten(make: Make<'_>) {
    let cluster = cluster(make);
    let alice = who("alice");
    let id = cluster.begin("alice", "/a").unwrap();
    cluster.namespace.renew(&alice, &id, MAX_LEASE).unwrap();
    assert_eq!(cluster.garbage(), []);
    let too_long = cluster.namespace.renew(&alice, &id, MAX_LEASE + Duration::from_nanos(1));
    assert!(matches!(too_long, Err(NamespaceError::Invalid { .. })));
    cluster.namespace.renew(&alice, &id, NO_TIME).unwrap();
    assert_eq!(cluster.garbage(), [id]);

    let id = cluster.put("alice", &file("/b")).unwrap();
    let committed = cluster.namespace.renew(&alice, &id, MINUTE);
    assert!(matches!(committed, Err(NamespaceError::UnknownAttempt { .. })));
}

pub fn an_abandoned_attempt_is_garbage_and_a_commit_is_not_undone(make: Make<'_>) {
    let cluster = cluster(make);
    let alice = who("alice");
    let id = cluster.begin("alice", "/a").unwrap();
    cluster.namespace.abandon(&alice, &id).unwrap();
    cluster.namespace.abandon(&alice, &id).unwrap();
    let late = cluster.namespace.commit(&alice, &id, 1, &[1, 2]);
    assert!(matches!(late, Err(NamespaceError::UnknownAttempt { .. })));
    assert_eq!(cluster.garbage(), std::slice::from_ref(&id));

    let done = cluster.put("alice", &file("/a")).unwrap();
    cluster.namespace.abandon(&alice, &done).unwrap();
    assert_eq!(cluster.namespace.lookup(&alice, &path("/a"), Access::Read).unwrap().id, done);
    assert_eq!(cluster.garbage(), [id]);
}

pub fn an_invalid_file_is_refused_before_its_put_begins(make: Make<'_>) {
    let cluster = cluster(make);
    let begin = |change: &dyn Fn(&mut NewFile)| {
        let mut file = file("/a");
        change(&mut file);
        cluster.namespace.begin(&who("alice"), &file, MINUTE).map(|_| ())
    };
    let changes: [&dyn Fn(&mut NewFile); 8] = [
        &|file| file.targets.clear(),
        &|file| file.targets = vec![1, 2, 1],
        &|file| file.unit = 0,
        &|file| file.unit = MAX_FILE_BYTES + 1,
        &|file| file.record = Some(0),
        &|file| file.record = Some(u64::MAX),
        &|file| file.first = 2,
        &|file| file.first = u32::MAX,
    ];
    for (n, change) in changes.into_iter().enumerate() {
        assert!(matches!(begin(change), Err(NamespaceError::Invalid { .. })), "change {n}");
    }
    let stranger = begin(&|file| file.targets = vec![0, 3]);
    assert!(matches!(stranger, Err(NamespaceError::UnknownTarget { number: 3 })));
    let many = begin(&|file| file.targets = (0..1_025).collect());
    assert!(matches!(many, Err(NamespaceError::TooMany { limit: 1_024, .. })));
    let lease = cluster.namespace.begin(&who("alice"), &file("/a"), MAX_LEASE + Duration::from_secs(1));
    assert!(matches!(lease, Err(NamespaceError::Invalid { .. })));
    // No refused put left an attempt.
    begin(&|_| ()).unwrap();
    assert_eq!(cluster.garbage(), []);

    let id = cluster.begin("alice", "/a").unwrap();
    for (length, versions) in
        [(1, vec![1]), (1, vec![1, 2, 3]), (1, vec![]), (MAX_FILE_BYTES + 1, vec![1, 2])]
    {
        let refused = cluster.namespace.commit(&who("alice"), &id, length, &versions);
        assert!(matches!(refused, Err(NamespaceError::Invalid { .. })), "{length} {versions:?}");
    }
    cluster.namespace.commit(&who("alice"), &id, 0, &[0, 0]).unwrap();
}

pub fn a_path_is_never_both_file_and_directory(make: Make<'_>) {
    let cluster = cluster(make);
    let conflict = |at: &str| match cluster.begin("alice", at) {
        Err(NamespaceError::Conflict { path: named, conflict }) => {
            assert_eq!(named, path(at));
            Some(conflict)
        }
        other => other.map(|_| None).unwrap(),
    };
    // Attempts do not conflict with each other. The first commit decides.
    let (dir, deep) = (cluster.begin("alice", "/a").unwrap(), cluster.begin("alice", "/a/b/c").unwrap());
    cluster.put("alice", &file("/a/b")).unwrap();
    let commit = |id| cluster.namespace.commit(&who("alice"), id, 1, &[1, 2]).map(|done| done.file.path);
    assert!(matches!(
        commit(&dir),
        Err(NamespaceError::Conflict { conflict: PathConflict::IsDirectory, .. })
    ));
    assert!(
        matches!(commit(&deep), Err(NamespaceError::Conflict { conflict: PathConflict::ParentIsFile(parent), .. }) if parent == path("/a/b"))
    );
    // Files with keys near that of the file change nothing.
    for near in ["/a/b!", "/a/b.x", "/a/a", "/a-b", "/a!/b"] {
        cluster.put("alice", &file(near)).unwrap();
    }
    assert_eq!(conflict("/a"), Some(PathConflict::IsDirectory));
    assert_eq!(conflict("/a/b/c"), Some(PathConflict::ParentIsFile(path("/a/b"))));
    assert_eq!(conflict("/a/b/c/d/e"), Some(PathConflict::ParentIsFile(path("/a/b"))));
    for free in ["/a/b", "/a/bc", "/a/b!/c", "/a/b-/c", "/ab", "/b/a"].iter().filter(|at| **at != "/a/b!/c") {
        assert_eq!(conflict(free), None, "{free}");
    }
    assert_eq!(conflict("/a/b!/c"), Some(PathConflict::ParentIsFile(path("/a/b!"))));
    // A refused commit does not change the attempt.
    cluster.namespace.remove(&who("alice"), &path("/a/b")).unwrap();
    assert_eq!(commit(&deep).unwrap(), path("/a/b/c"));
    for at in ["/a/b/c", "/a/b!", "/a/b.x", "/a/a"] {
        cluster.namespace.remove(&who("alice"), &path(at)).unwrap();
    }
    assert_eq!(commit(&dir).unwrap(), path("/a"));
}

pub fn unfinished_puts_of_a_user_are_bounded(make: Make<'_>) {
    let cluster = cluster(make);
    let (alice, bob, new) = (who("alice"), who("bob"), file("/a"));
    let begin = || cluster.namespace.queue_begin(&alice, &new, MINUTE).unwrap();
    let mut begun = Vec::new();
    while begun.len() < MAX_UNFINISHED as usize {
        let some: Vec<_> = (0..256).map(|_| begin()).collect();
        begun.extend(some.into_iter().map(|id| id.wait().unwrap()));
    }
    let refused = || cluster.namespace.begin(&alice, &new, MINUTE).unwrap_err();
    assert!(matches!(refused(), NamespaceError::TooManyPuts { .. }), "{}", refused());
    assert!(!refused().is_usage());
    cluster.namespace.begin(&bob, &new, MINUTE).unwrap();
    // An abandoned put counts until it is collected. A finished put does not count.
    cluster.namespace.abandon(&alice, &begun[0]).unwrap();
    refused();
    cluster.namespace.forget_collected(&begun[..1], Duration::ZERO).unwrap();
    begun.push(cluster.namespace.begin(&alice, &new, MINUTE).unwrap());
    refused();
    cluster.namespace.commit(&alice, &begun[1], 0, &[0, 0]).unwrap();
    cluster.namespace.begin(&alice, &new, MINUTE).unwrap();
}
