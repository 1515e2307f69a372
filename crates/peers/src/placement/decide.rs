//! The decision of one request, from what its nodes said. Pure.

use gristmill_kernel::{Output, Passes, Spec};
use gristmill_schedule::cluster::{
    Client, Cluster, LEAST_SHARE, Machine, Node, SENDING, Shard, sendable, worth_while,
};
use gristmill_schedule::{Place, Places, ScheduleError};
use gristmill_wire::NodeLoad;

use super::NodeDecision;
use super::asking::{Asking, FAIR_SHARE, LEAST_CORES};
use super::besides::Besides;
use super::said::{Together, believed, shared};

/// Seconds that it takes to ask for bytes and to begin with them.
const READ_SECONDS: f64 = 0.005;

/// Seconds of a node's link that one second of its processors may cost. If all that a node has to do could be shared out
/// between both, it would be done sooner by one part in 1 + this: by what has to be gained at least. Who does not see the
/// others' requests and takes more gains it from them.
const LINK_FOR_CORES: f64 = 1.0 / LEAST_SHARE - 1.0;

/// Who would wait so many times as long takes it all the same.
const LONG_WAIT: f64 = 10.0;

/// The least of a node's processors that is reckoned with.
const LEAST_OF_NODE: f64 = 1e-3;

/// Decides for all parts of one request. `besides`: what each node has to do besides folding. Gives the seconds that it takes.
pub(super) fn decide(
    spec: &Spec,
    parts: &mut [NodeDecision],
    besides: Besides,
    asking: &Asking,
) -> Result<f64, ScheduleError> {
    let loads: Vec<NodeLoad> = parts.iter().map(|part| shared(expected(part, asking))).collect();
    let mut cluster = Cluster::default();
    let machines: Vec<(Together<'_>, usize)> = Together::of(&loads)
        .into_iter()
        .map(|one| {
            let near = asking.processors.as_deref() == Some(one.name);
            // Who asks has a fair share of them, where folds on nodes only get what nobody wants.
            let cores = one.free.max(if near { FAIR_SHARE * one.cores } else { LEAST_CORES });
            let number = cluster.machine(Machine { cores, busy: one.queued / cores });
            (Together { free: cores, ..one }, number)
        })
        .collect();
    let beside = machines.iter().find(|(one, _)| asking.processors.as_deref() == Some(one.name));
    // One's own link is not known; no node sends faster than its own.
    let link = loads.iter().map(|load| load.link).fold(1.0, f64::max);
    let cores = beside.map_or(asking.cores * asking.free, |(one, _)| asking.cores.min(one.free));
    let cores = cores.max(LEAST_CORES);
    let client = cluster.client(Client {
        link,
        cores,
        receiving: asking.receiving,
        machine: beside.map(|(_, number)| *number),
        ..Client::IDLE
    });
    let several = spec.passes == Passes::Several;
    // Every pass needs all parts. And rows come in the order of the file: of parts at two places each waits for the other. That is
    // no reason to move what may stay because another node takes no work.
    let together = several || spec.output != Output::Value && loads.iter().all(|load| load.cores > 0.0);
    let mut ordered = Vec::new();
    for (part, load) in parts.iter_mut().zip(&loads) {
        let its = load.processors.as_ref();
        let machine = machines.iter().find(|(one, _)| its.is_some_and(|its| its.name == one.name));
        let (machine, number) = (machine.map(|(one, _)| one), machine.map(|(_, number)| *number));
        part.near = number.is_some() && number == beside.map(|(_, number)| *number);
        let active = machine.map_or(load.cores, |one| one.cores_of(load)).max(LEAST_OF_NODE);
        let sending = if load.sends > 0.0 { 1.0 / load.sends } else { SENDING };
        let all = its.map_or(active, |its| its.cores);
        let node = cluster.storage_node(Node {
            cores: active,
            busy: load.queued * load.cores / active,
            link: sendable(load.link, all, sending),
            link_busy: load.link_busy,
            sending,
            machine: number,
        });
        let rate = asking.rate.unwrap_or(load.rate);
        // On the same processors nobody is faster than the node.
        let rate = if part.near { rate.min(load.rate) } else { rate };
        ordered.push(Shard {
            bytes: part.bytes,
            result_bytes: if spec.output == Output::Bytes { part.bytes } else { spec.state_hint },
            pulled_bytes: besides.pulled_bytes,
            storage_rate: load.rate,
            client_rate: rate * cores,
            parallel: f64::from(load.lanes.max(1)),
            overhead: [besides.seconds(), 0.0, READ_SECONDS],
            places: match load.cores == 0.0 {
                true => Places::NONE.with(Place::Client),
                false => Places::ALL.without(Place::Data),
            },
            together: together.then_some(0),
            ..Shard::of(node, client, 0)
        });
    }
    let placement = worth_while(&cluster, &ordered)?;
    for ((part, place), costs) in parts.iter_mut().zip(&placement.places).zip(&placement.costs) {
        let seconds = |place: Place| costs.get(place.number()).copied().flatten().map(|cost| cost.queued);
        (part.storage_seconds, part.client_seconds) = (seconds(Place::Storage), seconds(Place::Client));
        part.here = *place == Place::Client;
    }
    // Each pass would move the file anew.
    let stays =
        |part: &NodeDecision| takes_from_others(part, asking) || several && part.storage_seconds.is_some();
    let gone: Vec<bool> = parts.iter().map(|part| part.here && stays(part)).collect();
    let all_stay = together && gone.contains(&true);
    for (part, stays) in parts.iter_mut().zip(gone) {
        part.here &= !stays && !all_stay;
    }
    let seconds = |part: &NodeDecision| if part.here { part.client_seconds } else { part.storage_seconds };
    Ok(parts.iter().filter_map(seconds).fold(0.0, f64::max))
}

/// The load of a part's node. A rate that was measured here counts more than one that the node only expects.
fn expected(part: &NodeDecision, asking: &Asking) -> NodeLoad {
    let load = believed(part.load.as_ref());
    let measured = asking.rate.filter(|_| !load.measured);
    NodeLoad { rate: measured.unwrap_or(load.rate), ..load }
}

/// Whether a part that would be done sooner here takes too much of its node's link for what it spares its processors. If
/// the others gain by it, the node hands it back, for it sees them all.
fn takes_from_others(part: &NodeDecision, asking: &Asking) -> bool {
    let load = expected(part, asking);
    let (Some(storage), Some(client)) = (part.storage_seconds, part.client_seconds) else { return false };
    load.rate * load.cores > LINK_FOR_CORES * load.link && storage < LONG_WAIT * client
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use gristmill_wire::Processors;

    use super::super::said::UNKNOWN;
    use super::*;

    /// A process with a core of its own.
    fn apart() -> Asking {
        Asking { cores: 1.0, free: 1.0, processors: None, rate: None, receiving: 0.0 }
    }

    fn part(bytes: u64, load: Option<NodeLoad>) -> NodeDecision {
        NodeDecision {
            node: "0 (here)".into(),
            targets: vec![0],
            bytes,
            here: false,
            storage_seconds: None,
            client_seconds: None,
            near: false,
            load,
        }
    }

    fn slow(queued: f64) -> NodeLoad {
        NodeLoad { rate: 80e6, measured: true, link: 118e6, queued, ..UNKNOWN }
    }

    #[test]
    fn an_idle_node_folds_and_a_busy_one_does_not() {
        let spec = Spec::fixed("sum", 8);
        let mut parts = [part(128 << 20, Some(slow(0.0)))];
        decide(&spec, &mut parts, Besides::default(), &apart()).unwrap();
        assert!(!parts[0].here, "{parts:?}");
        let mut parts = [part(128 << 20, Some(slow(30.0)))];
        let seconds = decide(&spec, &mut parts, Besides::default(), &apart()).unwrap();
        assert!(parts[0].here && seconds < 30.1, "{parts:?}");
        assert!(parts[0].storage_seconds > parts[0].client_seconds);
    }

    #[test]
    fn messages_to_neighbours_cost_time() {
        let spec = Spec::lines("grep");
        for (messages, goes) in [(0, false), (100, false), (100_000, true)] {
            let mut parts = [part(128 << 20, Some(slow(0.0)))];
            decide(&spec, &mut parts, Besides { messages, ..Besides::default() }, &apart()).unwrap();
            assert_eq!(parts[0].here, goes, "{messages}");
        }
    }

    #[test]
    fn fewer_go_where_many_read_already() {
        let spec = Spec::fixed("sum", 8);
        for (normal, goes) in [(0, true), (4, true), (40, false), (u64::MAX, false)] {
            let mut parts = [part(128 << 20, Some(NodeLoad { normal, ..slow(30.0) }))];
            decide(&spec, &mut parts, Besides::default(), &apart()).unwrap();
            assert_eq!(parts[0].here, goes, "{normal}");
        }
    }

    #[test]
    fn nobody_takes_the_link_for_little() {
        // SUM at the paper's rates: seven seconds of the link for one of the processor.
        let spec = Spec::fixed("sum", 8);
        let fast = |queued: f64| NodeLoad { rate: 860e6, ..slow(queued) };
        for (queued, goes) in [(0.5, false), (2.0, false), (9.0, false), (20.0, true)] {
            let mut parts = [part(128 << 20, Some(fast(queued)))];
            let seconds = decide(&spec, &mut parts, Besides::default(), &apart()).unwrap();
            assert_eq!(parts[0].here, goes, "{queued}");
            assert_eq!(Some(seconds), if goes { parts[0].client_seconds } else { parts[0].storage_seconds });
        }
    }

    #[test]
    fn parts_go_different_ways_unless_they_belong_together() {
        let mut spec = Spec::fixed("sum", 8);
        let both = || [part(64 << 20, Some(slow(0.0))), part(64 << 20, Some(slow(60.0)))];
        let mut parts = both();
        decide(&spec, &mut parts, Besides::default(), &apart()).unwrap();
        assert_eq!(parts.map(|part| part.here), [false, true]);
        spec.passes = Passes::Several;
        let mut parts = both();
        decide(&spec, &mut parts, Besides::default(), &apart()).unwrap();
        assert_eq!(parts[0].here, parts[1].here);
    }

    #[test]
    fn a_node_that_takes_no_work_gets_none() {
        let none = NodeLoad { cores: 0.0, ..UNKNOWN };
        let mut parts = [part(64 << 20, Some(none)), part(64 << 20, None)];
        decide(&Spec::fixed("sum", 8), &mut parts, Besides::default(), &apart()).unwrap();
        assert!(parts[0].here && !parts[1].here);
    }

    #[test]
    fn what_cannot_be_is_not_believed() {
        for lie in [
            NodeLoad { rate: f64::NAN, ..UNKNOWN },
            NodeLoad { rate: 1e300, ..UNKNOWN },
            NodeLoad { cores: -1.0, ..UNKNOWN },
            NodeLoad { queued: f64::INFINITY, ..UNKNOWN },
            NodeLoad { link: 0.0, ..UNKNOWN },
        ] {
            assert_eq!(believed(Some(&lie)), UNKNOWN, "{lie:?}");
            decide(&Spec::fixed("sum", 8), &mut [part(1 << 30, Some(lie))], Besides::default(), &apart())
                .unwrap();
        }
    }

    /// Four nodes on two cores that send a byte in 0.4 ns, each with a quarter of a gigabyte.
    fn up(change: impl Fn(&mut NodeLoad)) -> Vec<NodeDecision> {
        let its = Processors { name: HERE.into(), cores: 2.0, most: 2.0, used: 0.0 };
        let mut load = NodeLoad { cores: 2.0, lanes: 2, processors: Some(its), sends: 2.5e9, ..UNKNOWN };
        change(&mut load);
        (0..4).map(|_| part(256 << 20, Some(load.clone()))).collect()
    }

    const HERE: &str = "0123456789abcdef";

    fn beside(rate: Option<f64>) -> Asking {
        Asking { cores: 2.0, free: 1.0, processors: Some(HERE.into()), rate, receiving: 0.4e-9 }
    }

    #[test]
    fn nothing_moves_to_a_process_on_the_processors_of_the_nodes() {
        let spec = Spec::fixed("sum", 8);
        for rate in [5e7, 1e9, 1e10] {
            for queued in [0.0, 0.5, 20.0] {
                // However fast it was here once, it is no faster than the nodes on the same processors.
                for known in [None, Some(1e11)] {
                    let mut parts = up(|load| (load.rate, load.queued) = (rate, queued));
                    decide(&spec, &mut parts, Besides::default(), &beside(known)).unwrap();
                    assert!(parts.iter().all(|part| part.near && !part.here), "{rate} {queued} {parts:?}");
                    assert!(parts.iter().all(|part| part.client_seconds >= part.storage_seconds));
                }
            }
        }
    }

    #[test]
    fn a_process_beside_goes_round_what_its_nodes_may_not_use() {
        let spec = Spec::fixed("sum", 8);
        let capped = |load: &mut NodeLoad| {
            (load.cores, load.rate) = (0.02, 3e8);
            if let Some(its) = &mut load.processors {
                its.most = 0.02;
            }
        };
        let mut parts = up(capped);
        decide(&spec, &mut parts, Besides::default(), &beside(None)).unwrap();
        assert!(parts.iter().all(|part| part.here), "{parts:?}");
    }

    #[test]
    fn others_that_take_all_processors_are_no_reason_to_wait_for_the_rest() {
        // Folds on nodes get what nobody else wants; a process that asks gets its share.
        let spec = Spec::fixed("sum", 8);
        let mut parts = up(|load| (load.cores, load.others, load.rate) = (0.006, 1.0, 3e8));
        decide(&spec, &mut parts, Besides::default(), &beside(None)).unwrap();
        assert!(parts.iter().all(|part| part.here), "{parts:?}");
    }

    #[test]
    fn several_passes_are_folded_where_each_need_not_be_moved() {
        let mut spec = Spec::fixed("median", 8);
        spec.passes = Passes::Several;
        let mut parts = [part(128 << 20, Some(slow(60.0)))];
        decide(&spec, &mut parts, Besides::default(), &apart()).unwrap();
        assert!(!parts[0].here && parts[0].client_seconds.is_some(), "{parts:?}");
        // Unless a node takes no work at all.
        let mut parts =
            [part(128 << 20, Some(slow(0.0))), part(1 << 20, Some(NodeLoad { cores: 0.0, ..UNKNOWN }))];
        decide(&spec, &mut parts, Besides::default(), &apart()).unwrap();
        assert!(parts.iter().all(|part| part.here), "{parts:?}");
    }

    #[test]
    fn nothing_moves_because_a_node_has_not_measured_a_kernel_yet() {
        let spec = Spec::fixed("gaussian", 8);
        for (measured, goes) in [(false, false), (true, true)] {
            let slow = NodeLoad { cores: 0.13, rate: 3e8, measured, link: 118e6, ..UNKNOWN };
            let mut parts = [part(64 << 20, Some(slow))];
            let asking = Asking { cores: 0.13, rate: Some(9e8), ..apart() };
            decide(&spec, &mut parts, Besides::default(), &asking).unwrap();
            assert_eq!(parts[0].here, goes, "{parts:?}");
        }
    }

    #[test]
    fn what_was_measured_here_counts() {
        let spec = Spec::fixed("sum", 8);
        for (rate, goes) in [(Some(80e6), true), (Some(5e6), false)] {
            let mut parts = [part(128 << 20, Some(slow(30.0)))];
            decide(&spec, &mut parts, Besides::default(), &Asking { rate, ..apart() }).unwrap();
            assert_eq!(parts[0].here, goes, "{parts:?}");
        }
    }
}
