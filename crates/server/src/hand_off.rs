//! A request to a fold: stop, and hand the rest of the work back to the client.

use std::sync::{Arc, OnceLock};

use gristmill_runtime::Control;
use tokio::sync::Notify;

use crate::contention::pace::FoldPace;

/// Control of a fold's own work, which the node may hand back to the client at a record.
pub(crate) struct HandOff {
    /// Control of the node's own part. It stops too when the whole request stops.
    pub own: Arc<Control>,
    pub pace: Arc<FoldPace>,
    /// Whether the work stops at a record. Otherwise it continues to the end of its pass.
    at_record: bool,
    why: OnceLock<String>,
    notify: Notify,
}

impl HandOff {
    /// Creates the control of a request's own part, with this pace.
    pub fn new(request: &Arc<Control>, pace: FoldPace) -> HandOff {
        let pace = Arc::new(pace);
        let own = Arc::new(Control::part_of(request.clone()).with_pace(pace.clone()));
        HandOff { own, pace, at_record: true, why: OnceLock::new(), notify: Notify::new() }
    }

    /// Creates the control of work that other nodes wait for in each pass.
    pub fn at_passes(request: &Arc<Control>, pace: FoldPace) -> HandOff {
        HandOff { at_record: false, ..HandOff::new(request, pace) }
    }

    /// Stops the work, for this reason. Only the first reason counts.
    pub fn hand_back(&self, why: String) {
        if self.why.set(why).is_ok() {
            if self.at_record {
                self.own.stop();
            }
            // Stored if no task waits yet.
            self.notify.notify_one();
        }
    }

    /// Reason for the hand-back, if there is one.
    pub fn why(&self) -> Option<String> {
        self.why.get().cloned()
    }

    /// Waits until the work must be handed back.
    pub async fn requested(&self) {
        while self.why.get().is_none() {
            self.notify.notified().await;
        }
    }
}
