//! The puts that name objects, in the order of their ids.

use std::time::Duration;

use super::Make;
use super::cluster::{cluster, file, path, who};
use crate::{FileId, NamespaceError};

pub fn every_put_is_named_until_its_objects_are_gone(make: Make<'_>) {
    let cluster = cluster(make);
    let live = cluster.put("alice", &file("/live")).unwrap();
    let begun = cluster.begin("alice", "/begun").unwrap();
    let removed = cluster.put("alice", &file("/removed")).unwrap();
    cluster.namespace.remove(&who("alice"), &path("/removed")).unwrap();
    let held = cluster.put("alice", &file("/held")).unwrap();
    cluster.namespace.remove(&who("alice"), &path("/held")).unwrap();
    cluster.namespace.forget_collected(std::slice::from_ref(&held), Duration::from_secs(3600)).unwrap();
    let gone = cluster.put("alice", &file("/gone")).unwrap();
    cluster.namespace.remove(&who("alice"), &path("/gone")).unwrap();
    cluster.namespace.forget_collected(std::slice::from_ref(&gone), Duration::ZERO).unwrap();

    let mut expected = vec![live.clone(), begun, removed, held];
    expected.sort();
    let all = cluster.namespace.named_puts(None, None, 100).unwrap();
    assert_eq!(all.iter().map(|one| one.id.clone()).collect::<Vec<_>>(), expected);
    for one in &all {
        assert_eq!(one.targets, [2, 0]);
        assert_eq!(one.file.as_ref().map(|file| file.path.as_str()), (one.id == live).then_some("/live"));
    }
    let mut pages = Vec::new();
    let mut after: Option<FileId> = None;
    loop {
        let page = cluster.namespace.named_puts(after.as_ref(), Some(&expected[2]), 2).unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        pages.extend(page.into_iter().map(|one| one.id));
    }
    assert_eq!(pages, expected[..3]);
}

pub fn administrators_are_root_and_the_chosen_user(make: Make<'_>) {
    let cluster = cluster(make);
    for name in ["root", "uid:0", "boss"] {
        cluster.namespace.check_administrator(&who(name), "do this").unwrap();
    }
    for name in ["alice", "anonymous", "uid:1000"] {
        let error = cluster.namespace.check_administrator(&who(name), "do this").unwrap_err();
        assert!(matches!(error, NamespaceError::NotAdministrator { .. }) && error.is_usage());
        assert!(error.to_string().starts_with(&format!("{name} may not do this: ")), "{error}");
    }
}
