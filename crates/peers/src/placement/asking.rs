//! What is known of the process that asks.

use gristmill_runtime::{processors, quota};
use gristmill_schedule::cluster::{RECEIVING, received};

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
        let quota = quota();
        let cores = quota.map_or(lanes as f64, |quota| quota.min(lanes as f64)).max(LEAST_CORES);
        // A group that has used its quota up waits too, so waiting says nothing then.
        let free = if quota.is_some() { 1.0 } else { free() };
        Asking { cores, free, processors: processors(), rate, receiving: receiving.unwrap_or(RECEIVING) }
    }

    /// Bytes a second that one processor takes in and folds, if that was measured.
    pub fn taken_in(&self) -> Option<f64> {
        self.rate.map(|rate| received(rate, self.receiving))
    }
}

/// Share of this machine's processors that folds here can count on, 0 to 1: fewer where others have waited for them lately.
fn free() -> f64 {
    let waited = |text: &str| -> Option<f64> {
        text.strip_prefix("some avg10=")?.split_whitespace().next()?.parse().ok()
    };
    let pressure = std::fs::read_to_string("/proc/pressure/cpu").ok();
    let waited = pressure.as_deref().and_then(waited).unwrap_or(0.0);
    if waited.is_finite() { (1.0 - waited / 100.0).clamp(FAIR_SHARE, 1.0) } else { 1.0 }
}
