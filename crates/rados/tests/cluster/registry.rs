//! Nodes that find each other through Ceph.

use gristmill_ceph::ClusterUser;
use gristmill_rados::{NodeRegistry, RadosLocation, RegisteredNode, RegistryError};

use crate::{location, options};

fn registry(location: &RadosLocation) -> NodeRegistry {
    NodeRegistry::open(location, &options().user).unwrap()
}

fn node(id: &str, address: &str) -> RegisteredNode {
    RegisteredNode { id: id.into(), address: address.into() }
}

#[test]
fn the_first_node_stays_the_entry_node() {
    let location = location();
    let (one, other) = (registry(&location), registry(&location));
    assert_eq!(one.entry().unwrap(), None);
    assert!(matches!(one.entry_address(), Err(RegistryError::NoCluster(_))));
    assert_eq!(one.nodes().unwrap(), []);
    assert_eq!(one.claim_entry("a").unwrap(), "a");
    assert_eq!(other.claim_entry("b").unwrap(), "a");
    assert_eq!(other.claim_entry("a").unwrap(), "a");
    assert_eq!(registry(&location).entry().unwrap().as_deref(), Some("a"));
}

#[test]
fn leases_name_the_nodes_that_run() {
    let location = location();
    let (one, other) = (registry(&location), registry(&location));
    one.claim_entry("a").unwrap();
    assert!(matches!(other.entry_address(), Err(RegistryError::NoEntry(_))));
    let (a, b) = (node("a", "10.0.0.1:7440"), node("b", "10.0.0.2:7440"));
    let first = one.register(&a).unwrap();
    let second = other.register(&b).unwrap();
    assert_eq!(other.entry_address().unwrap(), a.address);
    let mut all = one.nodes().unwrap();
    all.sort_by(|one, other| one.id.cmp(&other.id));
    assert_eq!(all, [a, b.clone()]);
    drop(first);
    assert_eq!(one.nodes().unwrap(), [b]);
    assert!(matches!(one.entry_address(), Err(RegistryError::NoEntry(_))));
    drop(second);
    assert_eq!(one.nodes().unwrap(), []);
}

#[test]
fn a_new_process_of_a_node_ends_the_lease_of_the_former() {
    let location = location();
    let (former, present) = (registry(&location), registry(&location));
    let lease = former.register(&node("a", "10.0.0.1:1")).unwrap();
    let moved = node("a", "10.0.0.9:1");
    let _present = present.register(&moved).unwrap();
    assert_eq!(present.nodes().unwrap(), [moved.clone()]);
    // What the former process does at its end does not harm.
    drop(lease);
    assert_eq!(present.nodes().unwrap(), [moved]);
}

#[test]
fn a_long_list_of_nodes_is_read() {
    let location = location();
    let registry = registry(&location);
    let names: Vec<_> =
        (0..60).map(|number| node(&format!("{number:02}"), &format!("{}:7440", "h".repeat(200)))).collect();
    let _leases: Vec<_> = names.iter().map(|node| registry.register(node).unwrap()).collect();
    let mut all = registry.nodes().unwrap();
    all.sort_by(|one, other| one.id.cmp(&other.id));
    assert_eq!(all, names);
}

#[test]
fn names_that_cannot_be_noted_are_refused() {
    let registry = registry(&location());
    for wrong in
        [node("", "a:1"), node("a", ""), node("a b", "a:1"), node("a", "a:1\n"), node("a", &"x".repeat(600))]
    {
        assert!(matches!(registry.register(&wrong), Err(RegistryError::Unusable { .. })), "{wrong:?}");
    }
}

#[test]
fn a_key_that_only_looks_may_not_register() {
    let location = RadosLocation { pool: "gristmill".into(), name: "cluster".into() };
    let node = node("a", "10.0.0.1:7440");
    let _lease = registry(&location).register(&node).unwrap();
    let asker = ClusterUser { id: "asker".into(), ..options().user };
    let looks = NodeRegistry::open(&location, &asker).unwrap();
    assert_eq!(looks.nodes().unwrap(), [node.clone()]);
    assert_eq!(looks.entry().unwrap(), None);
    for denied in [looks.register(&node).map(drop), looks.claim_entry("a").map(drop)] {
        assert!(matches!(denied, Err(RegistryError::Denied { .. })), "{denied:?}");
    }
    let elsewhere = NodeRegistry::open(&crate::location(), &asker).unwrap();
    assert!(matches!(elsewhere.nodes(), Err(RegistryError::Denied { .. })));
}
