//! The thread that takes samples of a node. It decides after each change while a request may be handed back.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use gristmill_runtime::{Allowance, thread_time};
use gristmill_schedule::{Place, ScheduleError};

use super::active::Active;
use super::decide::{Situation, Verdict, decide};
use super::decision_budget::DecisionBudget;
use super::estimator::{Contention, Signal, lock, usable};
use super::sample::{Sample, Sampler};
use super::sending::{SendingCounters, process_seconds};

/// Time between samples of the machine, and between decisions about running work.
const SAMPLE_EVERY: Duration = Duration::from_millis(500);

/// Time between readings of the limits of control groups while there are decisions.
const QUOTA_EVERY: Duration = Duration::from_millis(50);

/// Seconds over which the load of other programs is averaged. Work that is handed back because of a burst of half a
/// second does not return after the burst.
const OTHERS_SECONDS: f64 = 5.0;

impl Contention {
    /// Takes samples and decides until [`stop`](Contention::stop). Blocks.
    pub(super) fn run(&self) {
        let mut sampler = Sampler::new(Path::new("/proc"));
        let (mut sampled, mut quota_read): (Option<Instant>, Option<Instant>) = (None, None);
        let (mut used, mut budget) = (0.0, DecisionBudget::new(self.begun));
        loop {
            let due = sampled.is_none_or(|at| at.elapsed() >= SAMPLE_EVERY);
            if due {
                let lasted = sampled.map_or(0.0, |at| at.elapsed().as_secs_f64());
                let sample = sampler.sample();
                if sample.has_free_processor(self.cores) {
                    self.cap.starvation.note_free_processor();
                }
                let ours = self.cap.used();
                let share = (ours - std::mem::replace(&mut used, ours)) / (lasted * self.cores as f64);
                let others = if lasted > 0.0 { (sample.cpu - share).clamp(0.0, 1.0) } else { 0.0 };
                let mut known = lock(&self.sample);
                let share = if lasted > 0.0 { share.clamp(0.0, 1.0) } else { 0.0 };
                *known = Sample {
                    others: smoothed(known.others, others, lasted),
                    ours: smoothed(known.ours, share, lasted),
                    ..sample
                };
                drop(known);
                let sent = self.senders.samples();
                lock(&self.links).learn(self.now(), &sent);
                let counters =
                    SendingCounters { process: process_seconds(), lanes: ours, writes: self.normal.writes() };
                lock(&self.sending).learn(sent.iter().map(|sent| sent.bytes).sum(), counters);
                sampled = Some(Instant::now());
                self.active.all().iter().for_each(|active| self.learn(active));
                self.retry_after.store(self.queue().retry_after(), Ordering::Relaxed);
            }
            if quota_read.is_none_or(|at| at.elapsed() >= QUOTA_EVERY) {
                let Allowance { quota, processors } = Allowance::now();
                let now = usable(self.cores, quota);
                self.cap.set_cores(now);
                self.cap.starvation.set_limited(quota.is_some());
                *lock(&self.usable) = now;
                *lock(&self.processors) = processors;
                quota_read = Some(Instant::now());
            }
            let before = thread_time();
            // Without work the budget is not used, so the first request is decided at once.
            if self.decide() {
                budget.spend(thread_time().saturating_sub(before), Instant::now());
            }
            let signal = lock(&self.signal);
            let quiet = |signal: &mut Signal| !signal.changed && !signal.stop;
            let due = SAMPLE_EVERY.saturating_sub(sampled.map_or(Duration::ZERO, |at| at.elapsed()));
            let waited = self.changed.wait_timeout_while(signal, due, quiet);
            let mut signal = waited.unwrap_or_else(PoisonError::into_inner).0;
            if signal.stop {
                return;
            }
            if std::mem::take(&mut signal.changed) {
                // The requests of a burst are decided together.
                drop(signal);
                std::thread::sleep(budget.rest(Instant::now()));
            }
        }
    }

    /// Decides about all active requests, and hands back the ones that are faster at their clients. Returns false if
    /// there are no active requests.
    fn decide(&self) -> bool {
        let actives = self.active.all();
        if actives.is_empty() {
            return false;
        }
        let begun = Instant::now();
        let (now, count) = (self.now(), actives.len());
        let running = || actives.iter().filter(|active| active.is_running());
        let settles = running().filter(|active| !lock(&active.revision).may_move(now));
        let mut staying: HashSet<u64> = settles.map(|active| active.number).collect();
        let mut verdicts = self.verdicts(&actives, &staying);
        let all = staying.len();
        if let Ok(verdicts) = &verdicts {
            let each = actives.iter().zip(verdicts);
            let refused = each.filter(|(active, verdict)| stays_anyway(active, verdict, now));
            staying.extend(refused.map(|(active, _)| active.number));
        }
        if staying.len() > all {
            verdicts = self.verdicts(&actives, &staying);
        }
        let mut counts = lock(&self.counts);
        counts.decisions += 1;
        counts.seconds += begun.elapsed().as_secs_f64();
        drop(counts);
        for (active, verdict) in actives.iter().zip(verdicts.unwrap_or_default()) {
            self.carry_out(active, &verdict, now, count);
        }
        actives.iter().for_each(|active| active.decided.notify_one());
        true
    }

    fn verdicts(
        &self,
        actives: &[Arc<Active>],
        staying: &HashSet<u64>,
    ) -> Result<Vec<Verdict>, ScheduleError> {
        let peers = {
            let links = lock(&self.links);
            let from = actives.iter().filter_map(|active| active.work.from);
            from.filter_map(|from| Some((from, links.peer(from)?))).collect()
        };
        let situation = Situation { peers, ..self.situation() };
        let rates = lock(&self.rates).clone();
        if self.options.share > 0.0 {
            return decide(actives, &rates, &situation, staying);
        }
        let place = |active: &Arc<Active>| match active.work.asker {
            Some(_) => Verdict { place: Place::Client, storage_seconds: f64::INFINITY, client_seconds: None },
            None => Verdict { place: Place::Storage, storage_seconds: f64::INFINITY, client_seconds: None },
        };
        Ok(actives.iter().map(place).collect())
    }

    fn carry_out(&self, active: &Active, verdict: &Verdict, now: f64, count: usize) {
        if verdict.place != Place::Client || active.hand_off.why().is_some() {
            return;
        }
        if stays_anyway(active, verdict, now) {
            return;
        }
        let client_seconds = verdict.client_seconds.unwrap_or(0.0);
        if active.is_running() {
            lock(&active.revision).moved(now, Place::Client);
        }
        let Some(asker) = &active.work.asker else { return };
        let link = lock(&self.links).link();
        lock(&self.backlog).add(&asker.name, now, client_seconds, active.bytes_left() as f64 / link);
        let why = if self.options.share > 0.0 {
            format!(
                "the node has {count} active requests; this one would take {:.2} s here, and {client_seconds:.2} s at \
                 its client with all bytes that move there",
                verdict.storage_seconds
            )
        } else {
            "the node takes no active work (--active-share 0)".to_owned()
        };
        active.hand_off.hand_back(why);
    }
}

/// Average of an estimate and of the value in the last `lasted` seconds.
fn smoothed(believed: f64, seen: f64, lasted: f64) -> f64 {
    believed + (seen - believed) * (1.0 - (-lasted / OTHERS_SECONDS).exp())
}

/// Whether a request stays although the verdict is its client: it runs, and the gain is too small.
fn stays_anyway(active: &Active, verdict: &Verdict, now: f64) -> bool {
    let client_seconds = [(Place::Client, verdict.client_seconds.unwrap_or(0.0))];
    verdict.place == Place::Client
        && active.is_running()
        && lock(&active.revision).consider(now, verdict.storage_seconds, &client_seconds).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_burst_changes_little_and_a_lasting_load_counts() {
        let busy_for = |seconds: f64| {
            let samples = (seconds / 0.5) as usize;
            (0..samples).fold(0.0, |believed, _| smoothed(believed, 1.0, 0.5))
        };
        assert!(busy_for(0.5) < 0.1);
        assert!(busy_for(20.0) > 0.98);
        assert_eq!(smoothed(0.3, 0.9, 0.0), 0.3);
    }
}
