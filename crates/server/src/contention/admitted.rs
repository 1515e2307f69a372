//! Active requests that are here, for as long as they are.

use std::sync::Arc;
use std::time::Duration;

use gristmill_runtime::ErrorKind;

use super::active::{Active, Work};
use super::estimator::{Contention, lock};
use crate::error::{Answer, Refusal};
use crate::moving::Moving;

/// How long a request waits at most to be decided on before it begins here.
const ADMIT: Duration = Duration::from_millis(100);

/// Fewer bytes than these are always folded where they lie.
const LEAST_MOVED: u64 = 1 << 20;

/// An active request for as long as this lives.
pub(crate) struct Admitted {
    contention: Arc<Contention>,
    active: Arc<Active>,
}

impl Admitted {
    /// Waits until it was decided on, but not long.
    pub async fn decided(&self) {
        if self.active.work.asker.is_some() {
            // Late is as good as here.
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
    pub fn admit(self: &Arc<Self>, mut work: Work, moving: Arc<Moving>, node: &str) -> Answer<Admitted> {
        if self.terms.share == 0.0 && (work.asker.is_none() || work.several) {
            let text = format!(
                "storage node {node} takes no active work (--active-share 0), and this cannot be handed back; \
                 ask with --place client"
            );
            return Err(Refusal::new(ErrorKind::Busy, text));
        }
        if work.bytes < LEAST_MOVED && self.terms.share > 0.0 {
            // Sooner done than decided.
            work.asker = None;
        }
        let active = self.active.add(work, moving, self.now());
        self.tell();
        Ok(Admitted { contention: self.clone(), active })
    }
}
