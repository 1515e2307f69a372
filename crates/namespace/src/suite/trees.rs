//! Attached trees: their place among files, and who may change them.

use super::Make;
use super::cluster::{Cluster, MINUTE, cluster, file, mode, path, who};
use crate::{Access, DirPath, MAX_SOURCE_BYTES, MAX_TREES, NamespaceError, PathConflict};

fn attach(cluster: &Cluster, at: &str) -> Result<(), NamespaceError> {
    cluster.namespace.attach(&who("boss"), &path(at), "s3://bucket", mode("440"))
}

fn conflict(result: Result<impl std::fmt::Debug, NamespaceError>) -> PathConflict {
    match result.unwrap_err() {
        NamespaceError::Conflict { conflict, .. } => conflict,
        other => panic!("{other}"),
    }
}

pub fn a_tree_stays_attached_after_a_restart(make: Make<'_>) {
    let cluster = cluster(make);
    attach(&cluster, "/b").unwrap();
    attach(&cluster, "/a/deep/tree").unwrap();
    let cluster = cluster.reopen();
    let trees = cluster.namespace.trees().unwrap();
    let paths: Vec<_> = trees.iter().map(|tree| tree.path.as_str()).collect();
    assert_eq!(paths, ["/a/deep/tree", "/b"]);
    assert_eq!(
        (trees[0].source.as_str(), trees[0].owner.as_str(), trees[0].mode),
        ("s3://bucket", "boss", mode("440"))
    );
    cluster.namespace.detach(&who("boss"), &path("/b")).unwrap();
    let gone = cluster.namespace.detach(&who("boss"), &path("/b")).unwrap_err();
    assert!(matches!(gone, NamespaceError::NotFound { .. }));
    assert_eq!(cluster.reopen().namespace.trees().unwrap().len(), 1);
}

pub fn a_path_belongs_to_the_tree_at_it_or_above_it(make: Make<'_>) {
    let cluster = cluster(make);
    for at in ["/a/b", "/a-b", "/a/b.c", "/z"] {
        attach(&cluster, at).unwrap();
    }
    let of = |at: &str| {
        let tree = cluster.namespace.tree_of(&DirPath::parse(at).unwrap()).unwrap();
        tree.map(|tree| (tree.path.to_string(), tree.key_of(at).unwrap().to_owned()))
    };
    let found = |tree: &str, key: &str| Some((tree.to_owned(), key.to_owned()));
    assert_eq!(of("/a/b"), found("/a/b", ""));
    assert_eq!(of("/a/b/c/d"), found("/a/b", "c/d"));
    assert_eq!(of("/a/b.c/x"), found("/a/b.c", "x"));
    assert_eq!(of("/a-b/x"), found("/a-b", "x"));
    for other in ["/", "/a", "/a/bc", "/a/b-c/d", "/a/b.d", "/y", "/zz"] {
        assert_eq!(of(other), None, "{other}");
    }
}

pub fn trees_are_listed_as_directories_page_by_page(make: Make<'_>) {
    let cluster = cluster(make);
    for at in ["/b/tree", "/c", "/e"] {
        attach(&cluster, at).unwrap();
    }
    for at in ["/a", "/b/file", "/d/x"] {
        cluster.put("alice", &file(at)).unwrap();
    }
    assert_eq!(cluster.names("/", None, 10).unwrap(), ["a", "b/", "c/", "d/", "e/"]);
    assert_eq!(cluster.names("/b", None, 10).unwrap(), ["file", "tree/"]);
    let mut all = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = cluster.names("/", after.as_deref(), 2).unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.trim_end_matches('/').to_owned());
        all.extend(page);
    }
    assert_eq!(all, ["a", "b/", "c/", "d/", "e/"]);
    cluster.namespace.remove(&who("alice"), &path("/b/file")).unwrap();
    assert_eq!(cluster.names("/b", None, 10).unwrap(), ["tree/"]);
    let amount = cluster.namespace.usage("/b").unwrap();
    assert_eq!((amount.files, amount.directory), (0, true));
}

pub fn trees_and_files_do_not_share_paths(make: Make<'_>) {
    let cluster = cluster(make);
    for at in ["/file", "/dir/x"] {
        cluster.put("alice", &file(at)).unwrap();
    }
    attach(&cluster, "/t/tree").unwrap();
    assert_eq!(conflict(attach(&cluster, "/file")), PathConflict::IsFile);
    assert_eq!(conflict(attach(&cluster, "/file/x")), PathConflict::ParentIsFile(path("/file")));
    assert_eq!(conflict(attach(&cluster, "/dir")), PathConflict::IsDirectory);
    assert_eq!(conflict(attach(&cluster, "/t")), PathConflict::IsDirectory);
    let inside = PathConflict::InTree(path("/t/tree"));
    for at in ["/t/tree", "/t/tree/x/y"] {
        assert_eq!(conflict(attach(&cluster, at)), inside);
        assert_eq!(conflict(cluster.put("alice", &file(at))), inside);
        assert_eq!(conflict(cluster.namespace.rename(&who("alice"), "/file", at)), inside);
        assert_eq!(conflict(cluster.namespace.rename(&who("alice"), "/dir", at)), inside);
        assert_eq!(conflict(cluster.namespace.rename(&who("alice"), at, "/new")), inside);
        assert_eq!(conflict(cluster.namespace.remove(&who("boss"), &path(at))), inside);
        assert_eq!(conflict(cluster.namespace.remove_all(&who("boss"), at)), inside);
        assert_eq!(conflict(cluster.namespace.set_mode(&who("boss"), &path(at), mode("600"))), inside);
    }
    assert_eq!(conflict(cluster.put("alice", &file("/t"))), PathConflict::IsDirectory);
    let holds = PathConflict::HasTree(path("/t/tree"));
    assert_eq!(conflict(cluster.namespace.rename(&who("alice"), "/t", "/new")), holds);
    assert_eq!(conflict(cluster.namespace.remove_all(&who("boss"), "/t/")), holds);
    assert!(cluster.namespace.rename(&who("alice"), "/dir", "/t").is_ok(), "/t/dir is beside the tree");
}

pub fn a_put_that_began_before_its_path_was_attached_is_not_committed(make: Make<'_>) {
    let cluster = cluster(make);
    let id = cluster.namespace.begin(&who("alice"), &file("/t/x"), MINUTE).unwrap();
    attach(&cluster, "/t").unwrap();
    let refused = cluster.namespace.commit(&who("alice"), &id, 100, &[1, 1]);
    assert_eq!(conflict(refused), PathConflict::InTree(path("/t")));
    cluster.namespace.detach(&who("boss"), &path("/t")).unwrap();
    cluster.namespace.commit(&who("alice"), &id, 100, &[1, 1]).unwrap();
}

pub fn only_administrators_change_trees_and_the_mode_says_who_reads_them(make: Make<'_>) {
    let cluster = cluster(make);
    let refused = cluster.namespace.attach(&who("alice"), &path("/t"), "", mode("444"));
    assert!(matches!(refused, Err(NamespaceError::NotAdministrator { .. })));
    attach(&cluster, "/t").unwrap();
    let refused = cluster.namespace.detach(&who("alice"), &path("/t"));
    assert!(matches!(refused, Err(NamespaceError::NotAdministrator { .. })));
    let tree = &cluster.namespace.trees().unwrap()[0];
    for name in ["boss", "root", "uid:0"] {
        cluster.namespace.check_reader(&who(name), tree).unwrap();
    }
    let denied = cluster.namespace.check_reader(&who("alice"), tree).unwrap_err();
    assert!(denied.to_string().contains("alice may not read /t"), "{denied}");
    let error = cluster.namespace.lookup(&who("alice"), &path("/t/x"), Access::Read).unwrap_err();
    assert!(matches!(error, NamespaceError::NotFound { .. }));
}

pub fn trees_have_bounds(make: Make<'_>) {
    let cluster = cluster(make);
    let long = "x".repeat(MAX_SOURCE_BYTES + 1);
    assert!(cluster.namespace.attach(&who("boss"), &path("/t"), &long, mode("444")).unwrap_err().is_usage());
    for n in 0..MAX_TREES {
        attach(&cluster, &format!("/trees/{n}")).unwrap();
    }
    assert!(matches!(attach(&cluster, "/one-more"), Err(NamespaceError::TooMany { .. })));
}
