//! The placement of one request from the loads of its nodes. Pure.

use gristmill_kernel::{Output, Passes, Spec};
use gristmill_schedule::cluster::{
    Client, Cluster, LEAST_SHARE, Machine, Node, SENDING, Shard, sendable, worth_while,
};
use gristmill_schedule::{Place, Places, ScheduleError};
use gristmill_wire::NodeLoad;

use super::NodeDecision;
use super::client_capacity::{ClientCapacity, FAIR_SHARE, LEAST_CORES};
use super::extra_work::ExtraWork;
use super::reported_load::{SharedProcessors, for_new_reader, plausible};

/// Seconds that it takes to ask for bytes and to begin with them.
const READ_SECONDS: f64 = 0.005;

/// Seconds of a node's link that one second of its processors may cost. If all that a node has to do could be shared out
/// between both, it would be done sooner by one part in 1 + this: by what has to be gained at least. Who does not see the
/// others' requests and takes more gains it from them.
const LINK_FOR_CORES: f64 = 1.0 / LEAST_SHARE - 1.0;

/// A client reads over the link in any case if the part would take this many times as long on the node.
const LONG_WAIT: f64 = 10.0;

/// The least of a node's processors that is reckoned with.
const LEAST_OF_NODE: f64 = 1e-3;

/// Places all parts of one request and returns its expected seconds. `extra_work` is the work of each node in addition to
/// folding.
///
/// # Errors
/// Returns an error if the scheduler refuses the cluster or the shards.
pub(super) fn decide(
    spec: &Spec,
    parts: &mut [NodeDecision],
    extra_work: ExtraWork,
    capacity: &ClientCapacity,
) -> Result<f64, ScheduleError> {
    let loads: Vec<NodeLoad> = parts.iter().map(|part| for_new_reader(expected(part, capacity))).collect();
    let mut cluster = Cluster::default();
    let machines: Vec<(SharedProcessors<'_>, usize)> = SharedProcessors::group(&loads)
        .into_iter()
        .map(|one| {
            let near = capacity.processors.as_deref() == Some(one.name);
            // The client has a fair share of them. Folds on nodes get only what nobody else uses.
            let cores = one.free.max(if near { FAIR_SHARE * one.cores } else { LEAST_CORES });
            let number = cluster.machine(Machine { cores, busy: one.queued / cores });
            (SharedProcessors { free: cores, ..one }, number)
        })
        .collect();
    let beside = machines.iter().find(|(one, _)| capacity.processors.as_deref() == Some(one.name));
    // The link of the client is unknown. No node sends faster than its own link.
    let link = loads.iter().map(|load| load.link).fold(1.0, f64::max);
    let cores = beside.map_or(capacity.cores * capacity.free, |(one, _)| capacity.cores.min(one.free));
    let cores = cores.max(LEAST_CORES);
    let client = cluster.client(Client {
        link,
        cores,
        receiving: capacity.receiving,
        machine: beside.map(|(_, number)| *number),
        ..Client::IDLE
    });
    let several = spec.passes == Passes::Several;
    // Every pass needs all parts. Rows come in the order of the file, so parts at two places wait for each other. If a node
    // takes no work, the parts of the other nodes may stay.
    let together = several || spec.output != Output::Value && loads.iter().all(|load| load.cores > 0.0);
    let mut ordered = Vec::new();
    for (part, load) in parts.iter_mut().zip(&loads) {
        let its = load.processors.as_ref();
        let machine = machines.iter().find(|(one, _)| its.is_some_and(|its| its.name == one.name));
        let (machine, number) = (machine.map(|(one, _)| one), machine.map(|(_, number)| *number));
        part.shares_processors = number.is_some() && number == beside.map(|(_, number)| *number);
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
        let rate = capacity.rate.unwrap_or(load.rate);
        // On the same processors nobody is faster than the node.
        let rate = if part.shares_processors { rate.min(load.rate) } else { rate };
        ordered.push(Shard {
            bytes: part.bytes,
            result_bytes: if spec.output == Output::Bytes { part.bytes } else { spec.state_hint },
            pulled_bytes: extra_work.pulled_bytes,
            storage_rate: load.rate,
            client_rate: rate * cores,
            parallel: f64::from(load.lanes.max(1)),
            overhead: [extra_work.seconds(), 0.0, READ_SECONDS],
            places: match load.cores == 0.0 {
                true => Places::NONE.with(Place::Client),
                false => Places::ALL.without(Place::Data),
            },
            together: together.then_some(0),
            ..Shard::of(node, client, 0)
        });
    }
    let placement = worth_while(&cluster, &ordered, LEAST_SHARE)?;
    for ((part, place), costs) in parts.iter_mut().zip(&placement.places).zip(&placement.costs) {
        let seconds = |place: Place| costs.get(place.number()).copied().flatten().map(|cost| cost.queued);
        (part.storage_seconds, part.client_seconds) = (seconds(Place::Storage), seconds(Place::Client));
        part.at_client = *place == Place::Client;
    }
    // Each pass would move the file anew.
    let stays =
        |part: &NodeDecision| takes_from_others(part, capacity) || several && part.storage_seconds.is_some();
    let gone: Vec<bool> = parts.iter().map(|part| part.at_client && stays(part)).collect();
    let all_stay = together && gone.contains(&true);
    for (part, stays) in parts.iter_mut().zip(gone) {
        part.at_client &= !stays && !all_stay;
    }
    let seconds =
        |part: &NodeDecision| if part.at_client { part.client_seconds } else { part.storage_seconds };
    Ok(parts.iter().filter_map(seconds).fold(0.0, f64::max))
}

/// The load of a part's node. A rate that was measured here counts more than one that the node only expects.
fn expected(part: &NodeDecision, capacity: &ClientCapacity) -> NodeLoad {
    let load = plausible(part.load.as_ref());
    let measured = capacity.rate.filter(|_| !load.measured);
    NodeLoad { rate: measured.unwrap_or(load.rate), ..load }
}

/// Whether a part that would be done sooner here takes too much of its node's link for what it spares its processors. If
/// the others gain by it, the node hands it back, for it sees them all.
fn takes_from_others(part: &NodeDecision, capacity: &ClientCapacity) -> bool {
    let load = expected(part, capacity);
    let (Some(storage), Some(client)) = (part.storage_seconds, part.client_seconds) else { return false };
    load.rate * load.cores > LINK_FOR_CORES * load.link && storage < LONG_WAIT * client
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use gristmill_wire::Processors;

    use super::super::reported_load::UNKNOWN;
    use super::*;

    /// A process with a core of its own.
    fn apart() -> ClientCapacity {
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
        decide(&spec, &mut parts, ExtraWork::default(), &apart()).unwrap();
        assert!(!parts[0].at_client, "{parts:?}");
        let mut parts = [part(128 << 20, Some(slow(30.0)))];
        let seconds = decide(&spec, &mut parts, ExtraWork::default(), &apart()).unwrap();
        assert!(parts[0].at_client && seconds < 30.1, "{parts:?}");
        assert!(parts[0].storage_seconds > parts[0].client_seconds);
    }

    #[test]
    fn messages_to_neighbours_cost_time() {
        let spec = Spec::lines("grep");
        for (messages, goes) in [(0, false), (100, false), (100_000, true)] {
            let mut parts = [part(128 << 20, Some(slow(0.0)))];
            decide(&spec, &mut parts, ExtraWork { messages, ..ExtraWork::default() }, &apart()).unwrap();
            assert_eq!(parts[0].at_client, goes, "{messages}");
        }
    }

    #[test]
    fn fewer_go_where_many_read_already() {
        let spec = Spec::fixed("sum", 8);
        for (normal, goes) in [(0, true), (4, true), (40, false), (u64::MAX, false)] {
            let mut parts = [part(128 << 20, Some(NodeLoad { normal, ..slow(30.0) }))];
            decide(&spec, &mut parts, ExtraWork::default(), &apart()).unwrap();
            assert_eq!(parts[0].at_client, goes, "{normal}");
        }
    }

    #[test]
    fn nobody_takes_the_link_for_little() {
        // SUM at the paper's rates: seven seconds of the link for one of the processor.
        let spec = Spec::fixed("sum", 8);
        let fast = |queued: f64| NodeLoad { rate: 860e6, ..slow(queued) };
        for (queued, goes) in [(0.5, false), (2.0, false), (9.0, false), (20.0, true)] {
            let mut parts = [part(128 << 20, Some(fast(queued)))];
            let seconds = decide(&spec, &mut parts, ExtraWork::default(), &apart()).unwrap();
            assert_eq!(parts[0].at_client, goes, "{queued}");
            assert_eq!(Some(seconds), if goes { parts[0].client_seconds } else { parts[0].storage_seconds });
        }
    }

    #[test]
    fn parts_go_different_ways_unless_they_belong_together() {
        let mut spec = Spec::fixed("sum", 8);
        let both = || [part(64 << 20, Some(slow(0.0))), part(64 << 20, Some(slow(60.0)))];
        let mut parts = both();
        decide(&spec, &mut parts, ExtraWork::default(), &apart()).unwrap();
        assert_eq!(parts.map(|part| part.at_client), [false, true]);
        spec.passes = Passes::Several;
        let mut parts = both();
        decide(&spec, &mut parts, ExtraWork::default(), &apart()).unwrap();
        assert_eq!(parts[0].at_client, parts[1].at_client);
    }

    #[test]
    fn a_node_that_takes_no_work_gets_none() {
        let none = NodeLoad { cores: 0.0, ..UNKNOWN };
        let mut parts = [part(64 << 20, Some(none)), part(64 << 20, None)];
        decide(&Spec::fixed("sum", 8), &mut parts, ExtraWork::default(), &apart()).unwrap();
        assert!(parts[0].at_client && !parts[1].at_client);
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
            assert_eq!(plausible(Some(&lie)), UNKNOWN, "{lie:?}");
            decide(&Spec::fixed("sum", 8), &mut [part(1 << 30, Some(lie))], ExtraWork::default(), &apart())
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

    fn beside(rate: Option<f64>) -> ClientCapacity {
        ClientCapacity { cores: 2.0, free: 1.0, processors: Some(HERE.into()), rate, receiving: 0.4e-9 }
    }

    #[test]
    fn nothing_moves_to_a_process_on_the_processors_of_the_nodes() {
        let spec = Spec::fixed("sum", 8);
        for rate in [5e7, 1e9, 1e10] {
            for queued in [0.0, 0.5, 20.0] {
                // However fast it was here once, it is no faster than the nodes on the same processors.
                for known in [None, Some(1e11)] {
                    let mut parts = up(|load| (load.rate, load.queued) = (rate, queued));
                    decide(&spec, &mut parts, ExtraWork::default(), &beside(known)).unwrap();
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
    fn a_process_beside_goes_round_what_its_nodes_may_not_use() {
        let spec = Spec::fixed("sum", 8);
        let capped = |load: &mut NodeLoad| {
            (load.cores, load.rate) = (0.02, 3e8);
            if let Some(its) = &mut load.processors {
                its.most = 0.02;
            }
        };
        let mut parts = up(capped);
        decide(&spec, &mut parts, ExtraWork::default(), &beside(None)).unwrap();
        assert!(parts.iter().all(|part| part.at_client), "{parts:?}");
    }

    #[test]
    fn others_that_take_all_processors_are_no_reason_to_wait_for_the_rest() {
        // Folds on nodes get what nobody else wants; a process that asks gets its share.
        let spec = Spec::fixed("sum", 8);
        let mut parts = up(|load| (load.cores, load.others, load.rate) = (0.006, 1.0, 3e8));
        decide(&spec, &mut parts, ExtraWork::default(), &beside(None)).unwrap();
        assert!(parts.iter().all(|part| part.at_client), "{parts:?}");
    }

    #[test]
    fn several_passes_are_folded_where_each_need_not_be_moved() {
        let mut spec = Spec::fixed("median", 8);
        spec.passes = Passes::Several;
        let mut parts = [part(128 << 20, Some(slow(60.0)))];
        decide(&spec, &mut parts, ExtraWork::default(), &apart()).unwrap();
        assert!(!parts[0].at_client && parts[0].client_seconds.is_some(), "{parts:?}");
        // Unless a node takes no work at all.
        let mut parts =
            [part(128 << 20, Some(slow(0.0))), part(1 << 20, Some(NodeLoad { cores: 0.0, ..UNKNOWN }))];
        decide(&spec, &mut parts, ExtraWork::default(), &apart()).unwrap();
        assert!(parts.iter().all(|part| part.at_client), "{parts:?}");
    }

    #[test]
    fn nothing_moves_because_a_node_has_not_measured_a_kernel_yet() {
        let spec = Spec::fixed("gaussian", 8);
        for (measured, goes) in [(false, false), (true, true)] {
            let slow = NodeLoad { cores: 0.13, rate: 3e8, measured, link: 118e6, ..UNKNOWN };
            let mut parts = [part(64 << 20, Some(slow))];
            let capacity = ClientCapacity { cores: 0.13, rate: Some(9e8), ..apart() };
            decide(&spec, &mut parts, ExtraWork::default(), &capacity).unwrap();
            assert_eq!(parts[0].at_client, goes, "{parts:?}");
        }
    }

    #[test]
    fn what_was_measured_here_counts() {
        let spec = Spec::fixed("sum", 8);
        for (rate, goes) in [(Some(80e6), true), (Some(5e6), false)] {
            let mut parts = [part(128 << 20, Some(slow(30.0)))];
            decide(&spec, &mut parts, ExtraWork::default(), &ClientCapacity { rate, ..apart() }).unwrap();
            assert_eq!(parts[0].at_client, goes, "{parts:?}");
        }
    }
}
