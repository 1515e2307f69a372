//! Where each part of a request had better run, from what its nodes say of their load.
//!
//! Whoever asks decides once, before it begins; nodes may think again while it runs.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use gristmill_kernel::{Output, Passes, Spec};
use gristmill_layout::Layout;
use gristmill_runtime::{RunError, quota};
use gristmill_schedule::cluster::{Client, Cluster, LEAST_SHARE, Node, Shard, worth_while};
use gristmill_schedule::{MIN_RATE, Place, Places, ScheduleError};
use gristmill_wire::{FileMap, MAX_LOAD_BYTES, NodeLoad};

use crate::bytes::node_name;
use crate::error::unavailable;
use crate::{Files, Peers, Plan, shards};

/// Longest time that somebody waits for what nodes say.
const LOAD_WAIT: Duration = Duration::from_secs(1);

/// Below so many bytes nobody asks: sooner done than decided.
pub const LEAST_DECIDED: u64 = 1 << 20;

/// Seconds that it takes to ask for bytes and to begin with them.
const READ_SECONDS: f64 = 0.005;

/// Share of a busy machine that folds can count on.
const FAIR_SHARE: f64 = 0.25;

/// Seconds of a node's link that one second of its processors may cost. If all that a node has to do could be shared out
/// between both, it would be done sooner by one part in 1 + this: by what has to be gained at least. Who does not see the
/// others' requests and takes more gains it from them.
const LINK_FOR_CORES: f64 = 1.0 / LEAST_SHARE - 1.0;

/// Who would wait so many times as long takes it all the same.
const LONG_WAIT: f64 = 10.0;

/// The smallest part of a processor that is reckoned with.
const LEAST_CORES: f64 = 0.01;

/// What is said of a node that says nothing, or something that cannot be.
const UNKNOWN: NodeLoad = NodeLoad {
    target: 0,
    cores: 1.0,
    lanes: 1,
    rate: 1e9,
    measured: false,
    link: 1.25e9,
    link_measured: false,
    link_busy: 0.0,
    active: 0,
    running: 0,
    normal: 0,
    queued: 0.0,
    cpu: 0.0,
    others: 0.0,
    memory: None,
    io: None,
};

/// What one node is to do, and what it costs.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeDecision {
    /// The node, as messages name it.
    pub node: String,
    /// Its targets, as places in the file's layout.
    pub targets: Vec<u32>,
    /// Bytes that these have of what is asked.
    pub bytes: u64,
    /// Whether whoever asks folds them.
    pub here: bool,
    /// Seconds on the node, and here, if everything else is as decided.
    pub storage_seconds: Option<f64>,
    /// See [`storage_seconds`](NodeDecision::storage_seconds).
    pub client_seconds: Option<f64>,
    /// What the node said; nothing if it did not answer.
    pub load: Option<NodeLoad>,
}

/// Where all of it is to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// One entry for each node that has some of it.
    pub nodes: Vec<NodeDecision>,
    /// Seconds that it is expected to take.
    pub seconds: f64,
}

impl Decision {
    /// Targets that whoever asks folds.
    pub fn here(&self) -> Vec<u32> {
        self.nodes.iter().filter(|node| node.here).flat_map(|node| node.targets.iter().copied()).collect()
    }

    /// Whether whoever asks folds all of it.
    pub fn all_here(&self) -> bool {
        !self.nodes.is_empty() && self.nodes.iter().all(|node| node.here)
    }
}

impl Peers {
    /// What the nodes of a file say of their load; nothing of those that do not answer in time.
    fn loads(&self, nodes: &[String], grant: &Arc<str>, kernel: &str) -> Vec<Option<NodeLoad>> {
        let asked = nodes.iter().map(|address| async move {
            tokio::time::timeout(LOAD_WAIT, self.load(address, grant, kernel)).await.ok()?.ok()
        });
        self.wait(async { join_all(asked).await })
    }

    async fn load(&self, address: &str, grant: &str, kernel: &str) -> Result<NodeLoad, RunError> {
        let text = self.told(address, &format!("/load/{kernel}"), Some(grant), MAX_LOAD_BYTES).await?;
        serde_json::from_slice(&text).map_err(|error| unavailable(address, error))
    }

    /// Asks the nodes of a file how fast they are at `kernel`, and decides where the parts of a planned request run that may run anywhere. `lanes` are
    /// the threads that fold here. `None` if there is nothing to decide.
    pub fn decide(
        &self,
        (kernel, spec): (&str, &Spec),
        plan: &Plan,
        files: &Files,
        layout: &Layout,
        lanes: usize,
    ) -> Option<Decision> {
        if plan.client_bytes < LEAST_DECIDED || !spec.can_save {
            return None;
        }
        let (file, grant): (&FileMap, Arc<str>) = (files.map(), files.grant());
        let mut nodes = Vec::new();
        for shard in shards(file) {
            let has = shard.targets.iter().map(|target| plan.on_target(layout, *target)).sum::<u64>();
            if has > 0 {
                nodes.push((shard, has));
            }
        }
        let addresses: Vec<String> = nodes.iter().map(|(shard, _)| shard.address.clone()).collect();
        let loads = self.loads(&addresses, &grant, kernel);
        let parts = nodes.into_iter().zip(loads).map(|((shard, bytes), load)| {
            let number = shard.targets.first().and_then(|target| file.targets.get(*target as usize));
            let node = node_name(number.map_or(0, |target| target.number), &shard.address);
            NodeDecision {
                node,
                targets: shard.targets,
                bytes,
                here: false,
                storage_seconds: None,
                client_seconds: None,
                load,
            }
        });
        let mut parts: Vec<NodeDecision> = parts.collect();
        let pulled = plan.pulled_bytes / parts.len().max(1) as u64;
        let seconds = decide(spec, &mut parts, pulled, cores(lanes)).ok()?;
        Some(Decision { nodes: parts, seconds })
    }
}

/// Processors that so many threads can count on here: as many as a quota lets this process use, or else fewer where others
/// have waited for them lately.
fn cores(lanes: usize) -> f64 {
    match quota() {
        // A group that has used its quota up waits too, so waiting says nothing then.
        Some(quota) => quota.min(lanes as f64),
        None => lanes as f64 * free(),
    }
}

/// Share of this machine's processors that folds here can count on, 0 to 1.
fn free() -> f64 {
    let waited = |text: &str| -> Option<f64> {
        text.strip_prefix("some avg10=")?.split_whitespace().next()?.parse().ok()
    };
    let pressure = std::fs::read_to_string("/proc/pressure/cpu").ok();
    let waited = pressure.as_deref().and_then(waited).unwrap_or(0.0);
    if waited.is_finite() { (1.0 - waited / 100.0).clamp(FAIR_SHARE, 1.0) } else { 1.0 }
}

/// What a node said, if it can be.
fn believed(load: Option<&NodeLoad>) -> NodeLoad {
    let number = |x: f64, least: f64, most: f64| x.is_finite() && (least..=most).contains(&x);
    load.filter(|load| {
        number(load.cores, 0.0, 1e5)
            && number(load.rate, 1.0, 1e13)
            && number(load.link, 1.0, 1e13)
            && number(load.link_busy, 0.0, 1e7)
            && number(load.queued, 0.0, 1e7)
    })
    .cloned()
    .unwrap_or(UNKNOWN)
}

/// What somebody who comes now has of a node's link: those who read or write there have theirs of it, also those who came
/// just before and chose the same.
fn shared(load: NodeLoad) -> NodeLoad {
    let link = (load.link / (1.0 + load.normal as f64)).max(MIN_RATE);
    NodeLoad { link, ..load }
}

/// Decides for all parts of one request, that would be folded here by `lanes`. Gives the seconds that it takes.
fn decide(spec: &Spec, parts: &mut [NodeDecision], pulled: u64, lanes: f64) -> Result<f64, ScheduleError> {
    let mut cluster = Cluster::default();
    let loads: Vec<NodeLoad> = parts.iter().map(|part| shared(believed(part.load.as_ref()))).collect();
    // One's own link is not known; no node sends faster than its own.
    let link = loads.iter().map(|load| load.link).fold(1.0, f64::max);
    let client = cluster.client(Client { link, ..Client::IDLE });
    let mut ordered = Vec::new();
    for (part, load) in parts.iter().zip(&loads) {
        let cores = load.cores.max(1e-3);
        let node = Node { cores, busy: load.queued, link: load.link, link_busy: load.link_busy };
        let node = cluster.storage_node(node);
        let mut places = Places::ALL.without(Place::Data);
        if load.cores == 0.0 {
            places = places.without(Place::Storage);
        }
        ordered.push(Shard {
            bytes: part.bytes,
            result_bytes: if spec.output == Output::Bytes { part.bytes } else { spec.state_hint },
            pulled_bytes: pulled,
            storage_rate: load.rate,
            client_rate: load.rate * lanes.max(LEAST_CORES),
            parallel: f64::from(load.lanes.max(1)),
            overhead: [0.0, 0.0, READ_SECONDS],
            places,
            // Every pass needs all of them.
            together: (spec.passes == Passes::Several).then_some(0),
            ..Shard::of(node, client, 0)
        });
    }
    let placement = worth_while(&cluster, &ordered)?;
    for ((part, place), costs) in parts.iter_mut().zip(&placement.places).zip(&placement.costs) {
        let seconds = |place: Place| costs.get(place.number()).copied().flatten().map(|cost| cost.queued);
        (part.storage_seconds, part.client_seconds) = (seconds(Place::Storage), seconds(Place::Client));
        part.here = *place == Place::Client;
    }
    let gone: Vec<bool> = parts.iter().map(|part| part.here && takes_from_others(part)).collect();
    let all_stay = spec.passes == Passes::Several && gone.contains(&true);
    for (part, stays) in parts.iter_mut().zip(gone) {
        part.here &= !stays && !all_stay;
    }
    let seconds = |part: &NodeDecision| if part.here { part.client_seconds } else { part.storage_seconds };
    Ok(parts.iter().filter_map(seconds).fold(0.0, f64::max))
}

/// Whether a part that would be done sooner here takes too much of its node's link for what it spares its processors. If
/// the others gain by it, the node hands it back, for it sees them all.
fn takes_from_others(part: &NodeDecision) -> bool {
    let load = believed(part.load.as_ref());
    let (Some(storage), Some(client)) = (part.storage_seconds, part.client_seconds) else { return false };
    load.rate * load.cores > LINK_FOR_CORES * load.link && storage < LONG_WAIT * client
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn part(bytes: u64, load: Option<NodeLoad>) -> NodeDecision {
        NodeDecision {
            node: "0 (here)".into(),
            targets: vec![0],
            bytes,
            here: false,
            storage_seconds: None,
            client_seconds: None,
            load,
        }
    }

    fn slow(queued: f64) -> NodeLoad {
        NodeLoad { rate: 80e6, link: 118e6, queued, ..UNKNOWN }
    }

    #[test]
    fn an_idle_node_folds_and_a_busy_one_does_not() {
        let spec = Spec::fixed("sum", 8);
        let mut parts = [part(128 << 20, Some(slow(0.0)))];
        decide(&spec, &mut parts, 0, 1.0).unwrap();
        assert!(!parts[0].here, "{parts:?}");
        let mut parts = [part(128 << 20, Some(slow(30.0)))];
        let seconds = decide(&spec, &mut parts, 0, 1.0).unwrap();
        assert!(parts[0].here && seconds < 30.1, "{parts:?}");
        assert!(parts[0].storage_seconds > parts[0].client_seconds);
    }

    #[test]
    fn fewer_go_where_many_read_already() {
        let spec = Spec::fixed("sum", 8);
        for (normal, goes) in [(0, true), (4, true), (40, false), (u64::MAX, false)] {
            let mut parts = [part(128 << 20, Some(NodeLoad { normal, ..slow(30.0) }))];
            decide(&spec, &mut parts, 0, 1.0).unwrap();
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
            let seconds = decide(&spec, &mut parts, 0, 1.0).unwrap();
            assert_eq!(parts[0].here, goes, "{queued}");
            assert_eq!(Some(seconds), if goes { parts[0].client_seconds } else { parts[0].storage_seconds });
        }
    }

    #[test]
    fn parts_go_different_ways_unless_they_belong_together() {
        let mut spec = Spec::fixed("sum", 8);
        let both = || [part(64 << 20, Some(slow(0.0))), part(64 << 20, Some(slow(60.0)))];
        let mut parts = both();
        decide(&spec, &mut parts, 0, 1.0).unwrap();
        assert_eq!(parts.map(|part| part.here), [false, true]);
        spec.passes = Passes::Several;
        let mut parts = both();
        decide(&spec, &mut parts, 0, 1.0).unwrap();
        assert_eq!(parts[0].here, parts[1].here);
    }

    #[test]
    fn a_node_that_takes_no_work_gets_none() {
        let none = NodeLoad { cores: 0.0, ..UNKNOWN };
        let mut parts = [part(64 << 20, Some(none)), part(64 << 20, None)];
        decide(&Spec::fixed("sum", 8), &mut parts, 0, 1.0).unwrap();
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
            decide(&Spec::fixed("sum", 8), &mut [part(1 << 30, Some(lie))], 0, 4.0).unwrap();
        }
    }
}
