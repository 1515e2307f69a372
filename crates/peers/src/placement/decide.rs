//! The placement of one request from the loads of its nodes. Pure.

use gristmill_kernel::{Output, Passes, Spec};
use gristmill_schedule::cluster::{
    Client, Cluster, LEAST_SHARE, Machine, Node, SENDING, Shard, sending_rate, worth_while,
};
use gristmill_schedule::{Place, Places, ScheduleError};
use gristmill_wire::NodeLoad;

use super::NodeDecision;
use super::client_capacity::{ClientCapacity, FAIR_SHARE, MIN_CORES};
use super::extra_work::ExtraWork;
use super::reported_load::{SharedProcessors, for_new_reader, plausible};

/// Seconds that it takes to ask for bytes and to begin with them.
const READ_SECONDS: f64 = 0.005;

/// Seconds of a node's link that one second of its processors may cost. If all work of a node were shared out between both, it
/// would be done sooner by one part in 1 + this, which is the least gain that counts. A client does not see the requests of
/// others, so beyond this limit it would gain at their cost.
const LINK_FOR_CORES: f64 = 1.0 / LEAST_SHARE - 1.0;

/// A client reads over the link in any case if the part would take this many times as long on the node.
const LONG_WAIT: f64 = 10.0;

/// Fewest processors of a node that an estimate assumes.
const MIN_NODE_CORES: f64 = 1e-3;

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
    let groups = SharedProcessors::group(&loads);
    for (part, load) in parts.iter_mut().zip(&loads) {
        let name = load.processors.as_ref().map(|processors| processors.name.as_str());
        let group = groups.iter().find(|group| Some(group.name) == name);
        let reported = part.load.as_ref().map(|_| load.others);
        part.others = reported.map(|others| group.map_or(others, SharedProcessors::used_by_others));
    }
    let machines: Vec<(SharedProcessors<'_>, usize)> = groups
        .into_iter()
        .map(|one| {
            let shared = capacity.processors.as_deref() == Some(one.name);
            // The client has a fair share of them. Folds on nodes get only what nobody else uses.
            let cores = one.free.max(if shared { FAIR_SHARE * one.cores } else { MIN_CORES });
            let number = cluster.machine(Machine { cores, busy: one.queued / cores });
            (SharedProcessors { free: cores, ..one }, number)
        })
        .collect();
    let shared_machine = machines.iter().find(|(one, _)| capacity.processors.as_deref() == Some(one.name));
    // The link of the client is unknown. No node sends faster than its own link.
    let link = loads.iter().map(|load| load.link).fold(1.0, f64::max);
    let cores =
        shared_machine.map_or(capacity.cores * capacity.free, |(one, _)| capacity.cores.min(one.free));
    let cores = cores.max(MIN_CORES);
    let client = cluster.client(Client {
        link,
        cores,
        receiving: capacity.receiving,
        machine: shared_machine.map(|(_, number)| *number),
        ..Client::IDLE
    });
    let several = spec.passes == Passes::Several;
    // Every pass needs all parts. Rows come in the order of the file, so parts at two places wait for each other. If a node
    // takes no work, the parts of the other nodes may stay.
    let in_one_place = several || spec.output != Output::Value && loads.iter().all(|load| load.cores > 0.0);
    let mut shards = Vec::new();
    for (part, load) in parts.iter_mut().zip(&loads) {
        let processors = load.processors.as_ref();
        let machine =
            machines.iter().find(|(one, _)| processors.is_some_and(|processors| processors.name == one.name));
        let (machine, number) = (machine.map(|(one, _)| one), machine.map(|(_, number)| *number));
        part.shares_processors = number.is_some() && number == shared_machine.map(|(_, number)| *number);
        let active = machine.map_or(load.cores, |one| one.cores_of(load)).max(MIN_NODE_CORES);
        let sending = if load.sends > 0.0 { 1.0 / load.sends } else { SENDING };
        let all = processors.map_or(active, |processors| processors.cores);
        let node = cluster.storage_node(Node {
            cores: active,
            busy: load.queued * load.cores / active,
            link: sending_rate(load.link, all, sending),
            link_busy: load.link_busy,
            sending,
            machine: number,
        });
        let rate = capacity.rate.unwrap_or(load.rate);
        // On the same processors nobody is faster than the node.
        let rate = if part.shares_processors { rate.min(load.rate) } else { rate };
        shards.push(Shard {
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
            together: in_one_place.then_some(0),
            ..Shard::of(node, client, 0)
        });
    }
    let placement = worth_while(&cluster, &shards, LEAST_SHARE)?;
    for ((part, place), costs) in parts.iter_mut().zip(&placement.places).zip(&placement.costs) {
        let seconds = |place: Place| costs.get(place.number()).copied().flatten().map(|cost| cost.queued);
        (part.storage_seconds, part.client_seconds) = (seconds(Place::Storage), seconds(Place::Client));
        part.at_client = *place == Place::Client;
    }
    // Each pass would move the file anew.
    let stays = |part: &NodeDecision| {
        takes_too_much_link(part, capacity) || several && part.storage_seconds.is_some()
    };
    let held_back: Vec<bool> = parts.iter().map(|part| part.at_client && stays(part)).collect();
    let all_stay = in_one_place && held_back.contains(&true);
    for (part, stays) in parts.iter_mut().zip(held_back) {
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

/// Whether a part that would be done sooner at the client takes too much of its node's link for the processor time that it
/// saves. The node sees all requests. If the others gain too, it hands the part back.
fn takes_too_much_link(part: &NodeDecision, capacity: &ClientCapacity) -> bool {
    let load = expected(part, capacity);
    let (Some(storage), Some(client)) = (part.storage_seconds, part.client_seconds) else { return false };
    load.rate * load.cores > LINK_FOR_CORES * load.link && storage < LONG_WAIT * client
}

#[cfg(test)]
mod tests;
