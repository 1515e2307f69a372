//! Tests of the placement of one request.
#![allow(clippy::unwrap_used)]

use gristmill_wire::Processors;

use super::super::reported_load::UNKNOWN;
use super::*;

/// A process with a core of its own.
fn client_apart() -> ClientCapacity {
    ClientCapacity { cores: 1.0, free: 1.0, processors: None, rate: None, receiving: 0.0 }
}

fn part(bytes: u64, load: Option<NodeLoad>) -> NodeDecision {
    NodeDecision {
        node: "0 (here)".into(),
        targets: vec![0],
        bytes,
        at_client: false,
        storage_seconds: None,
        client_seconds: None,
        shares_processors: false,
        others: None,
        load,
    }
}

fn slow_node(queued: f64) -> NodeLoad {
    NodeLoad { rate: 80e6, measured: true, link: 118e6, queued, ..UNKNOWN }
}

#[test]
fn an_idle_node_folds_and_a_busy_one_does_not() {
    let spec = Spec::fixed("sum", 8);
    let mut parts = [part(128 << 20, Some(slow_node(0.0)))];
    decide(&spec, &mut parts, ExtraWork::default(), &client_apart()).unwrap();
    assert!(!parts[0].at_client, "{parts:?}");
    let mut parts = [part(128 << 20, Some(slow_node(30.0)))];
    let seconds = decide(&spec, &mut parts, ExtraWork::default(), &client_apart()).unwrap();
    assert!(parts[0].at_client && seconds < 30.1, "{parts:?}");
    assert!(parts[0].storage_seconds > parts[0].client_seconds);
}

#[test]
fn a_node_is_short_of_processors_if_other_programs_use_most_of_them() {
    let spec = Spec::fixed("sum", 8);
    let shortages = |loads: &[NodeLoad]| {
        let mut parts: Vec<_> = loads.iter().map(|load| part(128 << 20, Some(load.clone()))).collect();
        decide(&spec, &mut parts, ExtraWork::default(), &client_apart()).unwrap();
        parts.iter().map(|part| part.shortage().map(|others| (100.0 * others).round())).collect::<Vec<_>>()
    };
    let busy = |others: f64, used: f64, name: &str| {
        let processors = Some(Processors { name: name.into(), cores: 2.0, most: 2.0, used });
        NodeLoad { cores: 2.0 * (1.0 - others), others, processors, ..slow_node(0.0) }
    };
    let (one, other) = ("0123456789abcdef", "fedcba9876543210");
    assert_eq!(shortages(&[busy(0.5, 0.0, one), busy(0.9, 0.0, other)]), [None, Some(90.0)]);
    // Each of these nodes counts the folds of the other as work of other programs.
    assert_eq!(shortages(&[busy(0.9, 0.2, one), busy(0.1, 1.8, one)]), [None, None]);
    assert_eq!(shortages(&[busy(1.0, 0.1, one), busy(0.95, 0.2, one)]), [Some(90.0), Some(90.0)]);
    let mut silent = [part(128 << 20, None)];
    decide(&spec, &mut silent, ExtraWork::default(), &client_apart()).unwrap();
    assert_eq!(silent[0].shortage(), None);
}

#[test]
fn messages_to_neighbours_cost_time() {
    let spec = Spec::lines("grep");
    for (messages, at_client) in [(0, false), (100, false), (100_000, true)] {
        let mut parts = [part(128 << 20, Some(slow_node(0.0)))];
        decide(&spec, &mut parts, ExtraWork { messages, ..ExtraWork::default() }, &client_apart()).unwrap();
        assert_eq!(parts[0].at_client, at_client, "{messages}");
    }
}

#[test]
fn fewer_parts_go_to_the_client_if_many_clients_read_already() {
    let spec = Spec::fixed("sum", 8);
    for (normal, at_client) in [(0, true), (4, true), (40, false), (u64::MAX, false)] {
        let mut parts = [part(128 << 20, Some(NodeLoad { normal, ..slow_node(30.0) }))];
        decide(&spec, &mut parts, ExtraWork::default(), &client_apart()).unwrap();
        assert_eq!(parts[0].at_client, at_client, "{normal}");
    }
}

#[test]
fn no_part_takes_much_of_the_link_for_a_small_gain() {
    // SUM at the paper's rates: seven seconds of the link for one of the processor.
    let spec = Spec::fixed("sum", 8);
    let fast = |queued: f64| NodeLoad { rate: 860e6, ..slow_node(queued) };
    for (queued, at_client) in [(0.5, false), (2.0, false), (9.0, false), (20.0, true)] {
        let mut parts = [part(128 << 20, Some(fast(queued)))];
        let seconds = decide(&spec, &mut parts, ExtraWork::default(), &client_apart()).unwrap();
        assert_eq!(parts[0].at_client, at_client, "{queued}");
        assert_eq!(Some(seconds), if at_client { parts[0].client_seconds } else { parts[0].storage_seconds });
    }
}

#[test]
fn parts_are_placed_separately_unless_they_wait_for_each_other() {
    let mut spec = Spec::fixed("sum", 8);
    let both = || [part(64 << 20, Some(slow_node(0.0))), part(64 << 20, Some(slow_node(60.0)))];
    let mut parts = both();
    decide(&spec, &mut parts, ExtraWork::default(), &client_apart()).unwrap();
    assert_eq!(parts.map(|part| part.at_client), [false, true]);
    spec.passes = Passes::Several;
    let mut parts = both();
    decide(&spec, &mut parts, ExtraWork::default(), &client_apart()).unwrap();
    assert_eq!(parts[0].at_client, parts[1].at_client);
}

#[test]
fn a_node_that_takes_no_work_gets_none() {
    let none = NodeLoad { cores: 0.0, ..UNKNOWN };
    let mut parts = [part(64 << 20, Some(none)), part(64 << 20, None)];
    decide(&Spec::fixed("sum", 8), &mut parts, ExtraWork::default(), &client_apart()).unwrap();
    assert!(parts[0].at_client && !parts[1].at_client);
}

#[test]
fn impossible_loads_are_not_believed() {
    for impossible in [
        NodeLoad { rate: f64::NAN, ..UNKNOWN },
        NodeLoad { rate: 1e300, ..UNKNOWN },
        NodeLoad { cores: -1.0, ..UNKNOWN },
        NodeLoad { queued: f64::INFINITY, ..UNKNOWN },
        NodeLoad { link: 0.0, ..UNKNOWN },
    ] {
        assert_eq!(plausible(Some(&impossible)), UNKNOWN, "{impossible:?}");
        decide(
            &Spec::fixed("sum", 8),
            &mut [part(1 << 30, Some(impossible))],
            ExtraWork::default(),
            &client_apart(),
        )
        .unwrap();
    }
}

/// Four nodes on two cores that send a byte in 0.4 ns, each with a quarter of a gigabyte.
fn four_nodes(change: impl Fn(&mut NodeLoad)) -> Vec<NodeDecision> {
    let processors = Processors { name: SHARED_NAME.into(), cores: 2.0, most: 2.0, used: 0.0 };
    let mut load = NodeLoad { cores: 2.0, lanes: 2, processors: Some(processors), sends: 2.5e9, ..UNKNOWN };
    change(&mut load);
    (0..4).map(|_| part(256 << 20, Some(load.clone()))).collect()
}

const SHARED_NAME: &str = "0123456789abcdef";

fn client_on_same_processors(rate: Option<f64>) -> ClientCapacity {
    ClientCapacity { cores: 2.0, free: 1.0, processors: Some(SHARED_NAME.into()), rate, receiving: 0.4e-9 }
}

#[test]
fn nothing_moves_to_a_process_on_the_processors_of_the_nodes() {
    let spec = Spec::fixed("sum", 8);
    for rate in [5e7, 1e9, 1e10] {
        for queued in [0.0, 0.5, 20.0] {
            // However fast it was here once, it is no faster than the nodes on the same processors.
            for known in [None, Some(1e11)] {
                let mut parts = four_nodes(|load| (load.rate, load.queued) = (rate, queued));
                decide(&spec, &mut parts, ExtraWork::default(), &client_on_same_processors(known)).unwrap();
                assert!(
                    parts.iter().all(|part| part.shares_processors && !part.at_client),
                    "{rate} {queued} {parts:?}"
                );
                assert!(parts.iter().all(|part| part.client_seconds >= part.storage_seconds));
            }
        }
    }
}

#[test]
fn a_client_uses_the_shared_processors_that_its_nodes_may_not_use() {
    let spec = Spec::fixed("sum", 8);
    let capped = |load: &mut NodeLoad| {
        (load.cores, load.rate) = (0.02, 3e8);
        if let Some(processors) = &mut load.processors {
            processors.most = 0.02;
        }
    };
    let mut parts = four_nodes(capped);
    decide(&spec, &mut parts, ExtraWork::default(), &client_on_same_processors(None)).unwrap();
    assert!(parts.iter().all(|part| part.at_client), "{parts:?}");
}

#[test]
fn a_part_does_not_wait_for_the_processors_that_other_programs_leave() {
    // Folds on nodes get what nobody else wants; a process that asks gets its share.
    let spec = Spec::fixed("sum", 8);
    let mut parts = four_nodes(|load| (load.cores, load.others, load.rate) = (0.006, 1.0, 3e8));
    decide(&spec, &mut parts, ExtraWork::default(), &client_on_same_processors(None)).unwrap();
    assert!(parts.iter().all(|part| part.at_client), "{parts:?}");
}

#[test]
fn a_request_of_several_passes_stays_on_its_nodes() {
    let mut spec = Spec::fixed("median", 8);
    spec.passes = Passes::Several;
    let mut parts = [part(128 << 20, Some(slow_node(60.0)))];
    decide(&spec, &mut parts, ExtraWork::default(), &client_apart()).unwrap();
    assert!(!parts[0].at_client && parts[0].client_seconds.is_some(), "{parts:?}");
    // Unless a node takes no work at all.
    let mut parts =
        [part(128 << 20, Some(slow_node(0.0))), part(1 << 20, Some(NodeLoad { cores: 0.0, ..UNKNOWN }))];
    decide(&spec, &mut parts, ExtraWork::default(), &client_apart()).unwrap();
    assert!(parts.iter().all(|part| part.at_client), "{parts:?}");
}

#[test]
fn no_part_moves_because_its_node_has_not_measured_the_kernel() {
    let spec = Spec::fixed("gaussian", 8);
    for (measured, at_client) in [(false, false), (true, true)] {
        let slow = NodeLoad { cores: 0.13, rate: 3e8, measured, link: 118e6, ..UNKNOWN };
        let mut parts = [part(64 << 20, Some(slow))];
        let capacity = ClientCapacity { cores: 0.13, rate: Some(9e8), ..client_apart() };
        decide(&spec, &mut parts, ExtraWork::default(), &capacity).unwrap();
        assert_eq!(parts[0].at_client, at_client, "{parts:?}");
    }
}

#[test]
fn the_measured_rate_of_the_client_counts() {
    let spec = Spec::fixed("sum", 8);
    for (rate, at_client) in [(Some(80e6), true), (Some(5e6), false)] {
        let mut parts = [part(128 << 20, Some(slow_node(30.0)))];
        decide(&spec, &mut parts, ExtraWork::default(), &ClientCapacity { rate, ..client_apart() }).unwrap();
        assert_eq!(parts[0].at_client, at_client, "{parts:?}");
    }
}
