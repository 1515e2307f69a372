//! Lists of directories in pages.

use super::Make;
use super::cluster::{Cluster, cluster, file, path, who};
use crate::{Access, DirPath, MAX_LIST_PAGE, Mode, NamespaceError};

fn with_files(make: Make<'_>, paths: &[&str]) -> Cluster {
    let cluster = cluster(make);
    for at in paths {
        cluster.put("alice", &file(at)).unwrap();
    }
    cluster
}

pub fn one_level_is_listed_in_the_order_of_names(make: Make<'_>) {
    // `-`, `.` and space come before `/`, so whole paths have another order than names.
    let cluster =
        with_files(make, &["/a-b", "/a/x", "/a/y/z", "/a.c", "/a b", "/b", "/a/x-1/q", "/ä", "/B/b", "/a0"]);
    let top = ["B/", "a/", "a b", "a-b", "a.c", "a0", "b", "ä"];
    assert_eq!(cluster.names("/", None, 100).unwrap(), top);
    assert_eq!(cluster.names("/a", None, 100).unwrap(), ["x", "x-1/", "y/"]);
    assert_eq!(cluster.names("/a/", None, 100).unwrap(), ["x", "x-1/", "y/"]);
    assert_eq!(cluster.names("/a/y", None, 100).unwrap(), ["z"]);
    for limit in 1..=top.len() {
        let (mut names, mut after) = (Vec::new(), None);
        loop {
            let page = cluster.names("/", after.as_deref(), limit).unwrap();
            assert!(page.len() <= limit);
            let Some(last) = page.last() else { break };
            after = Some(last.trim_end_matches('/').to_owned());
            names.extend(page);
        }
        assert_eq!(names, top, "pages of {limit}");
    }
    // The name to list after need not exist.
    assert_eq!(cluster.names("/", Some("a "), 2).unwrap(), ["a b", "a-b"]);
    assert_eq!(cluster.names("/", Some("ab"), 2).unwrap(), ["b", "ä"]);
    assert_eq!(cluster.names("/", None, 0).unwrap(), [""; 0]);
}

pub fn all_levels_are_listed_in_pages(make: Make<'_>) {
    let cluster = with_files(make, &["/a/x", "/a/y/z", "/a/y-1", "/a/y/0/1", "/ab", "/a.c/d", "/a/t-0"]);
    let tree = cluster.namespace.attach(&who("boss"), &path("/a/t/u"), "{}", Mode::new(0o444).unwrap());
    tree.unwrap();
    let pages = |dir: &str, limit: usize| {
        let (dir, mut found, mut after) = (DirPath::parse(dir).unwrap(), Vec::new(), None);
        loop {
            let page = cluster.namespace.list_below(&dir, after.as_deref(), limit).unwrap();
            assert!(page.len() <= limit);
            let paths: Vec<_> = page.iter().map(|entry| entry.path_below(&dir).to_owned()).collect();
            let Some(last) = paths.last() else { return found };
            after = Some(last.clone());
            found.extend(paths);
        }
    };
    for limit in 1..10 {
        assert_eq!(pages("/a", limit), ["t/u", "t-0", "x", "y/0/1", "y/z", "y-1"], "pages of {limit}");
        assert_eq!(pages("/a/y/", limit), ["0/1", "z"]);
        assert_eq!(pages("/", limit), ["a/t/u", "a/t-0", "a/x", "a/y/0/1", "a/y/z", "a/y-1", "a.c/d", "ab"]);
    }
    for missing in ["/b", "/a/x", "/a/t/u/v"] {
        let listed = cluster.namespace.list_below(&DirPath::parse(missing).unwrap(), None, 5);
        assert!(matches!(listed, Err(NamespaceError::NotFound { .. })), "{missing}: {listed:?}");
    }
    for after in ["", "/x", "x/", "../a"] {
        let listed = cluster.namespace.list_below(&DirPath::parse("/a").unwrap(), Some(after), 5);
        assert!(matches!(listed, Err(NamespaceError::InvalidPath { .. })), "{after:?}: {listed:?}");
    }
}

pub fn a_file_in_a_list_is_what_lookup_finds(make: Make<'_>) {
    let cluster = with_files(make, &["/d/a"]);
    let listed = cluster.namespace.list(&DirPath::parse("/d").unwrap(), None, 10).unwrap();
    let found = cluster.namespace.lookup(&who("bob"), &path("/d/a"), Access::Read).unwrap();
    assert_eq!(listed, [crate::ListEntry::File(found)]);
}

pub fn a_directory_is_there_while_a_file_lies_in_it(make: Make<'_>) {
    let cluster = with_files(make, &["/d/e/a"]);
    let missing = |dir: &str, after| match cluster.names(dir, after, 10) {
        Err(NamespaceError::NotFound { path }) => path == dir,
        other => other.map(|_| false).unwrap(),
    };
    assert!(
        missing("/x", None) && missing("/d/e/a", None) && missing("/d/x", None) && missing("/d/ee", None)
    );
    assert!(!missing("/d", Some("zzz")) && !missing("/d/e", None));
    cluster.namespace.remove(&who("alice"), &path("/d/e/a")).unwrap();
    assert!(missing("/d/e", None) && missing("/d", None) && missing("/d", Some("e")));
    assert_eq!(cluster.names("/", None, 10).unwrap(), [""; 0]);
    let found = cluster.namespace.lookup(&who("alice"), &path("/d/e/a"), Access::Read);
    assert!(matches!(found, Err(NamespaceError::NotFound { .. })));
    let again = cluster.namespace.remove(&who("alice"), &path("/d/e/a"));
    assert!(matches!(again, Err(NamespaceError::NotFound { .. })));
}

pub fn an_invalid_name_to_list_after_is_refused(make: Make<'_>) {
    let cluster = with_files(make, &["/d/a"]);
    for bad in ["", "a/b", "/", "..", "d\u{1}", "d\u{1}a"] {
        assert!(
            matches!(cluster.names("/", Some(bad), 10), Err(NamespaceError::InvalidPath { .. })),
            "{bad:?}"
        );
    }
}

pub fn a_page_has_its_bound(make: Make<'_>) {
    let cluster = cluster(make);
    let count = MAX_LIST_PAGE + 5;
    std::thread::scope(|scope| {
        for part in 0..8 {
            let cluster = &cluster;
            scope.spawn(move || {
                for n in (part..count).step_by(8) {
                    cluster.put("alice", &file(&format!("/d/{n:04}"))).unwrap();
                }
            });
        }
    });
    let first = cluster.names("/d", None, usize::MAX).unwrap();
    assert_eq!(first.len(), MAX_LIST_PAGE);
    let rest = cluster.names("/d", first.last().map(String::as_str), usize::MAX).unwrap();
    assert_eq!(rest, ["1000", "1001", "1002", "1003", "1004"]);
    assert_eq!(cluster.names("/", None, 10).unwrap(), ["d/"]);
}
