//! Requests for passes that the nodes of a file finish among themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gristmill_runtime::{GroupEnd, PassOrder, RunError, Tally};
use gristmill_wire::GroupSpec;
use tokio::time::Instant;

use crate::StorageCrew;
use crate::answers::{Answers, MAX_TRIES, wait_to_retry};

impl StorageCrew {
    /// Lets all nodes finish the passes among themselves, and waits for the nodes that it asks. Only the first node of the
    /// group reports the end. Progress is reported only by the request that starts the group: a node that passes the
    /// request on reports the progress of its own part.
    ///
    /// # Errors
    /// Returns the first error that a node reports. It also fails if a node cannot be reached or is silent, and if the
    /// request is stopped.
    pub fn finish_passes(
        &self,
        order: &PassOrder<'_>,
        together: GroupSpec,
        fan_in: usize,
    ) -> Result<(Option<GroupEnd>, Tally), RunError> {
        let starts_group = together.job.is_empty();
        let members = together.members.len() as u64;
        let mut request = self.request.clone();
        request.together = Some(together);
        let targets = self.files.map().targets.len();
        let done = Arc::new(AtomicU64::new(0));
        let requests = self.node_requests(request, order, fan_in);
        let mut answers = Answers::ask_all(&self.peers, requests, |peers, node_request| {
            let done = done.clone();
            async move {
                let progress = |now: u64| done.store(now, Ordering::Relaxed);
                // Only the first request can be repeated: the others are part of work that has begun.
                let mut tries = if starts_group { 1 } else { MAX_TRIES };
                loop {
                    let begun = Instant::now();
                    match peers.fold_in_group(&node_request, targets, progress).await {
                        Err(error) => wait_to_retry(error, &mut tries, begun, peers.stall).await?,
                        end => return end,
                    }
                }
            }
        });
        let total = order.ctx.extent.end - order.ctx.extent.start;
        let mut on_poll = || {
            if starts_group {
                // The other members are about as far. Every pass counts from the beginning.
                let now = done.load(Ordering::Relaxed).saturating_mul(members);
                order.control.begin_pass(now.min(total), total);
            }
        };
        let (mut reached, mut tally) = (None, Tally::new(targets));
        while let Some((end, part)) = answers.next(order.control, &mut on_poll)? {
            tally.add(&part);
            reached = reached.or(end);
        }
        Ok((reached, tally))
    }
}
