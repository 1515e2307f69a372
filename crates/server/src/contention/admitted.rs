//! Registration of an active request with the estimator until the request ends.

use std::sync::Arc;
use std::time::Duration;

use gristmill_runtime::ErrorKind;

use super::active::{Active, Work};
use super::estimator::{Contention, lock};
use crate::error::{Answer, Refusal};
use crate::hand_off::HandOff;

/// Longest time that a request waits for a decision before it begins on this node.
const MAX_DECISION_WAIT: Duration = Duration::from_millis(100);

/// Time on this node below which a request is not worth a decision.
const MIN_DECIDED_TIME: Duration = Duration::from_millis(10);

/// Smallest request, in bytes, that may be handed back. Smaller ones are always folded where they are stored.
const MIN_HAND_BACK_BYTES: u64 = 1 << 20;

/// An active request. Dropping it ends the registration.
pub(crate) struct Admitted {
    contention: Arc<Contention>,
    active: Arc<Active>,
}

impl Admitted {
    /// Waits until the node has decided where this request runs, for at most [`MAX_DECISION_WAIT`]. It does not wait if the
    /// decision is known, or costs more than it can gain.
    pub async fn wait_for_decision(&self) {
        if self.contention.may_hand_back(&self.active.work) {
            // A request that is still undecided begins on this node.
            let _ = tokio::time::timeout(MAX_DECISION_WAIT, self.active.decided.notified()).await;
        }
    }

    /// Records that the request has its turn.
    pub fn set_running(&self) {
        self.active.set_running(self.contention.now());
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.contention.learn(&self.active);
        let mut counts = lock(&self.contention.counts);
        counts.count_ended(&self.active);
        // The same lock, so that a reader sees the request exactly once.
        let must_decide = self.contention.active.remove(self.active.number);
        drop(counts);
        if must_decide {
            self.contention.wake();
        }
    }
}

impl Contention {
    /// Registers an active request at the node with this address.
    ///
    /// # Errors
    /// Returns an error if the node takes no active work and the client cannot take the request back. Requests of
    /// several passes are handed back at the end of a pass, which they would never reach.
    pub fn admit(self: &Arc<Self>, mut work: Work, hand_off: Arc<HandOff>, node: &str) -> Answer<Admitted> {
        if self.options.share == 0.0 && (work.asker.is_none() || work.several_passes) {
            let text = format!(
                "storage node {node} takes no active work (--active-share 0), and this request cannot be handed back; \
                 use --place client"
            );
            return Err(Refusal::new(ErrorKind::Busy, text));
        }
        if work.bytes < MIN_HAND_BACK_BYTES && self.options.share > 0.0 {
            // A decision would take longer than the work.
            work.asker = None;
        }
        let active = self.active.add(work, hand_off, self.now());
        if self.active.has_movable() {
            self.wake();
        }
        Ok(Admitted { contention: self.clone(), active })
    }

    /// Whether a request that has not begun may be faster at its client. A client on the processors of this node gains
    /// nothing unless a cap keeps the node from using them.
    fn may_hand_back(&self, work: &Work) -> bool {
        let Some(asker) = &work.asker else { return false };
        let situation = self.situation();
        if self.options.share >= 1.0 && situation.machine.includes(asker) {
            return false;
        }
        let folded = self.rate(&work.kernel).0 * situation.cores * MIN_DECIDED_TIME.as_secs_f64();
        work.bytes as f64 >= folded
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;

    use gristmill_runtime::Allowance;
    use gristmill_wire::Asker;

    use super::*;
    use crate::NodeOptions;
    use crate::contention::options::ContentionOptions;

    fn work(bytes: u64, processors: Option<String>) -> Work {
        let work = Work::for_tests(bytes);
        let asker = work.asker.map(|asker| Asker { processors, ..asker });
        Work { asker, ..work }
    }

    #[test]
    fn only_requests_that_may_be_handed_back_wait_for_a_decision() {
        let (own, elsewhere) = (Allowance::now().processors, Some("fedcba9876543210".to_owned()));
        assert!(own.is_some());
        for (share, bytes, asker, waits) in [
            (1.0, 1 << 40, elsewhere.clone(), true),
            (1.0, 1 << 12, elsewhere.clone(), false),
            (1.0, 1 << 40, None, true),
            (1.0, 1 << 40, own.clone(), false),
            (0.5, 1 << 40, own.clone(), true),
            (0.0, 1 << 12, own, true),
        ] {
            let listen = "127.0.0.1:0".parse().unwrap();
            let node = NodeOptions::entry(Path::new("target"), listen);
            let options = NodeOptions { active_share: share, ..node };
            let contention = Contention::start(ContentionOptions::new(&options, 2).unwrap()).unwrap();
            assert_eq!(
                contention.may_hand_back(&work(bytes, asker.clone())),
                waits,
                "{share} {bytes} {asker:?}"
            );
            let without_client = Work { asker: None, ..work(bytes, None) };
            assert!(!contention.may_hand_back(&without_client));
            contention.stop();
        }
    }
}
