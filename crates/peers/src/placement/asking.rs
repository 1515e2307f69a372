//! What is known of the process that asks.

use gristmill_runtime::Allowance;
use gristmill_schedule::cluster::{RECEIVING, received};

use super::machine::Machine;

/// Share of a busy machine that folds can count on.
pub(super) const FAIR_SHARE: f64 = 0.25;

/// The smallest part of a processor that is reckoned with.
pub(super) const LEAST_CORES: f64 = 0.01;

/// What the process that asks can do itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Asking {
    /// Processors that its folds may use: those of its threads, or of a quota.
    pub cores: f64,
    /// Share of them that others leave, 0 to 1, where the processors are its own.
    pub free: f64,
    /// Which they are, if it can tell.
    pub processors: Option<String>,
    /// Bytes a second that one of them folds with the kernel in question, if that was measured here.
    pub rate: Option<f64>,
    /// Seconds of one of them that it takes to receive a byte.
    pub receiving: f64,
}

impl Asking {
    /// This process, with so many threads, and what it measured of itself.
    pub fn now(lanes: usize, rate: Option<f64>, receiving: Option<f64>) -> Asking {
        let Machine { allowance: Allowance { quota, processors }, free } = Machine::now();
        let cores = quota.map_or(lanes as f64, |quota| quota.min(lanes as f64)).max(LEAST_CORES);
        // A group that has used its quota up waits too, so waiting says nothing then.
        let free = if quota.is_some() { 1.0 } else { free.max(FAIR_SHARE) };
        Asking { cores, free, processors, rate, receiving: receiving.unwrap_or(RECEIVING) }
    }

    /// Bytes a second that one processor takes in and folds, if that was measured.
    pub fn taken_in(&self) -> Option<f64> {
        self.rate.map(|rate| received(rate, self.receiving))
    }
}
