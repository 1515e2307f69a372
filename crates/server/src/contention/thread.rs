//! The thread that watches a node and decides anew whenever something has changed.

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

/// How often the machine is looked at, and running work decided anew.
const SAMPLE_EVERY: Duration = Duration::from_millis(500);

/// How often it is looked what control groups let this process use, while anything is decided.
const QUOTA_EVERY: Duration = Duration::from_millis(50);

/// Seconds over which it is averaged what others take of the machine: work that is handed back for a burst of half a second
/// does not come back when it is over.
const OTHERS_SECONDS: f64 = 5.0;

impl Contention {
    /// Watches until it is told to stop.
    pub(super) fn watch(&self) {
        let mut sampler = Sampler::new(Path::new("/proc"));
        let (mut sampled, mut quota_read): (Option<Instant>, Option<Instant>) = (None, None);
        let (mut used, mut budget) = (0.0, DecisionBudget::new(self.begun));
        loop {
            let due = sampled.is_none_or(|at| at.elapsed() >= SAMPLE_EVERY);
            if due {
                let lasted = sampled.map_or(0.0, |at| at.elapsed().as_secs_f64());
                let sample = sampler.sample();
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
                let sent = self.senders.sent();
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
                *lock(&self.usable) = now;
                *lock(&self.processors) = processors;
                quota_read = Some(Instant::now());
            }
            let before = thread_time();
            // A node without work decides at once when some comes.
            if self.decide() {
                budget.took(thread_time().saturating_sub(before), Instant::now());
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
                // A burst is decided together.
                drop(signal);
                std::thread::sleep(budget.rest(Instant::now()));
            }
        }
    }

    /// Decides for all that are here, and hands back what had better go. False if nothing is here.
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
            Some(_) => Verdict { place: Place::Client, here: f64::INFINITY, there: None },
            None => Verdict { place: Place::Storage, here: f64::INFINITY, there: None },
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
        let there = verdict.there.unwrap_or(0.0);
        if active.is_running() {
            lock(&active.revision).moved(now, Place::Client);
        }
        let Some(asker) = &active.work.asker else { return };
        let link = lock(&self.links).link();
        lock(&self.backlog).add(&asker.name, now, there, active.left() as f64 / link);
        let why = if self.options.share > 0.0 {
            format!(
                "the node has {count} active requests; here it would take {:.2} s, where it was asked {there:.2} s with \
                 all that is moved for it",
                verdict.here
            )
        } else {
            "the node takes no active work (--active-share 0)".to_owned()
        };
        active.hand_off.hand_back(why);
    }
}

/// What was believed and what was seen in the last `lasted` seconds, together.
fn smoothed(believed: f64, seen: f64, lasted: f64) -> f64 {
    believed + (seen - believed) * (1.0 - (-lasted / OTHERS_SECONDS).exp())
}

/// Whether a request stays that had better go: it runs, and too little is gained.
fn stays_anyway(active: &Active, verdict: &Verdict, now: f64) -> bool {
    let there = [(Place::Client, verdict.there.unwrap_or(0.0))];
    verdict.place == Place::Client
        && active.is_running()
        && lock(&active.revision).consider(now, verdict.here, &there).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_not_believed_and_what_lasts_is() {
        let busy_for = |seconds: f64| {
            let looks = (seconds / 0.5) as usize;
            (0..looks).fold(0.0, |believed, _| smoothed(believed, 1.0, 0.5))
        };
        assert!(busy_for(0.5) < 0.1);
        assert!(busy_for(20.0) > 0.98);
        assert_eq!(smoothed(0.3, 0.9, 0.0), 0.3);
    }
}
