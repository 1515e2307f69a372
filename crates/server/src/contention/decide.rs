//! Placement of a node's active requests: on the node, or at their clients.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use gristmill_schedule::cluster::{
    Client, Cluster, Machine, Node, RECEIVING, Shard, receiving_rate, sending_rate, worth_while,
};
use gristmill_schedule::{Place, Places, Rates, ScheduleError, paper};
use gristmill_wire::Asker;

use super::active::Active;

/// Quantity that the placement minimises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Objective {
    /// Maximum of processor, link and client time: reading, folding and sending overlap.
    #[default]
    Overlap,
    /// Sum of processor, link and client time, as in equations 4 to 8 of DOSAS (Chen 2012).
    Paper,
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Objective::Overlap => "overlap",
            Objective::Paper => "paper",
        })
    }
}

/// Seconds that a hand-back costs: a request, an answer, and opening the file.
const HAND_BACK_SECONDS: f64 = 0.005;

/// Share of the time that a hand-back must save. Requests come one after another, and each is decided as it comes: one of ten
/// equal requests can save no more than a tenth. A request that runs must save more, see
/// [`Revision`](gristmill_schedule::Revision).
const HAND_BACK_SHARE: f64 = 0.1;

/// Largest ratio between the rate that a client states and the rate of a core of this node, and between the node's link
/// and the client's. Values beyond it are clamped.
const MAX_RATE_RATIO: f64 = 8.0;

/// Largest number of threads of a client that counts.
const MAX_LANES: u32 = 1024;

/// Smallest number of processors of a node in an estimate, so that times are finite.
const LEAST_OWN_CORES: f64 = 1e-4;

/// Smallest number of processors of a client in an estimate.
const LEAST_CORES: f64 = 0.01;

/// State of a node on which decisions depend.
#[derive(Clone, Debug)]
pub(crate) struct Situation {
    /// Processors that active work may use now.
    pub cores: f64,
    /// Threads of a fold.
    pub lanes: f64,
    /// Bytes per second of the outgoing link.
    pub link: f64,
    /// Seconds for which the link still sends handed-back bytes.
    pub link_busy: f64,
    /// Seconds for which each client still folds handed-back work.
    pub clients: HashMap<String, f64>,
    /// Measured bytes per second that clients at these addresses receive.
    pub peers: HashMap<IpAddr, f64>,
    /// Processors of the node.
    pub machine: SharedProcessors,
    /// Bytes per second that one processor sends.
    pub sends: f64,
    pub objective: Objective,
}

/// Processors of the node, which clients on the same machine share.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SharedProcessors {
    /// Name of these processors, if known.
    pub processors: Option<String>,
    /// Processors that other programs leave to folds.
    pub cores: f64,
    /// Processors that control groups allow.
    pub usable: f64,
    /// Processors that active work used lately.
    pub used: f64,
}

impl SharedProcessors {
    /// Whether the client runs on these processors too.
    pub(super) fn includes(&self, asker: &Asker) -> bool {
        self.processors.is_some() && self.processors == asker.processors
    }
}

/// Fewest processors with which a node keeps a request of several passes.
const CORES_FOR_PASSES: f64 = 0.05;

/// Decision about one request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verdict {
    pub place: Place,
    /// Seconds until the request is done on this node, with all others placed as decided.
    pub storage_seconds: f64,
    /// Seconds until the request is done at its client, with all others placed as decided. `None` without a client.
    pub client_seconds: Option<f64>,
}

/// Shard of a request of this client. `stays`: the request does not move.
fn shard(active: &Active, client: usize, rates: &Rates, situation: &Situation, stays: bool) -> Shard {
    let places = Places::ALL.without(Place::Data);
    let asker = active.work.asker.as_ref();
    let known = rates.get(&active.work.kernel);
    let rate = known.rate();
    let stated = asker.and_then(|asker| asker.rate).filter(|_| known.confidence() == 0.0);
    Shard {
        bytes: active.bytes_left(),
        result_bytes: active.work.result_bytes,
        // A rate that the client measured counts more than the node's assumption.
        storage_rate: stated.map_or(rate, |stated| (stated as f64).clamp(rate, rate * MAX_RATE_RATIO)),
        client_rate: asker.map_or(rate, |asker| client_rate(asker, rate, &situation.machine)),
        parallel: situation.lanes,
        overhead: [active.extra_seconds_left(), 0.0, HAND_BACK_SECONDS],
        // A request of several passes would move its bytes in each pass. It moves only if the node has almost no
        // processor for it, since it would not end there.
        places: match asker.is_some()
            && !stays
            && !(active.work.several_passes && situation.cores >= CORES_FOR_PASSES)
        {
            true => places,
            false => places.without(Place::Client),
        },
        ..Shard::of(0, client, 0)
    }
}

/// Bytes per second that a client receives and folds with all its threads. A client on the node's own processors is no
/// faster than the node.
fn client_rate(asker: &Asker, rate: f64, shared: &SharedProcessors) -> f64 {
    let own_rate = receiving_rate(rate, RECEIVING);
    let stated = asker.rate.map_or(own_rate, |stated| stated as f64);
    let most = if shared.includes(asker) { own_rate } else { own_rate * MAX_RATE_RATIO };
    stated.clamp(own_rate / MAX_RATE_RATIO, most) * client_cores(asker, shared)
}

/// Processors with which the client folds.
fn client_cores(asker: &Asker, shared: &SharedProcessors) -> f64 {
    let lanes = f64::from(asker.lanes.clamp(1, MAX_LANES));
    let cores = asker.millicores.map_or(lanes, |cores| f64::from(cores) / 1000.0).clamp(LEAST_CORES, lanes);
    if shared.includes(asker) { cores.min(shared.cores.max(LEAST_CORES)) } else { cores }
}

/// Places all active requests. Requests with a number in `staying` stay: if a plan moved a request that cannot move,
/// another request that could move would wait.
///
/// # Errors
/// Returns an error if a rate or a time is out of range. Then nothing is moved.
pub(crate) fn decide(
    actives: &[Arc<Active>],
    rates: &Rates,
    situation: &Situation,
    staying: &HashSet<u64>,
) -> Result<Vec<Verdict>, ScheduleError> {
    let mut cluster = Cluster::default();
    let (cores, shared) = (situation.cores.max(LEAST_OWN_CORES), &situation.machine);
    let sending = 1.0 / situation.sends;
    let link = sending_rate(situation.link, shared.usable.max(LEAST_OWN_CORES), sending);
    let link_busy = situation.link_busy;
    let machine_cores = shared.cores.max(LEAST_OWN_CORES);
    // Bytes that are still sent take processor time as well.
    let busy = link_busy * situation.link * sending / machine_cores;
    let machine = Some(cluster.machine(Machine { cores: machine_cores, busy }));
    cluster.storage_node(Node { cores, busy: 0.0, link, link_busy, sending, machine });
    let mut clients: HashMap<&str, usize> = HashMap::new();
    let mut shards = Vec::with_capacity(actives.len());
    for active in actives {
        let asker = active.work.asker.as_ref();
        let name = asker.map_or("", |asker| asker.name.as_str());
        let client = *clients.entry(name).or_insert_with(|| {
            let measured = active.work.from.and_then(|from| situation.peers.get(&from).copied());
            let stated = || asker.and_then(|asker| asker.link).map(|stated| stated as f64);
            let known = measured.or_else(stated).unwrap_or(link);
            let busy = situation.clients.get(name).copied().unwrap_or(0.0);
            // A client cannot receive more than this node sends.
            cluster.client(Client {
                busy,
                link: known.clamp(link / MAX_RATE_RATIO, link),
                cores: asker.map_or(1.0, |asker| client_cores(asker, shared)),
                machine: machine.filter(|_| asker.is_some_and(|asker| shared.includes(asker))),
                ..Client::IDLE
            })
        });
        shards.push(shard(active, client, rates, situation, staying.contains(&active.number)));
    }
    let placement = worth_while(&cluster, &shards, HAND_BACK_SHARE)?;
    let mut verdicts: Vec<Verdict> = placement
        .places
        .iter()
        .zip(&placement.costs)
        .map(|(place, costs)| {
            let seconds = |place: Place| costs.get(place.number()).copied().flatten().map(|cost| cost.queued);
            Verdict {
                place: *place,
                storage_seconds: seconds(Place::Storage).unwrap_or(0.0),
                client_seconds: seconds(Place::Client),
            }
        })
        .collect();
    if situation.objective == Objective::Paper {
        let works: Vec<paper::Work> = shards
            .iter()
            .map(|shard| paper::Work {
                bytes: shard.bytes,
                result_bytes: shard.result_bytes,
                storage_rate: shard.storage_rate * cores,
                client_rate: shard.client_rate,
            })
            .collect();
        let places = paper::solve(link, &works)?.places;
        for ((verdict, place), shard) in verdicts.iter_mut().zip(places).zip(&shards) {
            verdict.place = if shard.places.has(place) { place } else { Place::Storage };
        }
    }
    Ok(verdicts)
}

#[cfg(test)]
mod tests;
