//! Placement of a node's active requests: on the node, or at their clients.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use gristmill_schedule::cluster::{
    Client, Cluster, Machine, Node, RECEIVING, Shard, received, sendable, worth_while,
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
        bytes: active.left(),
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
            && !(active.work.several && situation.cores >= CORES_FOR_PASSES)
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
    let own_rate = received(rate, RECEIVING);
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
    let link = sendable(situation.link, shared.usable.max(LEAST_OWN_CORES), sending);
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
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use gristmill_runtime::Control;

    use super::*;
    use crate::ActivePriority;
    use crate::contention::active::{ActiveList, Work};
    use crate::contention::normal::NormalCount;
    use crate::contention::pace::{Cap, FoldPace};
    use crate::hand_off::HandOff;

    /// Name of the node's processors.
    const NODE_PROCESSORS: &str = "0123456789abcdef";

    /// Filters of 128 MB at the paper's rates: 80 MB/s per core, 118 MB/s per link, one core.
    fn verdicts(count: u32, objective: Objective, change: impl Fn(u32, &mut Work)) -> Vec<Verdict> {
        staying(count, objective, change, &HashSet::new())
    }

    /// The same, with these requests staying.
    fn staying(
        count: u32,
        objective: Objective,
        change: impl Fn(u32, &mut Work),
        staying: &HashSet<u64>,
    ) -> Vec<Verdict> {
        let (list, cap) = (
            ActiveList::default(),
            Arc::new(Cap::new(1.0, 1.0, ActivePriority::Idle, NormalCount::default())),
        );
        for number in 0..count {
            let asker = Asker {
                name: format!("{number}"),
                lanes: 1,
                millicores: None,
                rate: None,
                link: None,
                processors: None,
            };
            let mut work = Work {
                kernel: "filter".into(),
                principal: "anonymous".into(),
                asked_by: None,
                asker: Some(asker),
                from: Some(IpAddr::from([10, 0, 0, 1])),
                bytes: 128 << 20,
                result_bytes: 64,
                record: 1,
                several: false,
                extra_seconds: 0.0,
            };
            change(number, &mut work);
            list.add(work, Arc::new(HandOff::new(&Arc::new(Control::new()), FoldPace::for_tests(&cap))), 0.0);
        }
        let rates = Rates::new(80e6).unwrap();
        let situation = Situation {
            cores: 1.0,
            lanes: 1.0,
            link: 118e6,
            link_busy: 0.0,
            clients: HashMap::new(),
            peers: HashMap::from([(IpAddr::from([10, 0, 0, 2]), 15e6)]),
            machine: SharedProcessors {
                processors: Some(NODE_PROCESSORS.into()),
                cores: 1.0,
                usable: 1.0,
                used: 0.0,
            },
            sends: 1e9,
            objective,
        };
        decide(&list.all(), &rates, &situation, staying).unwrap()
    }

    #[test]
    fn the_paper_s_filter_stays_alone_and_goes_in_a_crowd() {
        for (count, goes) in [(1, false), (2, false), (8, true), (64, true)] {
            let verdicts = verdicts(count, Objective::Paper, |_, _| ());
            assert!(verdicts.iter().all(|one| (one.place == Place::Client) == goes), "{count}: {verdicts:?}");
        }
        // If both places work at once, some requests stay.
        let crowd = verdicts(64, Objective::Overlap, |_, _| ());
        let gone = crowd.iter().filter(|one| one.place == Place::Client).count();
        assert!((20..60).contains(&gone), "{gone}");
    }

    #[test]
    fn nothing_goes_because_the_node_has_not_measured_a_kernel_yet() {
        let one = verdicts(1, Objective::Overlap, |_, work| {
            if let Some(asker) = &mut work.asker {
                asker.rate = Some(400_000_000);
            }
        });
        assert_eq!(one[0].place, Place::Storage, "{one:?}");
    }

    #[test]
    fn nothing_goes_to_who_runs_on_the_same_processors() {
        for count in [1, 8, 64] {
            let crowd = verdicts(count, Objective::Overlap, |_, work| {
                if let Some(asker) = &mut work.asker {
                    // The speed that the client states has no effect.
                    (asker.processors, asker.rate, asker.lanes) =
                        (Some(NODE_PROCESSORS.into()), Some(u64::MAX), 64);
                }
            });
            assert!(crowd.iter().all(|one| one.place == Place::Storage), "{count}: {crowd:?}");
        }
        let others = verdicts(64, Objective::Overlap, |_, work| {
            if let Some(asker) = &mut work.asker {
                asker.processors = Some("fedcba9876543210".into());
            }
        });
        assert!(others.iter().any(|one| one.place == Place::Client));
    }

    #[test]
    fn what_is_folded_in_several_passes_is_not_moved_in_each() {
        for objective in [Objective::Paper, Objective::Overlap] {
            let crowd = verdicts(64, objective, |number, work| work.several = number % 2 == 0);
            let stays = |(number, one): (usize, &Verdict)| number % 2 == 1 || one.place == Place::Storage;
            assert!(crowd.iter().enumerate().all(stays), "{crowd:?}");
            assert!(crowd.iter().any(|one| one.place == Place::Client));
        }
    }

    #[test]
    fn one_goes_instead_of_one_that_stays() {
        for stays in 0..2 {
            let verdicts = staying(2, Objective::Overlap, |_, _| (), &HashSet::from([stays]));
            let places: Vec<Place> = verdicts.iter().map(|one| one.place).collect();
            let mut expected = [Place::Client; 2];
            expected[stays as usize] = Place::Storage;
            assert_eq!(places, expected);
        }
    }

    #[test]
    fn what_nobody_goes_on_with_stays() {
        for objective in [Objective::Paper, Objective::Overlap] {
            let verdicts = verdicts(32, objective, |number, work| {
                work.asker = work.asker.take().filter(|_| number % 2 == 0);
            });
            assert!(verdicts.iter().skip(1).step_by(2).all(|one| one.place == Place::Storage));
        }
    }

    #[test]
    fn a_client_whose_link_was_measured_as_slow_is_handed_less_back() {
        let gone = |verdicts: &[Verdict]| verdicts.iter().filter(|one| one.place == Place::Client).count();
        let measured = |last: u8| {
            verdicts(16, Objective::Overlap, move |_, work| {
                work.from = Some(IpAddr::from([10, 0, 0, last]));
                // A measurement counts more than the speed that the client states.
                if let Some(asker) = &mut work.asker {
                    (asker.name, asker.link) = ("one".into(), Some(118_000_000));
                }
            })
        };
        let (fast, slow) = (measured(1), measured(2));
        assert!(gone(&slow) < gone(&fast), "{} of {}", gone(&slow), gone(&fast));
    }

    #[test]
    fn a_client_that_lies_gets_no_more_than_one_that_is_eight_times_as_fast() {
        let lies = |stated: u64| {
            verdicts(16, Objective::Overlap, move |_, work| {
                if let Some(asker) = &mut work.asker {
                    (asker.rate, asker.lanes) = (Some(stated), 1);
                }
            })
        };
        assert_eq!(lies(u64::MAX), lies(640_000_000));
        assert_eq!(lies(0), lies(9_000_000));
    }
}
