//! How many requests of a kind a node has at work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gristmill_runtime::ErrorKind;

use crate::error::{Answer, Refusal};
use crate::limits::{MAX_ROW_FOLDS, MAX_WAITING};
use crate::node::Shared;

/// A place among the requests of a kind; given back when dropped.
pub(crate) struct Seat(Arc<Shared>, bool);

impl Seat {
    /// Takes a place, or says that the node is busy.
    pub fn take(shared: &Arc<Shared>, rows: bool) -> Answer<Seat> {
        let (counter, most) = Seat::counter(shared, rows);
        if counter.fetch_add(1, Ordering::Relaxed) >= most {
            counter.fetch_sub(1, Ordering::Relaxed);
            let text =
                format!("storage node {} has {most} such requests at work; try again later", shared.address);
            return Err(Refusal::new(ErrorKind::Busy, text));
        }
        Ok(Seat(shared.clone(), rows))
    }

    fn counter(shared: &Shared, rows: bool) -> (&AtomicUsize, usize) {
        if rows { (&shared.row_folds, MAX_ROW_FOLDS) } else { (&shared.waiting, MAX_WAITING) }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        Seat::counter(&self.0, self.1).0.fetch_sub(1, Ordering::Relaxed);
    }
}
