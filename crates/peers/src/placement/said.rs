//! What nodes say of themselves, as far as it can be.

use gristmill_schedule::MIN_RATE;
use gristmill_wire::{NodeLoad, Processors, names_processors};

/// What is said of a node that says nothing, or something that cannot be.
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

/// What a node said, if it can be.
pub(super) fn believed(load: Option<&NodeLoad>) -> NodeLoad {
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
    load.processors = load.processors.filter(can_be);
    load.sends = if number(load.sends, 1e6, 1e12) { load.sends } else { 0.0 };
    load
}

fn can_be(processors: &Processors) -> bool {
    names_processors(&processors.name)
        && number(processors.cores, 1e-3, 1e5)
        && number(processors.most, 0.0, 1e5)
        && number(processors.used, 0.0, 1e5)
}

/// What somebody who comes now has of a node's link: those who read or write there have theirs of it, also those who came
/// just before and chose the same.
pub(super) fn shared(load: NodeLoad) -> NodeLoad {
    let link = (load.link / (1.0 + load.normal as f64)).max(MIN_RATE);
    NodeLoad { link, ..load }
}

/// The processors of several nodes that run on the same ones.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Together<'a> {
    pub name: &'a str,
    /// All of them, and those that nobody but active work uses.
    pub cores: f64,
    pub free: f64,
    /// Seconds of cores for which the nodes have active work.
    pub queued: f64,
    /// Those that active work of all the nodes used lately.
    pub used: f64,
}

impl<'a> Together<'a> {
    /// One for each set of processors that nodes named.
    pub fn of(loads: &'a [NodeLoad]) -> Vec<Together<'a>> {
        let mut all: Vec<Together<'a>> = Vec::new();
        for (load, its) in loads.iter().filter_map(|load| Some((load, load.processors.as_ref()?))) {
            let (cores, queued) = (its.cores, load.queued * load.cores);
            match all.iter_mut().find(|one| one.name == its.name) {
                None => {
                    let name = &its.name;
                    all.push(Together { name, cores, free: 0.0, queued, used: its.used });
                }
                Some(one) => {
                    one.cores = one.cores.max(cores);
                    one.queued += queued;
                    one.used += its.used;
                }
            }
        }
        for (load, its) in loads.iter().filter_map(|load| Some((load, load.processors.as_ref()?))) {
            if let Some(one) = all.iter_mut().find(|one| one.name == its.name) {
                // A node takes what its neighbours fold for work of others. Others are a share of the whole machine: one that
                // may use a part of it only, and gets all of that, has lost nothing to them.
                let left = match load.cores >= its.most && its.most >= its.cores {
                    true => one.cores,
                    false => one.cores * (1.0 - load.others) + one.used - its.used,
                };
                one.free = one.free.max(left.min(one.cores));
            }
        }
        all
    }

    /// Processors that one of these nodes may use for active work, where its neighbours use none.
    pub fn cores_of(&self, load: &NodeLoad) -> f64 {
        match &load.processors {
            Some(its) => (load.cores + self.used - its.used).min(its.most).max(load.cores),
            None => load.cores,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, others: f64, used: f64) -> NodeLoad {
        let its = Processors { name: name.into(), cores: 2.0, most: 2.0, used };
        NodeLoad { cores: 2.0 * (1.0 - others), others, queued: 1.0, processors: Some(its), ..UNKNOWN }
    }

    #[test]
    fn what_neighbours_fold_is_not_work_of_others() {
        let name = "0123456789abcdef";
        // Four nodes take half a core each.
        let loads: Vec<NodeLoad> = (0..4).map(|_| node(name, 0.75, 0.5)).collect();
        let together = Together::of(&loads);
        assert_eq!((together.len(), together[0].cores, together[0].free), (1, 2.0, 2.0));
        assert_eq!((together[0].queued, together[0].cores_of(&loads[0])), (2.0, 2.0));
        // One core is taken by somebody else.
        let loads: Vec<NodeLoad> = (0..2).map(|_| node(name, 0.75, 0.5)).collect();
        let together = Together::of(&loads);
        assert_eq!((together[0].free, together[0].cores_of(&loads[0])), (1.0, 1.0));
        // Nodes on other processors are no neighbours.
        let loads = [node(name, 0.0, 0.0), node("fedcba9876543210", 0.0, 0.0), UNKNOWN];
        assert_eq!(Together::of(&loads).len(), 2);
    }

    #[test]
    fn others_on_a_large_machine_take_nothing_from_a_small_quota() {
        let its = Processors { name: "0123456789abcdef".into(), cores: 0.2, most: 0.2, used: 0.0 };
        let load = NodeLoad { cores: 0.2, others: 0.3, processors: Some(its.clone()), ..UNKNOWN };
        assert_eq!(Together::of(&[load])[0].free, 0.2);
        // Where they leave less than the quota, what is left counts.
        let load = NodeLoad { cores: 0.1, others: 0.95, processors: Some(its), ..UNKNOWN };
        assert!(Together::of(&[load])[0].free < 0.1);
    }

    #[test]
    fn names_and_numbers_that_cannot_be_are_not_believed() {
        for its in [
            Processors { name: "x".repeat(16), ..Processors::default() },
            Processors { name: "0".repeat(17), cores: 1.0, ..Processors::default() },
            Processors { name: "0".repeat(16), cores: f64::NAN, ..Processors::default() },
            Processors { name: "0".repeat(16), cores: 1.0, most: 1.0, used: -1.0 },
        ] {
            let load = NodeLoad { processors: Some(its), sends: f64::INFINITY, ..UNKNOWN };
            assert_eq!(believed(Some(&load)), UNKNOWN);
        }
    }
}
