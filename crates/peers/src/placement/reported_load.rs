//! The loads that nodes report, with values checked for plausibility.

use gristmill_schedule::MIN_RATE;
use gristmill_wire::{NodeLoad, Processors, is_processors_name};

/// The load that is assumed of a node that reports none, or one with impossible values.
pub(super) const UNKNOWN: NodeLoad = NodeLoad {
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
    processors: None,
    sends: 0.0,
};

fn number(x: f64, least: f64, most: f64) -> bool {
    x.is_finite() && (least..=most).contains(&x)
}

/// The reported load, or [`UNKNOWN`] if a value is impossible.
pub(super) fn plausible(load: Option<&NodeLoad>) -> NodeLoad {
    let mut load = load
        .filter(|load| {
            number(load.cores, 0.0, 1e5)
                && number(load.rate, 1.0, 1e13)
                && number(load.link, 1.0, 1e13)
                && number(load.link_busy, 0.0, 1e7)
                && number(load.queued, 0.0, 1e7)
                && number(load.others, 0.0, 1.0)
        })
        .cloned()
        .unwrap_or(UNKNOWN);
    load.processors = load.processors.filter(is_plausible);
    load.sends = if number(load.sends, 1e6, 1e12) { load.sends } else { 0.0 };
    load
}

fn is_plausible(processors: &Processors) -> bool {
    is_processors_name(&processors.name)
        && number(processors.cores, 1e-3, 1e5)
        && number(processors.most, 0.0, 1e5)
        && number(processors.used, 0.0, 1e5)
}

/// The load with the bytes per second that a new reader would get from the node's link. Clients that already read or
/// write there share the link, also those that chose it a moment before.
pub(super) fn for_new_reader(load: NodeLoad) -> NodeLoad {
    let link = (load.link / (1.0 + load.normal as f64)).max(MIN_RATE);
    NodeLoad { link, ..load }
}

/// The processors of several nodes that run on the same ones.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SharedProcessors<'a> {
    pub name: &'a str,
    /// Number of processors.
    pub cores: f64,
    /// Number of processors that nothing but active work uses.
    pub free: f64,
    /// Seconds of cores for which the nodes have active work.
    pub queued: f64,
    /// Processors that active work of all the nodes used lately.
    pub used: f64,
}

impl<'a> SharedProcessors<'a> {
    /// Groups the nodes by the processors that they name.
    pub fn group(loads: &'a [NodeLoad]) -> Vec<SharedProcessors<'a>> {
        let mut all: Vec<SharedProcessors<'a>> = Vec::new();
        for (load, processors) in loads.iter().filter_map(|load| Some((load, load.processors.as_ref()?))) {
            let (cores, queued) = (processors.cores, load.queued * load.cores);
            match all.iter_mut().find(|one| one.name == processors.name) {
                None => {
                    let name = &processors.name;
                    all.push(SharedProcessors { name, cores, free: 0.0, queued, used: processors.used });
                }
                Some(one) => {
                    one.cores = one.cores.max(cores);
                    one.queued += queued;
                    one.used += processors.used;
                }
            }
        }
        for (load, processors) in loads.iter().filter_map(|load| Some((load, load.processors.as_ref()?))) {
            if let Some(one) = all.iter_mut().find(|one| one.name == processors.name) {
                // A node counts the folds of its neighbours as work of other programs. `others` is a share of the whole
                // machine: a node that may use only a part of the machine, and gets all of it, has lost nothing to
                // others.
                let usable = match load.cores >= processors.most && processors.most >= processors.cores {
                    true => one.cores,
                    false => one.cores * (1.0 - load.others) + one.used - processors.used,
                };
                one.free = one.free.max(usable.min(one.cores));
            }
        }
        all
    }

    /// Share of the processors that other programs than these nodes use, 0 to 1.
    pub fn used_by_others(&self) -> f64 {
        (1.0 - self.free / self.cores).clamp(0.0, 1.0)
    }

    /// Processors that one of these nodes may use for active work if its neighbours use none.
    pub fn cores_of(&self, load: &NodeLoad) -> f64 {
        match &load.processors {
            Some(processors) => {
                (load.cores + self.used - processors.used).min(processors.most).max(load.cores)
            }
            None => load.cores,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, others: f64, used: f64) -> NodeLoad {
        let processors = Processors { name: name.into(), cores: 2.0, most: 2.0, used };
        NodeLoad { cores: 2.0 * (1.0 - others), others, queued: 1.0, processors: Some(processors), ..UNKNOWN }
    }

    #[test]
    fn folds_of_neighbours_are_not_work_of_others() {
        let name = "0123456789abcdef";
        // Four nodes take half a core each.
        let loads: Vec<NodeLoad> = (0..4).map(|_| node(name, 0.75, 0.5)).collect();
        let shared = SharedProcessors::group(&loads);
        assert_eq!((shared.len(), shared[0].cores, shared[0].free), (1, 2.0, 2.0));
        assert_eq!((shared[0].queued, shared[0].cores_of(&loads[0])), (2.0, 2.0));
        // Another program takes one core.
        let loads: Vec<NodeLoad> = (0..2).map(|_| node(name, 0.75, 0.5)).collect();
        let shared = SharedProcessors::group(&loads);
        assert_eq!((shared[0].free, shared[0].cores_of(&loads[0])), (1.0, 1.0));
        // Nodes on other processors are not neighbours.
        let loads = [node(name, 0.0, 0.0), node("fedcba9876543210", 0.0, 0.0), UNKNOWN];
        assert_eq!(SharedProcessors::group(&loads).len(), 2);
    }

    #[test]
    fn others_on_a_large_machine_take_nothing_from_a_small_quota() {
        let processors = Processors { name: "0123456789abcdef".into(), cores: 0.2, most: 0.2, used: 0.0 };
        let load = NodeLoad { cores: 0.2, others: 0.3, processors: Some(processors.clone()), ..UNKNOWN };
        assert_eq!(SharedProcessors::group(&[load])[0].free, 0.2);
        // If the others leave less than the quota, only the rest counts.
        let load = NodeLoad { cores: 0.1, others: 0.95, processors: Some(processors), ..UNKNOWN };
        assert!(SharedProcessors::group(&[load])[0].free < 0.1);
    }

    #[test]
    fn impossible_names_and_numbers_are_not_believed() {
        for processors in [
            Processors { name: "x".repeat(16), ..Processors::default() },
            Processors { name: "0".repeat(17), cores: 1.0, ..Processors::default() },
            Processors { name: "0".repeat(16), cores: f64::NAN, ..Processors::default() },
            Processors { name: "0".repeat(16), cores: 1.0, most: 1.0, used: -1.0 },
        ] {
            let load = NodeLoad { processors: Some(processors), sends: f64::INFINITY, ..UNKNOWN };
            assert_eq!(plausible(Some(&load)), UNKNOWN);
        }
    }
}
