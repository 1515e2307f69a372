//! Telling a fold to hand its work back to whoever asked for it.

use std::sync::{Arc, OnceLock};

use gristmill_runtime::Control;
use tokio::sync::Notify;

use crate::contention::pace::FoldPace;

/// A fold's own work, that may be told to stop at a record so that whoever asked goes on with it.
pub(crate) struct Moving {
    /// Of the node's own part; it stops too when the whole request does.
    pub own: Arc<Control>,
    pub pace: Arc<FoldPace>,
    /// Whether it stops at a record; or else it goes on to the end of its pass.
    at_record: bool,
    why: OnceLock<String>,
    told: Notify,
}

impl Moving {
    /// Of a request, at a pace.
    pub fn new(request: &Arc<Control>, pace: FoldPace) -> Moving {
        let pace = Arc::new(pace);
        let own = Arc::new(Control::under(request.clone()).paced(pace.clone()));
        Moving { own, pace, at_record: true, why: OnceLock::new(), told: Notify::new() }
    }

    /// The same of one that others wait for in every pass.
    pub fn at_passes(request: &Arc<Control>, pace: FoldPace) -> Moving {
        Moving { at_record: false, ..Moving::new(request, pace) }
    }

    /// Stops the work, for this reason. Only the first reason counts.
    pub fn hand_back(&self, why: String) {
        if self.why.set(why).is_ok() {
            if self.at_record {
                self.own.stop();
            }
            // Remembered, should nobody wait for it yet.
            self.told.notify_one();
        }
    }

    /// Why it is to be handed back, if it is.
    pub fn why(&self) -> Option<String> {
        self.why.get().cloned()
    }

    /// Waits until it is to be handed back.
    pub async fn told(&self) {
        while self.why.get().is_none() {
            self.told.notified().await;
        }
    }
}
