//! The capacity of the client to receive and fold bytes.

use gristmill_runtime::Allowance;
use gristmill_schedule::cluster::{RECEIVING, receiving_rate};

use super::machine::Machine;

/// Share of a busy machine that folds can count on.
pub(super) const FAIR_SHARE: f64 = 0.25;

/// The smallest part of a processor in the calculation.
pub(super) const MIN_CORES: f64 = 0.01;

/// The capacity of this process to receive and fold bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientCapacity {
    /// Processors that its folds may use: those of its threads, or of a quota.
    pub cores: f64,
    /// Share of them that other programs leave, 0 to 1, if no node runs on these processors.
    pub free: f64,
    /// Name of these processors, if it is known.
    pub processors: Option<String>,
    /// Bytes per second that one of them folds with the kernel, if that was measured.
    pub rate: Option<f64>,
    /// Processor seconds to receive a byte.
    pub receiving: f64,
}

impl ClientCapacity {
    /// The capacity of this process with `lanes` threads and its measured speeds.
    pub fn now(lanes: usize, rate: Option<f64>, receiving: Option<f64>) -> ClientCapacity {
        let Machine { allowance: Allowance { quota, processors }, free } = Machine::now();
        let cores = quota.map_or(lanes as f64, |quota| quota.min(lanes as f64)).max(MIN_CORES);
        // A group that has used up its quota waits too, so a wait says nothing about other programs then.
        let free = if quota.is_some() { 1.0 } else { free.max(FAIR_SHARE) };
        ClientCapacity { cores, free, processors, rate, receiving: receiving.unwrap_or(RECEIVING) }
    }

    /// Bytes per second that one processor receives and folds, if the rate was measured.
    pub fn rate_with_receiving(&self) -> Option<f64> {
        self.rate.map(|rate| receiving_rate(rate, self.receiving))
    }
}
