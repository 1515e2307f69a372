//! A pass for a value: the nodes fold their parts, and the client folds the parts that they hand back.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::Scope;

use gristmill_runtime::{Control, PassOrder, RunError, ShardEnd, TakeShard};
use tokio::time::Instant;

use super::StorageCrew;
use crate::RetryBudget;
use crate::answers::{Answers, wait_to_retry};
use crate::client_folds::ClientFolds;
use crate::fold::FoldEnd;

/// Most parts that the client folds at once. While one waits for bytes of its node another one is folded. The first
/// has all lanes of the request, and the n-th an n-th of them, but at least one.
const MAX_PARTS_AT_ONCE: usize = 4;

/// A part that has ended.
enum Ended {
    /// A node has folded its part, or has handed the rest of it back.
    Node(Box<FoldEnd>),
    /// The client has folded the rest of a part: the end of the node, and the end of the client.
    Client(Vec<ShardEnd>),
}

/// The parts that the client folds. Dropping it stops them.
struct ClientParts<'s, 'e> {
    crew: &'s StorageCrew,
    order: &'s PassOrder<'s>,
    scope: &'s Scope<'s, 'e>,
    control: Arc<Control>,
    /// Positions that the request has counted.
    counted: u64,
    running: usize,
    waiting: VecDeque<(&'s ClientFolds, ShardEnd)>,
}

impl Drop for ClientParts<'_, '_> {
    fn drop(&mut self) {
        self.control.stop();
    }
}

impl<'s> ClientParts<'s, '_> {
    /// Begins as many waiting parts as may run.
    fn begin(&mut self, answers: &mut Answers<Ended>) -> Result<(), RunError> {
        while self.running < MAX_PARTS_AT_ONCE
            && let Some((folds, end)) = self.waiting.pop_front()
        {
            self.running += 1;
            let lanes = (folds.lanes() / self.running).max(1);
            let (crew, order, control, promise) =
                (self.crew, self.order, self.control.clone(), answers.promise());
            let fold = move || {
                let fold = AssertUnwindSafe(|| crew.finish_at_client(folds, order, end, lanes, &control));
                let ends = catch_unwind(fold).unwrap_or(Err(RunError::Panicked));
                promise.give(ends.map(|ends| Ended::Client(ends.into())));
            };
            let thread = std::thread::Builder::new().name("handed back".into());
            thread.spawn_scoped(self.scope, fold).map_err(RunError::Lane)?;
        }
        Ok(())
    }

    /// Counts what was folded since the last call, and stops if the request was stopped.
    fn poll(&mut self) {
        let now = self.control.total_folded();
        self.order.control.folded(now.saturating_sub(self.counted));
        self.counted = now;
        if self.order.control.stopped() {
            self.control.stop();
        }
    }
}

impl StorageCrew {
    /// Asks all nodes to fold their parts. Counts the folded positions in `done`.
    fn ask_nodes(&self, order: &PassOrder<'_>, done: &Arc<AtomicU64>) -> Answers<Ended> {
        let (targets, retries_busy) = (self.files.map().targets.len(), self.retries_busy);
        Answers::ask_all(&self.peers, self.requests(order), |peers, node_request| {
            let done = done.clone();
            async move {
                let mut reported = 0;
                let mut progress = |now: u64| {
                    done.fetch_add(now.saturating_sub(reported), Ordering::Relaxed);
                    reported = reported.max(now);
                };
                let (mut tries, mut budget) = (1, retries_busy.then(RetryBudget::default));
                loop {
                    let begun = Instant::now();
                    match peers.fold_value(&node_request, targets, &mut progress).await {
                        // Nothing is counted twice: an incomplete answer is dropped.
                        Err(error) => match budget.as_mut().and_then(|one| one.wait_for(&error)) {
                            Some(wait) => tokio::time::sleep(wait).await,
                            None => wait_to_retry(error, &mut tries, begun, peers.stall).await?,
                        },
                        end => return end.map(|end| Ended::Node(Box::new(end))),
                    }
                }
            }
        })
    }

    pub(super) fn fold_values(
        &self,
        order: &PassOrder<'_>,
        take: &mut TakeShard<'_>,
    ) -> Result<(), RunError> {
        let targets = self.files.map().targets.len();
        let done = Arc::new(AtomicU64::new(0));
        let mut shown = 0;
        self.written.lock().unwrap_or_else(PoisonError::into_inner).clear();
        std::thread::scope(|scope| {
            // Dropped before the threads are joined: the nodes stop at once after an error.
            let mut answers = self.ask_nodes(order, &done);
            let mut parts = ClientParts {
                crew: self,
                order,
                scope,
                control: Arc::default(),
                counted: 0,
                running: 0,
                waiting: VecDeque::new(),
            };
            if let (Some(folds), Some(part)) = (&self.client_folds, self.client_part()) {
                let nothing = ShardEnd::new(order.ctx.round, targets);
                parts.waiting.push_back((folds, ShardEnd { handed_back: vec![part.clone()], ..nothing }));
            }
            loop {
                parts.begin(&mut answers)?;
                let mut on_poll = || {
                    let now = done.load(Ordering::Relaxed);
                    order.control.folded(now - shown);
                    shown = now;
                    parts.poll();
                };
                let Some(ended) = answers.next(order.control, &mut on_poll)? else { return Ok(()) };
                let ends = match ended {
                    Ended::Client(ends) => {
                        parts.running -= 1;
                        ends
                    }
                    Ended::Node(node) => {
                        let FoldEnd { mut end, received, written } = *node;
                        self.written.lock().unwrap_or_else(PoisonError::into_inner).extend(written);
                        end.tally.sent = end.tally.sent.saturating_add(received);
                        match &self.client_folds {
                            Some(folds) if !end.handed_back.is_empty() => {
                                parts.waiting.push_back((folds, end));
                                continue;
                            }
                            _ => vec![end],
                        }
                    }
                };
                for end in ends {
                    if !take(end)? {
                        return Ok(());
                    }
                }
            }
        })
    }
}
