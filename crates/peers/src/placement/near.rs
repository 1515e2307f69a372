//! The loads that nodes on the processors of this process told in the last seconds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill_wire::NodeLoad;

/// How long the word of a near node counts. What it says of other programs is a mean of some seconds.
const REMEMBER: Duration = Duration::from_secs(2);

/// Words that are remembered.
const MAX_REMEMBERED: usize = 1024;

type Words = HashMap<(String, String), (Instant, NodeLoad)>;

/// The loads of near nodes that may use all of their processors, by address and kernel.
///
/// A *near* node runs on the processors of this process. If it may use all of them, its part stays there however long its
/// queue is, because this process can do nothing sooner on the same processors. So a decision need not ask such a node
/// about each request. The question takes as long as a short request does.
#[derive(Clone, Debug, Default)]
pub(crate) struct NearLoads(Arc<Mutex<Words>>);

impl NearLoads {
    fn words(&self) -> MutexGuard<'_, Words> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The load that a node told in the last two seconds, if it is remembered.
    pub fn get(&self, address: &str, kernel: &str) -> Option<NodeLoad> {
        let words = self.words();
        let (at, load) = words.get(&(address.to_owned(), kernel.to_owned()))?;
        (at.elapsed() < REMEMBER).then(|| load.clone())
    }

    /// Remembers the load of a node that is near to a process on these processors and has no cap.
    pub fn learn(&self, address: &str, kernel: &str, load: &NodeLoad, processors: Option<&str>) {
        let key = (address.to_owned(), kernel.to_owned());
        let mut words = self.words();
        if !may_use_all(load, processors) {
            words.remove(&key);
            return;
        }
        if words.len() >= MAX_REMEMBERED {
            words.clear();
        }
        words.insert(key, (Instant::now(), load.clone()));
    }
}

/// Whether a node runs on these processors without a cap.
fn may_use_all(load: &NodeLoad, here: Option<&str>) -> bool {
    let its = load.processors.as_ref();
    its.is_some_and(|its| here == Some(its.name.as_str()) && its.most >= its.cores)
}

#[cfg(test)]
mod tests {
    use gristmill_wire::Processors;

    use super::super::said::UNKNOWN;
    use super::*;

    fn load(name: &str, most: f64) -> NodeLoad {
        let processors = Some(Processors { name: name.into(), cores: 2.0, most, used: 0.0 });
        NodeLoad { processors, ..UNKNOWN }
    }

    #[test]
    fn only_near_nodes_without_a_cap_are_remembered() {
        let loads = NearLoads::default();
        for (load, remembered) in [
            (load("here", 2.0), true),
            (load("here", 0.5), false),
            (load("there", 2.0), false),
            (UNKNOWN, false),
        ] {
            loads.learn("host:1", "sum", &load, Some("here"));
            assert_eq!(loads.get("host:1", "sum").is_some(), remembered, "{load:?}");
        }
        loads.learn("host:1", "sum", &load("here", 2.0), None);
        assert_eq!(loads.get("host:1", "sum"), None);
    }

    #[test]
    fn each_node_and_kernel_has_its_own_word_and_there_is_a_most() {
        let loads = NearLoads::default();
        loads.learn("host:1", "sum", &load("here", 2.0), Some("here"));
        assert!(loads.get("host:1", "var").is_none() && loads.get("host:2", "sum").is_none());
        for number in 0..2 * MAX_REMEMBERED {
            loads.learn(&format!("host:{number}"), "sum", &load("here", 2.0), Some("here"));
        }
        assert!(loads.words().len() <= MAX_REMEMBERED);
    }
}
