//! State of the contention estimator, and what the node reports of it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill_runtime::{Allowance, whole_cores};
use gristmill_schedule::Rates;
use gristmill_transport::Senders;
use gristmill_wire::{NodeLoad, Processors};

use super::active::{Active, ActiveList};
use super::backlog::Backlog;
use super::cap::Cap;
use super::counts::Counts;
use super::decide::{SharedProcessors, Situation};
use super::links::Links;
use super::normal::NormalCount;
use super::options::ContentionOptions;
use super::pressure;
use super::prior;
use super::queue::Queue;
use super::sample::Sample;
use super::sending::Sending;

/// Assumed bytes per second of a link without a measurement or an option: 10 Gbit/s.
const UNKNOWN_LINK: f64 = 1.25e9;

/// Seconds for which a lane folds before it checks for reads and writes, and the fewest bytes.
const BLOCK_SECONDS: f64 = 0.000_2;
const LEAST_BLOCK: usize = 32 << 10;

/// Fewest bytes of a request from which the rate of its kernel is learned. With fewer, most of the time is the start:
/// `first` would seem slow.
const LEAST_LEARNED: u64 = 1 << 20;

/// A node's contention estimator.
pub(crate) struct Contention {
    pub(super) options: ContentionOptions,
    pub(super) cores: usize,
    pub active: ActiveList,
    pub cap: Arc<Cap>,
    /// Connections of this node, with what they sent.
    pub senders: Arc<Senders>,
    /// Number of normal reads and writes.
    pub normal: NormalCount,
    pub(super) links: Mutex<Links>,
    pub(super) rates: Mutex<Rates>,
    pub(super) sample: Mutex<Sample>,
    /// Processors that this process may use: all of the machine, or fewer if control groups limit it.
    pub(super) usable: Mutex<f64>,
    /// Name of the processors, if known.
    pub(super) processors: Mutex<Option<String>>,
    pub(super) sending: Mutex<Sending>,
    pub(super) backlog: Mutex<Backlog>,
    pub(super) begun: Instant,
    pub(super) signal: Mutex<Signal>,
    pub(super) changed: Condvar,
    pub(super) counts: Mutex<Counts>,
    /// Seconds after which a refused client should try again, as computed at the last sample. A flood of refusals must
    /// not cost more than the work itself.
    pub(super) retry_after: AtomicU32,
}

#[derive(Default)]
pub(super) struct Signal {
    pub changed: bool,
    pub stop: bool,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Processors that this process may use: `cores`, or the quota if that is less.
pub(super) fn usable(cores: usize, quota: Option<f64>) -> f64 {
    let cores = cores as f64;
    quota.map_or(cores, |quota| quota.min(cores))
}

impl Contention {
    /// Starts the estimator and its thread, which runs until [`stop`](Contention::stop).
    ///
    /// # Errors
    /// Returns an error if the thread cannot be started.
    pub fn start(options: ContentionOptions) -> Result<Arc<Contention>, std::io::Error> {
        let cores = whole_cores();
        let Allowance { quota, processors } = Allowance::now();
        let usable = usable(cores, quota);
        let normal = NormalCount::default();
        let unknown = || std::io::Error::other("an assumed rate is out of range");
        let contention = Arc::new(Contention {
            options,
            cores,
            active: ActiveList::default(),
            cap: Arc::new(Cap::new(options.share, usable, options.priority, normal.clone())),
            senders: Arc::default(),
            normal,
            links: Mutex::new(Links::new(options.link, UNKNOWN_LINK)),
            rates: Mutex::new(prior::rates().map_err(|_| unknown())?),
            sample: Mutex::default(),
            usable: Mutex::new(usable),
            processors: Mutex::new(processors),
            sending: Mutex::new(Sending::new().map_err(|_| unknown())?),
            backlog: Mutex::default(),
            begun: Instant::now(),
            signal: Mutex::default(),
            changed: Condvar::new(),
            counts: Mutex::default(),
            retry_after: AtomicU32::new(1),
        });
        let running = contention.clone();
        std::thread::Builder::new().name("contention".into()).spawn(move || running.run())?;
        Ok(contention)
    }

    /// Ends the thread.
    pub fn stop(&self) {
        lock(&self.signal).stop = true;
        self.changed.notify_all();
    }

    /// Lets the thread decide again.
    pub(super) fn wake(&self) {
        lock(&self.signal).changed = true;
        self.changed.notify_all();
    }

    /// Seconds on the clock of decisions, which never runs backwards.
    pub(super) fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Learns the rate of a kernel from the progress of a request.
    pub(super) fn learn(&self, active: &Active) {
        let Some((bytes, seconds)) = active.progress(LEAST_LEARNED) else { return };
        lock(&self.rates).observe(&active.work.kernel, bytes, seconds);
    }

    /// Counts since the node started.
    pub fn counts(&self) -> Counts {
        lock(&self.counts).clone()
    }

    /// Counts since the node started, and the active requests, which are not counted yet.
    pub fn counts_and_active(&self) -> (Counts, Vec<Arc<Active>>) {
        let counts = lock(&self.counts);
        (counts.clone(), self.active.all())
    }

    /// Bytes per second of one core with a kernel, and whether this rate was measured.
    pub fn rate(&self, kernel: &str) -> (f64, bool) {
        let rates = lock(&self.rates);
        let known = rates.get(kernel);
        (known.rate(), known.confidence() > 0.0)
    }

    /// Bytes of a block that a lane folds at once: `usual`, or fewer for a slow kernel so that reads need not wait for
    /// the end of the block.
    pub fn block_bytes(&self, kernel: &str, usual: usize) -> usize {
        let (rate, measured) = self.rate(kernel);
        if !measured {
            return usual;
        }
        ((rate * BLOCK_SECONDS) as usize).next_multiple_of(LEAST_BLOCK).clamp(LEAST_BLOCK.min(usual), usual)
    }

    /// Time since the node started.
    pub fn up(&self) -> Duration {
        self.begun.elapsed()
    }

    pub(super) fn situation(&self) -> Situation {
        let (now, cores) = (self.now(), self.cores as f64);
        let sample = *lock(&self.sample);
        let free = cores * (1.0 - sample.others).max(self.cap.priority().least_share());
        let usable = *lock(&self.usable);
        let short = pressure::available_share(&sample, self.normal.now());
        let link = lock(&self.links).link();
        let backlog = lock(&self.backlog);
        Situation {
            cores: free.min(usable * self.options.share) * short,
            machine: SharedProcessors {
                processors: lock(&self.processors).clone(),
                // Clients on the same machine have the same shortage.
                cores: free.min(usable) * short,
                used: sample.ours * cores,
                usable,
            },
            sends: lock(&self.sending).rate(),
            lanes: self.options.lanes as f64,
            link,
            link_busy: backlog.link(now),
            clients: backlog.clients(now),
            peers: HashMap::new(),
            objective: self.options.objective,
        }
    }

    /// The active work on this node.
    pub(super) fn queue(&self) -> Queue {
        let cores = self.situation().cores;
        let rates = lock(&self.rates);
        let actives = self.active.all();
        let seconds = |one: &Arc<Active>| {
            one.bytes_left() as f64 / rates.get(&one.work.kernel).rate() + one.extra_seconds_left()
        };
        let work = actives.iter().fold(0.0, |sum, one| sum + seconds(one));
        Queue { seconds: if cores > 0.0 { work / cores } else { 0.0 }, requests: actives.len() }
    }

    /// Seconds after which a refused client should try again.
    pub fn retry_after(&self) -> u32 {
        self.retry_after.load(Ordering::Relaxed)
    }

    /// Load of the node, for clients that choose where to run a kernel.
    pub fn load(&self, kernel: &str) -> NodeLoad {
        let situation = self.situation();
        let sample = *lock(&self.sample);
        let actives = self.active.all();
        let queue = self.queue();
        let rates = lock(&self.rates);
        let known = rates.get(kernel);
        NodeLoad {
            cores: situation.cores,
            lanes: u32::try_from(self.options.lanes).unwrap_or(u32::MAX),
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
            processors: situation.machine.processors.map(|name| Processors {
                name,
                cores: situation.machine.usable,
                most: situation.machine.usable * self.options.share,
                used: situation.machine.used,
            }),
            sends: situation.sends,
            ..NodeLoad::default()
        }
    }
}
