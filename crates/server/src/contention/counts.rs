//! Counts of active requests since the node started.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use gristmill_wire::{HandedBack, MAX_HANDED_BACK};

use super::active::Active;

/// Counts since the node started.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Counts by kernel. Requests with an unknown kernel are refused before they are counted.
    pub kernels: BTreeMap<String, KernelCounts>,
    /// Number of decisions.
    pub decisions: u64,
    /// Seconds that all decisions took.
    pub seconds: f64,
    /// The last requests that were handed back, the latest first, with their times.
    pub handed_back: VecDeque<(HandedBack, Instant)>,
}

/// Counts of one kernel: requests that ended on this node, requests that were handed back, and bytes folded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KernelCounts {
    pub ended: u64,
    pub handed_back: u64,
    pub bytes: u64,
}

impl Counts {
    /// Counts a request whose work on this node has ended.
    pub fn count_ended(&mut self, active: &Active) {
        let work = &active.work;
        let kernel = self.kernels.entry(work.kernel.clone()).or_default();
        kernel.bytes = kernel.bytes.saturating_add(active.folded_in_all_passes());
        let Some(why) = active.hand_off.why() else {
            kernel.ended += 1;
            return;
        };
        kernel.handed_back += 1;
        let entry = HandedBack {
            number: active.number,
            kernel: work.kernel.clone(),
            principal: work.principal.clone(),
            asker: work.client_name.clone(),
            bytes: active.bytes_left(),
            why,
            ago_seconds: 0.0,
        };
        self.handed_back.truncate(MAX_HANDED_BACK - 1);
        self.handed_back.push_front((entry, Instant::now()));
    }
}
