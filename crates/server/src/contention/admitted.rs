//! Active requests that are here, for as long as they are.

use std::sync::Arc;
use std::time::Duration;

use gristmill_runtime::ErrorKind;

use super::active::{Active, Work};
use super::estimator::{Contention, lock};
use crate::error::{Answer, Refusal};
use crate::hand_off::HandOff;

/// How long a request waits at most to be decided on before it begins here.
const ADMIT: Duration = Duration::from_millis(100);

/// A request that takes less time than this here is done before anything is gained elsewhere.
const SOON_DONE: Duration = Duration::from_millis(10);

/// Fewer bytes than these are always folded where they lie.
const LEAST_MOVED: u64 = 1 << 20;

/// An active request for as long as this lives.
pub(crate) struct Admitted {
    contention: Arc<Contention>,
    active: Arc<Active>,
}

impl Admitted {
    /// Waits until the node has decided where this request runs, at most [`ADMIT`]. It does not wait where the decision is
    /// known, or costs more than it can gain.
    pub async fn decided(&self) {
        if self.contention.may_hand_back(&self.active.work) {
            // A request that is still undecided begins here.
            let _ = tokio::time::timeout(ADMIT, self.active.decided.notified()).await;
        }
    }

    /// It has its turn.
    pub fn runs(&self) {
        self.active.runs();
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.contention.learn(&self.active);
        let mut counts = lock(&self.contention.counts);
        counts.over(&self.active);
        // Under the same lock, so that nobody sees it twice or not at all.
        self.contention.active.remove(self.active.number);
        drop(counts);
        self.contention.tell();
    }
}

impl Contention {
    /// Takes an active request in at the node of this address.
    ///
    /// # Errors
    /// The node takes no active work, and nobody can go on with it. Passes are handed back when one of them is over, which
    /// none would ever be here.
    pub fn admit(self: &Arc<Self>, mut work: Work, hand_off: Arc<HandOff>, node: &str) -> Answer<Admitted> {
        if self.options.share == 0.0 && (work.asker.is_none() || work.several) {
            let text = format!(
                "storage node {node} takes no active work (--active-share 0), and this cannot be handed back; \
                 ask with --place client"
            );
            return Err(Refusal::new(ErrorKind::Busy, text));
        }
        if work.bytes < LEAST_MOVED && self.options.share > 0.0 {
            // Sooner done than decided.
            work.asker = None;
        }
        let active = self.active.add(work, hand_off, self.now());
        self.tell();
        Ok(Admitted { contention: self.clone(), active })
    }

    /// Whether a request that has not begun may be better off with its asker. An asker on the processors of this node
    /// gains nothing unless a cap keeps the node from using them.
    fn may_hand_back(&self, work: &Work) -> bool {
        let Some(asker) = &work.asker else { return false };
        let situation = self.situation();
        if self.options.share >= 1.0 && situation.machine.includes(asker) {
            return false;
        }
        let folded = self.rate(&work.kernel).0 * situation.cores * SOON_DONE.as_secs_f64();
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
        let name = "asker".to_owned();
        let asker = Asker { name, lanes: 1, millicores: None, rate: None, link: None, processors };
        Work {
            kernel: "kmeans".into(),
            principal: "anonymous".into(),
            asked_by: None,
            asker: Some(asker),
            from: None,
            bytes,
            result_bytes: 64,
            record: 8,
            several: false,
            besides: 0.0,
        }
    }

    #[test]
    fn only_what_may_go_waits_for_a_decision() {
        let (here, elsewhere) = (Allowance::now().processors, Some("fedcba9876543210".to_owned()));
        assert!(here.is_some());
        for (share, bytes, asker, waits) in [
            (1.0, 1 << 40, elsewhere.clone(), true),
            (1.0, 1 << 12, elsewhere.clone(), false),
            (1.0, 1 << 40, None, true),
            (1.0, 1 << 40, here.clone(), false),
            (0.5, 1 << 40, here.clone(), true),
            (0.0, 1 << 12, here, true),
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
            let nobody = Work { asker: None, ..work(bytes, None) };
            assert!(!contention.may_hand_back(&nobody));
            contention.stop();
        }
    }
}
