//! The thread that watches a node and decides anew whenever something has changed.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill_runtime::{ErrorKind, quota, whole_cores};
use gristmill_schedule::{MAX_RATE, MIN_RATE, Place, Rates, ScheduleError};

use gristmill_transport::Senders;
use gristmill_wire::NodeLoad;

use super::active::{Active, ActiveList, Work};
use super::counts::Counts;
use super::decide::{Objective, Situation, Verdict, decide};
use super::links::Links;
use super::normal::NormalCount;
use super::pace::Cap;
use super::pressure;
use super::queue::Queue;
use super::sample::{Sample, Sampler};
use crate::error::{Answer, Refusal};
use crate::moving::Moving;
use crate::{ActivePriority, NodeOptions, ServerError};

/// How often the machine is looked at, and running work decided anew.
pub(crate) const SAMPLE_EVERY: Duration = Duration::from_millis(500);

/// Decisions are at least so far apart: what comes meanwhile is decided together.
const DECIDE_EVERY: Duration = Duration::from_millis(10);

/// How long a request waits at most to be decided on before it begins here.
const ADMIT: Duration = Duration::from_millis(100);

/// Decisions take at most one part of a core's time in so many.
const DECIDING: u32 = 100;

/// Bytes a second of one core for a kernel that was never measured.
const UNKNOWN_RATE: f64 = 1e9;

/// Bytes a second of a link of which nobody said anything and that was not measured: 10 Gbit/s.
const UNKNOWN_LINK: f64 = 1.25e9;

/// Fewer bytes than these are always folded where they lie.
const LEAST_MOVED: u64 = 1 << 20;

/// Askers of whom it is remembered what they have to fold.
const MAX_ASKERS: usize = 4096;

/// How a node shares its machine with active work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// Share of the processors that active work may use, 0 to 1.
    pub share: f64,
    /// Bytes a second of the link out, as the administrator says.
    pub link: Option<f64>,
    pub objective: Objective,
    pub priority: ActivePriority,
    /// Threads of a fold.
    pub lanes: usize,
}

impl Terms {
    /// What a node was started with.
    ///
    /// # Errors
    /// A share or a link that cannot be.
    pub fn of(options: &NodeOptions, lanes: usize) -> Result<Terms, ServerError> {
        let share = options.active_share;
        if !(0.0..=1.0).contains(&share) {
            let text =
                format!("a share of the processors is from 0 to 1, not {share}; give --active-share 0.5");
            return Err(ServerError::Usage(text));
        }
        let link = options.link.map(|link| link as f64);
        if let Some(link) = link.filter(|link| !(MIN_RATE..=MAX_RATE).contains(link)) {
            let text = format!("no link has {link} bytes a second; give --link 125MB for 1 Gbit/s");
            return Err(ServerError::Usage(text));
        }
        Ok(Terms { share, link, objective: options.objective, priority: options.active_priority, lanes })
    }
}

/// A node's contention estimator.
pub(crate) struct Contention {
    terms: Terms,
    cores: usize,
    pub active: ActiveList,
    pub cap: Arc<Cap>,
    /// The connections of this node, to be measured.
    pub senders: Arc<Senders>,
    /// Normal reads and writes.
    pub normal: NormalCount,
    links: Mutex<Links>,
    rates: Mutex<Rates>,
    sample: Mutex<Sample>,
    /// Processors that control groups let this process use, if they say.
    quota: Mutex<Option<f64>>,
    given: Mutex<Given>,
    begun: Instant,
    signal: Mutex<Signal>,
    changed: Condvar,
    counts: Mutex<Counts>,
    /// Seconds after which to come again, as they were when the machine was looked at: a flood of refusals must not
    /// cost more than the work that it is about.
    retry_after: AtomicU32,
}

/// What was handed back and is, as far as can be told, not done yet. Seconds on the clock of the estimator.
#[derive(Default)]
struct Given {
    /// When each asker is done with it.
    askers: HashMap<String, f64>,
    /// When the link is done with its bytes.
    link: f64,
}

#[derive(Default)]
struct Signal {
    changed: bool,
    stop: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

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
    /// Watches until it is told to stop.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn start(terms: Terms) -> Result<Arc<Contention>, std::io::Error> {
        let cores = whole_cores();
        let unknown = || std::io::Error::other("a rate that no machine has");
        let contention = Arc::new(Contention {
            terms,
            cores,
            active: ActiveList::default(),
            cap: Arc::new(Cap::new(terms.share, cores, terms.priority)),
            senders: Arc::default(),
            normal: NormalCount::default(),
            links: Mutex::new(Links::new(terms.link, UNKNOWN_LINK)),
            rates: Mutex::new(Rates::new(UNKNOWN_RATE).map_err(|_| unknown())?),
            sample: Mutex::default(),
            quota: Mutex::new(quota()),
            given: Mutex::default(),
            begun: Instant::now(),
            signal: Mutex::default(),
            changed: Condvar::new(),
            counts: Mutex::default(),
            retry_after: AtomicU32::new(1),
        });
        let watching = contention.clone();
        std::thread::Builder::new().name("contention".into()).spawn(move || watching.watch())?;
        Ok(contention)
    }

    /// Ends the thread.
    pub fn stop(&self) {
        lock(&self.signal).stop = true;
        self.changed.notify_all();
    }

    fn tell(&self) {
        lock(&self.signal).changed = true;
        self.changed.notify_all();
    }

    /// Seconds on the clock of decisions, which never runs backwards.
    fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Takes an active request in at the node of this address.
    ///
    /// # Errors
    /// The node takes no active work, and nobody can go on with it.
    pub fn admit(self: &Arc<Self>, mut work: Work, moving: Arc<Moving>, node: &str) -> Answer<Admitted> {
        if self.terms.share == 0.0 && work.asker.is_none() {
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

    fn watch(&self) {
        let mut sampler = Sampler::new(Path::new("/proc"));
        let mut sampled: Option<Instant> = None;
        let (mut used, mut decided, mut rest) = (0.0, self.begun, DECIDE_EVERY);
        loop {
            let due = sampled.is_none_or(|at| at.elapsed() >= SAMPLE_EVERY);
            if due {
                let lasted = sampled.map_or(0.0, |at| at.elapsed().as_secs_f64());
                let sample = sampler.sample();
                let ours = self.cap.used();
                let share = (ours - std::mem::replace(&mut used, ours)) / (lasted * self.cores as f64);
                let others = if lasted > 0.0 { (sample.cpu - share).clamp(0.0, 1.0) } else { 0.0 };
                *lock(&self.sample) = Sample { others, ..sample };
                *lock(&self.quota) = quota();
                let sent = self.senders.sent();
                lock(&self.links).learn(self.now(), &sent);
                sampled = Some(Instant::now());
                self.active.all().iter().for_each(|active| self.learn(active));
                self.retry_after.store(self.queue().retry_after(), Ordering::Relaxed);
            }
            let begun = Instant::now();
            self.decide();
            if begun.elapsed() * DECIDING > rest {
                rest = (begun.elapsed() * DECIDING).min(SAMPLE_EVERY);
            }
            decided = decided.max(Instant::now());
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
                std::thread::sleep(
                    std::mem::replace(&mut rest, DECIDE_EVERY).saturating_sub(decided.elapsed()),
                );
            }
        }
    }

    /// What a running request tells of the speed of its kernel.
    fn learn(&self, active: &Active) {
        let (bytes, seconds) = active.progress();
        lock(&self.rates).observe(&active.work.kernel, bytes, seconds);
    }

    /// What was done since the node started.
    pub fn counts(&self) -> Counts {
        lock(&self.counts).clone()
    }

    /// The same, and the active requests that are not in it yet.
    pub fn counts_and_active(&self) -> (Counts, Vec<Arc<Active>>) {
        let counts = lock(&self.counts);
        (counts.clone(), self.active.all())
    }

    /// Bytes a second of one core with a kernel, and whether that was measured.
    pub fn rate(&self, kernel: &str) -> (f64, bool) {
        let rates = lock(&self.rates);
        let known = rates.get(kernel);
        (known.rate(), known.confidence() > 0.0)
    }

    /// Time since the node started.
    pub fn up(&self) -> Duration {
        self.begun.elapsed()
    }

    fn situation(&self) -> Situation {
        let (now, cores) = (self.now(), self.cores as f64);
        let sample = *lock(&self.sample);
        let free = cores * (1.0 - sample.others).max(self.terms.priority.least_share());
        let free = lock(&self.quota).map_or(free, |quota| free.min(quota));
        let link = lock(&self.links).link();
        let given = lock(&self.given);
        Situation {
            cores: free.min(cores * self.terms.share) * pressure::left(&sample, self.normal.now()),
            lanes: self.terms.lanes as f64,
            link,
            link_busy: (given.link - now).max(0.0),
            clients: given
                .askers
                .iter()
                .map(|(name, until)| (name.clone(), (until - now).max(0.0)))
                .collect(),
            peers: HashMap::new(),
            objective: self.terms.objective,
        }
    }

    /// The active work that is here.
    fn queue(&self) -> Queue {
        let cores = self.situation().cores;
        let rates = lock(&self.rates);
        let actives = self.active.all();
        let seconds = |one: &Arc<Active>| one.left() as f64 / rates.get(&one.work.kernel).rate();
        let work = actives.iter().fold(0.0, |sum, one| sum + seconds(one));
        Queue { seconds: if cores > 0.0 { work / cores } else { 0.0 }, requests: actives.len() }
    }

    /// Seconds after which somebody who was refused had better come again.
    pub fn retry_after(&self) -> u32 {
        self.retry_after.load(Ordering::Relaxed)
    }

    /// What is said to those who ask where to run a kernel.
    pub fn load(&self, kernel: &str) -> NodeLoad {
        let situation = self.situation();
        let sample = *lock(&self.sample);
        let actives = self.active.all();
        let queue = self.queue();
        let rates = lock(&self.rates);
        let known = rates.get(kernel);
        NodeLoad {
            cores: situation.cores,
            lanes: u32::try_from(self.terms.lanes).unwrap_or(u32::MAX),
            rate: known.rate(),
            measured: known.confidence() > 0.0,
            link: situation.link,
            link_measured: lock(&self.links).is_measured(),
            link_busy: situation.link_busy,
            normal: self.normal.now(),
            active: actives.len() as u64,
            running: actives.iter().filter(|one| one.is_running()).count() as u64,
            queued: queue.seconds,
            cpu: sample.cpu,
            others: sample.others,
            memory: sample.memory,
            io: sample.io,
            ..NodeLoad::default()
        }
    }

    /// Decides for all that are here, and hands back what had better go.
    fn decide(&self) {
        let actives = self.active.all();
        if actives.is_empty() {
            return;
        }
        let begun = Instant::now();
        let verdicts = self.verdicts(&actives);
        let mut counts = lock(&self.counts);
        counts.decisions += 1;
        counts.seconds += begun.elapsed().as_secs_f64();
        drop(counts);
        let (now, count) = (self.now(), actives.len());
        for (active, verdict) in actives.iter().zip(verdicts.unwrap_or_default()) {
            self.carry_out(active, &verdict, now, count);
        }
        actives.iter().for_each(|active| active.decided.notify_one());
    }

    fn verdicts(&self, actives: &[Arc<Active>]) -> Result<Vec<Verdict>, ScheduleError> {
        let peers = {
            let links = lock(&self.links);
            let from = actives.iter().filter_map(|active| active.work.from);
            from.filter_map(|from| Some((from, links.peer(from)?))).collect()
        };
        let situation = Situation { peers, ..self.situation() };
        let rates = lock(&self.rates).clone();
        if self.terms.share > 0.0 {
            return decide(actives, &rates, &situation);
        }
        let place = |active: &Arc<Active>| match active.work.asker {
            Some(_) => Verdict { place: Place::Client, here: f64::INFINITY, there: None },
            None => Verdict { place: Place::Storage, here: f64::INFINITY, there: None },
        };
        Ok(actives.iter().map(place).collect())
    }

    fn carry_out(&self, active: &Active, verdict: &Verdict, now: f64, count: usize) {
        if verdict.place != Place::Client || active.moving.why().is_some() {
            return;
        }
        let there = verdict.there.unwrap_or(0.0);
        let moved = !active.is_running() || {
            let mut revision = lock(&active.revision);
            let to = revision.consider(now, verdict.here, &[(Place::Client, there)]);
            if let Some(to) = to {
                revision.moved(now, to);
            }
            to.is_some()
        };
        if !moved {
            return;
        }
        let Some(asker) = &active.work.asker else { return };
        let link = lock(&self.links).link();
        let mut given = lock(&self.given);
        if given.askers.len() >= MAX_ASKERS {
            given.askers.retain(|_, until| *until > now);
        }
        if given.askers.len() < MAX_ASKERS {
            given.askers.insert(asker.name.clone(), now + there);
        }
        given.link = given.link.max(now) + active.left() as f64 / link;
        drop(given);
        let why = if self.terms.share > 0.0 {
            format!(
                "the node has {count} active requests; here it would take {:.2} s, where it was asked {there:.2} s",
                verdict.here
            )
        } else {
            "the node takes no active work (--active-share 0)".to_owned()
        };
        active.moving.hand_back(why);
    }
}
