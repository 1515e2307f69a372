//! The loads that nodes reported in the last seconds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill_wire::NodeLoad;

/// Time for which a reported load is used. Its figures for other programs are means of some seconds.
const REMEMBER: Duration = Duration::from_secs(2);

/// Most loads that are remembered.
const MAX_REMEMBERED: usize = 1024;

type Loads = HashMap<(String, String), (Instant, NodeLoad)>;

/// Loads by address and kernel.
///
/// A request for the load takes as long as a short fold. If a new answer could not change the placement, the last one is
/// enough: see [`Decision::is_clear`](super::Decision::is_clear).
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentLoads(Arc<Mutex<Loads>>);

impl RecentLoads {
    fn lock(&self) -> MutexGuard<'_, Loads> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loads of all these nodes, at most [`REMEMBER`] old. `None` if one of them is missing.
    pub fn get(&self, addresses: &[String], kernel: &str) -> Option<Vec<Option<NodeLoad>>> {
        let loads = self.lock();
        let one = |address: &String| {
            let (at, load) = loads.get(&(address.clone(), kernel.to_owned()))?;
            (at.elapsed() < REMEMBER).then(|| Some(load.clone()))
        };
        addresses.iter().map(one).collect()
    }

    /// Remembers the load that a node reported now.
    pub fn learn(&self, address: &str, kernel: &str, load: &NodeLoad) {
        let mut loads = self.lock();
        if loads.len() >= MAX_REMEMBERED {
            loads.clear();
        }
        loads.insert((address.to_owned(), kernel.to_owned()), (Instant::now(), load.clone()));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::reported_load::UNKNOWN;
    use super::*;

    fn addresses(all: &[&str]) -> Vec<String> {
        all.iter().map(|one| (*one).to_owned()).collect()
    }

    #[test]
    fn loads_are_kept_for_each_node_and_kernel_up_to_the_bound() {
        let loads = RecentLoads::default();
        loads.learn("host:1", "sum", &UNKNOWN);
        assert_eq!(loads.get(&addresses(&["host:1"]), "sum"), Some(vec![Some(UNKNOWN)]));
        assert_eq!(loads.get(&addresses(&["host:1"]), "var"), None);
        assert_eq!(loads.get(&addresses(&["host:1", "host:2"]), "sum"), None);
        loads.learn("host:2", "sum", &UNKNOWN);
        assert!(loads.get(&addresses(&["host:1", "host:2"]), "sum").is_some());
        for number in 0..2 * MAX_REMEMBERED {
            loads.learn(&format!("host:{number}"), "sum", &UNKNOWN);
        }
        assert!(loads.lock().len() <= MAX_REMEMBERED);
    }

    #[test]
    fn an_old_load_is_not_used() {
        let loads = RecentLoads::default();
        let key = ("host:1".to_owned(), "sum".to_owned());
        let Some(before) = Instant::now().checked_sub(REMEMBER) else { return };
        loads.lock().insert(key, (before, UNKNOWN));
        assert_eq!(loads.get(&addresses(&["host:1"]), "sum"), None);
    }
}
