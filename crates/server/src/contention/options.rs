//! Options by which a node shares its machine with active work.

use gristmill_schedule::{MAX_RATE, MIN_RATE};

use super::decide::Objective;
use crate::{ActivePriority, NodeOptions, ServerError};

/// Options by which a node shares its machine with active work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContentionOptions {
    /// Share of the processors that active work may use, 0 to 1.
    pub share: f64,
    /// Bytes per second of the outgoing link, if the administrator gave them.
    pub link: Option<f64>,
    pub objective: Objective,
    pub priority: ActivePriority,
    /// Threads of a fold.
    pub lanes: usize,
}

impl ContentionOptions {
    /// Reads the options of a node.
    ///
    /// # Errors
    /// Returns an error if the share is not from 0 to 1, or if the speed of the link is out of range.
    pub fn new(options: &NodeOptions, lanes: usize) -> Result<ContentionOptions, ServerError> {
        let share = options.active_share;
        if !(0.0..=1.0).contains(&share) {
            let text =
                format!("a share of the processors is from 0 to 1, not {share}; give --active-share 0.5");
            return Err(ServerError::Usage(text));
        }
        let link = options.link.map(|link| link as f64);
        if let Some(link) = link.filter(|link| !(MIN_RATE..=MAX_RATE).contains(link)) {
            let text = format!("no link has {link} bytes per second; give --link 125MB for 1 Gbit/s");
            return Err(ServerError::Usage(text));
        }
        Ok(ContentionOptions {
            share,
            link,
            objective: options.objective,
            priority: options.active_priority,
            lanes,
        })
    }
}
