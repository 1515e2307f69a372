//! Operations on whole files and directories: move, removal and usage.

use super::Make;
use super::cluster::{Cluster, cluster, file, file_with_mode, path, who};
use crate::{Access, MAX_PATH_BYTES, NamespaceError};

fn filled(make: Make<'_>, paths: &[&str]) -> Cluster {
    let cluster = cluster(make);
    for path in paths {
        cluster.put("alice", &file(path)).unwrap();
    }
    cluster
}

fn moved(cluster: &Cluster, name: &str, from: &str, to: &str) -> Result<String, NamespaceError> {
    cluster.namespace.rename(&who(name), from, to).map(|moved| format!("{} {}", moved.path, moved.files))
}

pub fn a_moved_directory_keeps_its_files_after_a_restart(make: Make<'_>) {
    let cluster = filled(make, &["/a/x", "/a/b/y", "/a-b/z", "/a.c"]);
    let before = cluster.namespace.lookup(&who("alice"), &path("/a/b/y"), Access::Read).unwrap();
    assert_eq!(moved(&cluster, "alice", "/a", "/ü/new").unwrap(), "/ü/new 2");
    let cluster = cluster.reopen();
    let after = cluster.namespace.lookup(&who("alice"), &path("/ü/new/b/y"), Access::Read).unwrap();
    assert_eq!((&after.id, &after.owner, after.created), (&before.id, &before.owner, before.created));
    assert_eq!(cluster.names("/", None, 10).unwrap(), ["a-b/", "a.c", "ü/"]);
    // The move back is from a name with characters of several bytes.
    assert_eq!(moved(&cluster, "alice", "/ü/new/", "/a").unwrap(), "/a 2");
    assert_eq!(cluster.names("/a", None, 10).unwrap(), ["b/", "x"]);
    assert_eq!(cluster.garbage(), []);
}

pub fn files_move_into_directories_and_over_files(make: Make<'_>) {
    let cluster = filled(make, &["/a", "/b", "/d/e/f"]);
    let old = cluster.namespace.lookup(&who("alice"), &path("/b"), Access::Read).unwrap().id;
    assert_eq!(moved(&cluster, "alice", "/a", "/b").unwrap(), "/b 1");
    assert_eq!(cluster.garbage(), [old]);
    assert_eq!(moved(&cluster, "alice", "/b", "/d").unwrap(), "/d/b 1");
    assert_eq!(moved(&cluster, "alice", "/d/e", "/new/").unwrap(), "/new/e 1");
    assert_eq!(moved(&cluster, "alice", "/new/e/f", "/").unwrap(), "/f 1");
    for (from, to) in [("/d", "/d/b/x"), ("/d", "/f"), ("/f", "/f"), ("/f", "/"), ("/", "/x"), ("/f/", "/x")]
    {
        assert!(moved(&cluster, "alice", from, to).unwrap_err().is_usage(), "{from} {to}");
    }
    assert_eq!(cluster.names("/", None, 10).unwrap(), ["d/", "f"]);
}

pub fn one_denied_file_prevents_the_whole_change(make: Make<'_>) {
    let cluster = filled(make, &["/d/mine"]);
    cluster.put("alice", &file_with_mode("/d/open", "666")).unwrap();
    for error in [
        moved(&cluster, "bob", "/d", "/x").unwrap_err(),
        cluster.namespace.remove_all(&who("bob"), "/d").unwrap_err(),
        cluster.namespace.remove_all(&who("bob"), "/d/mine").unwrap_err(),
    ] {
        assert!(
            matches!(&error, NamespaceError::Denied { path, .. } if path.as_str() == "/d/mine"),
            "{error}"
        );
    }
    assert_eq!(cluster.namespace.usage("/d").unwrap().files, 2);
    assert_eq!(moved(&cluster, "bob", "/d/open", "/x").unwrap(), "/x 1");
    assert_eq!(moved(&cluster, "boss", "/d", "/e").unwrap(), "/e 1");
    let removed = cluster.namespace.remove_all(&who("alice"), "/e").unwrap();
    assert_eq!((removed.files, removed.bytes, removed.directory), (1, 100, true));
    assert_eq!(cluster.garbage().len(), 1);
    assert!(cluster.namespace.remove_all(&who("alice"), "/").unwrap_err().is_usage());
}

pub fn usage_counts_only_files_below_the_directory(make: Make<'_>) {
    let cluster = filled(make, &["/a/x", "/a/b/y", "/a-b/z"]);
    let amount = |path: &str| cluster.namespace.usage(path).map(|all| (all.files, all.bytes, all.directory));
    assert_eq!(amount("/a").unwrap(), (2, 200, true));
    assert_eq!(amount("/").unwrap(), (3, 300, true));
    assert_eq!(amount("/a/x").unwrap(), (1, 100, false));
    for absent in ["/a/x/", "/b", "/a/b/y/z"] {
        assert!(matches!(amount(absent), Err(NamespaceError::NotFound { .. })), "{absent}");
    }
}

pub fn a_move_to_too_long_paths_is_refused(make: Make<'_>) {
    let deep = format!("/a{}/f", "/abcdefg".repeat(500));
    let cluster = filled(make, &[&deep]);
    let longest = "b".repeat(MAX_PATH_BYTES - deep.len() + 1);
    assert!(longest.len() < 255);
    let too_long = moved(&cluster, "alice", "/a", &format!("/{longest}b"));
    assert!(matches!(too_long, Err(NamespaceError::InvalidPath { .. })), "{too_long:?}");
    assert_eq!(moved(&cluster, "alice", "/a", &format!("/{longest}")).unwrap(), format!("/{longest} 1"));
    assert_eq!(cluster.namespace.usage("/").unwrap().files, 1);
}
