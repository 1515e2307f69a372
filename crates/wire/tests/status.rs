//! The status of nodes round trips and stays within its bounds.
#![allow(clippy::unwrap_used)]

use gristmill_wire::{
    BytesStatus, ClusterStatus, HandedBack, KernelStatus, LEAST_LISTED, MAX_ASKER_NAME, MAX_CLUSTER_BYTES,
    MAX_FILE_TARGETS, MAX_HANDED_BACK, MAX_LISTED, MAX_STATUS_BYTES, NodeLoad, NodeStatus, RequestState,
    RequestStatus, WireError,
};

/// The longest status of a node: names have control characters, each of which takes six bytes.
fn longest_status(requests: usize) -> NodeStatus {
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
    let handed_back = |number: u64| HandedBack {
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
        handed_back: (0..MAX_HANDED_BACK as u64).map(handed_back).collect(),
        bytes: BytesStatus { folded: u64::MAX, sent: 1 },
    }
}

#[test]
fn the_longest_status_round_trips_within_its_bound() {
    let status = longest_status(MAX_LISTED);
    let text = serde_json::to_vec(&status).unwrap();
    assert!(text.len() <= MAX_STATUS_BYTES, "{}", text.len());
    assert_eq!(NodeStatus::decode(&text).unwrap(), status);
    let cluster = ClusterStatus { at: 1_800_000_000.25, nodes: vec![status, NodeStatus::default()] };
    assert_eq!(ClusterStatus::decode(&serde_json::to_vec(&cluster).unwrap()).unwrap(), cluster);
}

#[test]
fn the_status_of_the_largest_cluster_is_within_its_bound() {
    let each = ClusterStatus::listed_per_node(MAX_FILE_TARGETS);
    let nodes = vec![longest_status(MAX_LISTED).limit_lists(each); MAX_FILE_TARGETS];
    let text = serde_json::to_vec(&ClusterStatus { at: 0.0, nodes }).unwrap();
    assert!(text.len() <= MAX_CLUSTER_BYTES, "{}", text.len());
    assert_eq!(each, LEAST_LISTED);
    assert_eq!([0, 1, 64, 128].map(ClusterStatus::listed_per_node), [MAX_LISTED, MAX_LISTED, MAX_LISTED, 32]);
}

#[test]
fn missing_fields_have_defaults() {
    let status = NodeStatus::decode(br#"{"target": 3, "address": "h:1", "of_later_versions": [1]}"#).unwrap();
    assert_eq!(status, NodeStatus { target: 3, address: "h:1".into(), ..NodeStatus::default() });
}

#[test]
fn a_status_beyond_the_bounds_is_refused_or_cut() {
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
