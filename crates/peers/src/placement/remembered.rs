//! The loads that nodes told in the last seconds, where they leave no doubt.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill_wire::NodeLoad;

/// How long the word of a node counts. What it says of other programs is a mean of some seconds.
const REMEMBER: Duration = Duration::from_secs(2);

/// Words that are remembered.
const MAX_REMEMBERED: usize = 1024;

type Words = HashMap<(String, String), (Instant, NodeLoad)>;

/// Loads by address and kernel.
///
/// A question about the load takes as long as a short request does. Where the answer could not change where the request runs,
/// the last one is good enough: see [`Decision::is_clear`](super::Decision::is_clear).
#[derive(Clone, Debug, Default)]
pub(crate) struct Remembered(Arc<Mutex<Words>>);

impl Remembered {
    fn words(&self) -> MutexGuard<'_, Words> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loads that all of these nodes told in the last two seconds; `None` if one of them is not remembered.
    pub fn get(&self, addresses: &[String], kernel: &str) -> Option<Vec<Option<NodeLoad>>> {
        let words = self.words();
        let one = |address: &String| {
            let (at, load) = words.get(&(address.clone(), kernel.to_owned()))?;
            (at.elapsed() < REMEMBER).then(|| Some(load.clone()))
        };
        addresses.iter().map(one).collect()
    }

    /// Remembers what a node told just now.
    pub fn learn(&self, address: &str, kernel: &str, load: &NodeLoad) {
        let mut words = self.words();
        if words.len() >= MAX_REMEMBERED {
            words.clear();
        }
        words.insert((address.to_owned(), kernel.to_owned()), (Instant::now(), load.clone()));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::said::UNKNOWN;
    use super::*;

    fn addresses(all: &[&str]) -> Vec<String> {
        all.iter().map(|one| (*one).to_owned()).collect()
    }

    #[test]
    fn each_node_and_kernel_has_its_own_word_and_there_is_a_most() {
        let loads = Remembered::default();
        loads.learn("host:1", "sum", &UNKNOWN);
        assert_eq!(loads.get(&addresses(&["host:1"]), "sum"), Some(vec![Some(UNKNOWN)]));
        assert_eq!(loads.get(&addresses(&["host:1"]), "var"), None);
        assert_eq!(loads.get(&addresses(&["host:1", "host:2"]), "sum"), None);
        loads.learn("host:2", "sum", &UNKNOWN);
        assert!(loads.get(&addresses(&["host:1", "host:2"]), "sum").is_some());
        for number in 0..2 * MAX_REMEMBERED {
            loads.learn(&format!("host:{number}"), "sum", &UNKNOWN);
        }
        assert!(loads.words().len() <= MAX_REMEMBERED);
    }

    #[test]
    fn an_old_word_does_not_count() {
        let loads = Remembered::default();
        let key = ("host:1".to_owned(), "sum".to_owned());
        let Some(before) = Instant::now().checked_sub(REMEMBER) else { return };
        loads.words().insert(key, (before, UNKNOWN));
        assert_eq!(loads.get(&addresses(&["host:1"]), "sum"), None);
    }
}
