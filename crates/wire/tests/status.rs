//! What nodes say of themselves: nothing is lost on the way, and nothing is longer than it may be.
#![allow(clippy::unwrap_used)]

use gristmill_wire::{
    BytesStatus, ClusterStatus, HandedBack, KernelStatus, LEAST_LISTED, MAX_ASKER_NAME, MAX_CLUSTER_BYTES,
    MAX_FILE_TARGETS, MAX_HANDED_BACK, MAX_LISTED, MAX_STATUS_BYTES, NodeLoad, NodeStatus, RequestState,
    RequestStatus, WireError,
};

/// A node with as much to say as there can be: names of control characters, each of which takes six bytes.
fn full(requests: usize) -> NodeStatus {
    let asker = Some("\u{1}".repeat(MAX_ASKER_NAME));
    let principal = "p".repeat(128);
    let request = |number: u64| RequestStatus {
        number: u64::MAX - number,
        kernel: "histogram".into(),
        state: RequestState::Leaving,
        bytes: u64::MAX,
        folded: u64::MAX,
        principal: principal.clone(),
        asker: asker.clone(),
        age_seconds: 123_456.789_123,
    };
    let gone = |number: u64| HandedBack {
        number,
        kernel: "histogram".into(),
        principal: principal.clone(),
        asker: asker.clone(),
        bytes: u64::MAX,
        why: "w".repeat(200),
        ago_seconds: 0.123_456_789,
    };
    NodeStatus {
        target: 1023,
        address: "a-rather-long-name-of-a-host.of-some-domain.example:65535".into(),
        load: Some(NodeLoad { memory: Some((1, 2)), io: Some(0.5), cores: 1.5, ..NodeLoad::default() }),
        error: None,
        silent_seconds: Some(1.25),
        up_seconds: 1e6,
        kernels: (0..40)
            .map(|n| KernelStatus { kernel: format!("kernel{n}"), rate: 1.5e9, ..KernelStatus::default() })
            .collect(),
        requests: (0..requests as u64).map(request).collect(),
        handed_back: (0..MAX_HANDED_BACK as u64).map(gone).collect(),
        bytes: BytesStatus { folded: u64::MAX, sent: 1 },
    }
}

#[test]
fn a_status_comes_as_it_went_and_the_longest_has_room() {
    let status = full(MAX_LISTED);
    let text = serde_json::to_vec(&status).unwrap();
    assert!(text.len() <= MAX_STATUS_BYTES, "{}", text.len());
    assert_eq!(NodeStatus::decode(&text).unwrap(), status);
    let cluster = ClusterStatus { at: 1_800_000_000.25, nodes: vec![status, NodeStatus::default()] };
    assert_eq!(ClusterStatus::decode(&serde_json::to_vec(&cluster).unwrap()).unwrap(), cluster);
}

#[test]
fn the_largest_cluster_has_room() {
    let each = ClusterStatus::listed_of_each(MAX_FILE_TARGETS);
    let nodes = vec![full(MAX_LISTED).listing(each); MAX_FILE_TARGETS];
    let text = serde_json::to_vec(&ClusterStatus { at: 0.0, nodes }).unwrap();
    assert!(text.len() <= MAX_CLUSTER_BYTES, "{}", text.len());
    assert_eq!(each, LEAST_LISTED);
    assert_eq!([0, 1, 64, 128].map(ClusterStatus::listed_of_each), [MAX_LISTED, MAX_LISTED, MAX_LISTED, 32]);
}

#[test]
fn what_was_not_said_has_a_default() {
    let status = NodeStatus::decode(br#"{"target": 3, "address": "h:1", "of_later_versions": [1]}"#).unwrap();
    assert_eq!(status, NodeStatus { target: 3, address: "h:1".into(), ..NodeStatus::default() });
}

#[test]
fn too_much_is_refused_or_cut() {
    let long = NodeStatus::decode(&vec![b' '; MAX_STATUS_BYTES + 1]);
    assert!(matches!(long, Err(WireError::TooLong { max: MAX_STATUS_BYTES, .. })), "{long:?}");
    let long = ClusterStatus::decode(&vec![b' '; MAX_CLUSTER_BYTES + 1]);
    assert!(matches!(long, Err(WireError::TooLong { max: MAX_CLUSTER_BYTES, .. })), "{long:?}");
    let many = vec![RequestStatus::default(); MAX_LISTED + 1];
    let text = serde_json::to_vec(&NodeStatus { requests: many, ..NodeStatus::default() }).unwrap();
    assert_eq!(NodeStatus::decode(&text).unwrap().requests.len(), MAX_LISTED);
    let many = ClusterStatus { at: 0.0, nodes: vec![NodeStatus::default(); MAX_FILE_TARGETS + 1] };
    let refused = ClusterStatus::decode(&serde_json::to_vec(&many).unwrap());
    assert!(matches!(refused, Err(WireError::Malformed { .. })), "{refused:?}");
    for nonsense in ["", "[]", "{}", r#"{"target": -1, "address": ""}"#] {
        assert!(NodeStatus::decode(nonsense.as_bytes()).is_err(), "{nonsense}");
    }
}
