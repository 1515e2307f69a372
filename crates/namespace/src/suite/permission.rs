//! Permissions of users for files.

use super::Make;
use super::cluster::{Cluster, MINUTE, cluster, file, file_with_mode, mode, path, who};
use crate::{Access, NamespaceError, Result};

fn denied<T: std::fmt::Debug>(result: Result<T>) -> bool {
    match result {
        Ok(_) => false,
        Err(error @ NamespaceError::Denied { .. }) => {
            assert!(error.is_usage());
            true
        }
        Err(other) => panic!("{other}"),
    }
}

/// Whether these are denied to `name`: a lookup to read, a lookup to write, a put, and a removal.
fn kept_from(cluster: &Cluster, name: &str, at: &str) -> [bool; 4] {
    let (who, at) = (who(name), path(at));
    let begun = cluster.namespace.begin(&who, &file(at.as_str()), MINUTE);
    [
        denied(cluster.namespace.lookup(&who, &at, Access::Read)),
        denied(cluster.namespace.lookup(&who, &at, Access::Write)),
        denied(begun),
        denied(cluster.namespace.remove(&who, &at)),
    ]
}

pub fn the_bits_of_owner_and_others_decide(make: Make<'_>) {
    let cluster = cluster(make);
    for (bits, owner, other) in [
        ("600", [false, false], [true, true]),
        ("644", [false, false], [false, true]),
        ("606", [false, false], [false, false]),
        ("602", [false, false], [true, false]),
        ("404", [false, true], [false, true]),
        ("006", [true, true], [false, false]),
        ("070", [true, true], [true, true]),
    ] {
        for (name, [read, write]) in [("alice", owner), ("bob", other), ("anonymous", other)] {
            let id = cluster.put("alice", &file_with_mode("/a", bits)).unwrap();
            assert_eq!(kept_from(&cluster, name, "/a"), [read, write, write, write], "{name} {bits}");
            if write {
                let entry = cluster.namespace.lookup(&who("root"), &path("/a"), Access::Read).unwrap();
                assert_eq!(entry.id, id, "a refusal changes nothing");
                cluster.namespace.remove(&who("root"), &path("/a")).unwrap();
            }
        }
        for name in ["root", "uid:0", "boss"] {
            cluster.put("alice", &file_with_mode("/a", bits)).unwrap();
            assert_eq!(kept_from(&cluster, name, "/a"), [false; 4], "{name} {bits}");
        }
    }
}

pub fn an_unreadable_file_is_denied_and_not_hidden(make: Make<'_>) {
    let cluster = cluster(make);
    cluster.put("alice", &file_with_mode("/dir/a", "600")).unwrap();
    let error = cluster.namespace.lookup(&who("bob"), &path("/dir/a"), Access::Read).unwrap_err();
    assert!(matches!(
        &error,
        NamespaceError::Denied { who: named, path: at, verb: "read" }
            if *named == who("bob") && *at == path("/dir/a")
    ));
    assert_eq!(error.to_string().split(':').next(), Some("bob may not read /dir/a"));
    assert_eq!(cluster.names("/dir", None, 10).unwrap(), ["a"]);
}

pub fn only_the_owner_changes_the_mode(make: Make<'_>) {
    let cluster = cluster(make);
    cluster.put("alice", &file_with_mode("/a", "606")).unwrap();
    let set = |name, bits| cluster.namespace.set_mode(&who(name), &path("/a"), mode(bits));
    let now = || cluster.namespace.lookup(&who("root"), &path("/a"), Access::Read).unwrap().mode;
    assert!(denied(set("bob", "600")));
    // A replacement by another file does not change the mode either.
    assert!(denied(cluster.put("bob", &file_with_mode("/a", "600"))));
    assert_eq!(now(), mode("606"));
    cluster.put("bob", &file_with_mode("/a", "606")).unwrap();
    for (name, bits) in [("alice", "000"), ("alice", "640"), ("root", "604"), ("boss", "666")] {
        set(name, bits).unwrap();
        assert_eq!(now(), mode(bits));
    }
    cluster.put("alice", &file_with_mode("/a", "600")).unwrap();
    assert_eq!(now(), mode("600"));
    let missing = cluster.namespace.set_mode(&who("root"), &path("/b"), mode("600"));
    assert!(matches!(missing, Err(NamespaceError::NotFound { .. })));
}

pub fn the_default_mode_lets_others_read(make: Make<'_>) {
    let cluster = cluster(make);
    cluster.put("alice", &file("/a")).unwrap();
    assert_eq!(kept_from(&cluster, "bob", "/a"), [false, true, true, true]);
    assert_eq!(cluster.namespace.lookup(&who("alice"), &path("/a"), Access::Read).unwrap().mode, mode("644"));
}

pub fn a_put_belongs_to_the_user_that_began_it(make: Make<'_>) {
    let cluster = cluster(make);
    let id = cluster.begin("alice", "/a").unwrap();
    let (bob, boss) = (who("bob"), who("boss"));
    assert!(denied(cluster.namespace.renew(&bob, &id, MINUTE)));
    assert!(denied(cluster.namespace.abandon(&bob, &id)));
    assert!(denied(cluster.namespace.commit(&bob, &id, 1, &[1, 2])));
    cluster.namespace.renew(&boss, &id, MINUTE).unwrap();
    let done = cluster.namespace.commit(&boss, &id, 1, &[1, 2]).unwrap();
    assert_eq!(done.file.owner, who("alice"));
    let id = cluster.begin("alice", "/b").unwrap();
    cluster.namespace.abandon(&boss, &id).unwrap();
    assert_eq!(cluster.garbage(), [id]);
}

pub fn permission_is_checked_again_at_the_commit(make: Make<'_>) {
    let cluster = cluster(make);
    cluster.put("alice", &file_with_mode("/a", "606")).unwrap();
    let (plain, same) = (file("/a"), file_with_mode("/a", "606"));
    let begin = |file| cluster.namespace.begin(&who("bob"), file, MINUTE).unwrap();
    let ids = [begin(&plain), begin(&same)];
    let commit = |id| cluster.namespace.commit(&who("bob"), id, 1, &[1, 2]);
    let set = |bits| cluster.namespace.set_mode(&who("alice"), &path("/a"), mode(bits)).unwrap();
    set("604");
    assert!(ids.iter().all(|id| denied(commit(id))));
    set("666");
    assert!(denied(commit(&ids[1])), "it would change the mode");
    assert_eq!(commit(&ids[0]).unwrap().file.mode, mode("666"));

    // A file of another user has appeared at the path meanwhile.
    let id = cluster.begin("bob", "/b").unwrap();
    cluster.put("alice", &file("/b")).unwrap();
    assert!(denied(commit(&id)));
}
