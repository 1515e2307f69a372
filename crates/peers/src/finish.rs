//! Passes that the nodes of a file finish among themselves, as whoever asks for them sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gristmill_runtime::{PassOrder, RunError, Tally, TogetherEnd};
use gristmill_wire::Together;
use tokio::time::Instant;

use crate::StorageCrew;
use crate::answers::{Answers, TRIES, once_more};

impl StorageCrew {
    /// Has all nodes finish the passes among themselves, and waits for those that were asked here. Of the end nobody but
    /// the node asked first tells. How far they are is told to whoever asked that one, and not by a node that passes
    /// the request on: it tells of its own part.
    ///
    /// # Errors
    /// The error is the first that a node tells. It also fails if a node cannot be reached or is silent, and if the
    /// request is told to stop.
    pub fn finish(
        &self,
        order: &PassOrder<'_>,
        together: Together,
        fan_in: usize,
    ) -> Result<(Option<TogetherEnd>, Tally), RunError> {
        let asked_first = together.job.is_empty();
        let members = together.members.len() as u64;
        let mut request = self.request.clone();
        request.together = Some(together);
        let targets = self.files.map().targets.len();
        let done = Arc::new(AtomicU64::new(0));
        let requests = self.requests_of(request, order, fan_in);
        let mut answers = Answers::of(&self.peers, requests, |peers, asked| {
            let done = done.clone();
            async move {
                let progress = |now: u64| done.store(now, Ordering::Relaxed);
                // Only the first request can be made again: the others are part of work that has begun.
                let mut tries = if asked_first { 1 } else { TRIES };
                loop {
                    let begun = Instant::now();
                    match peers.fold_together(&asked, targets, progress).await {
                        Err(error) => once_more(error, &mut tries, begun, peers.stall).await?,
                        end => return end,
                    }
                }
            }
        });
        let total = order.ctx.extent.end - order.ctx.extent.start;
        let mut look = || {
            if asked_first {
                // The others are about as far; every pass counts from the beginning.
                let now = done.load(Ordering::Relaxed).saturating_mul(members);
                order.control.begin_pass(now.min(total), total);
            }
        };
        let (mut reached, mut tally) = (None, Tally::new(targets));
        while let Some((end, part)) = answers.next(order.control, &mut look)? {
            tally.add(&part);
            reached = reached.or(end);
        }
        Ok((reached, tally))
    }
}
