//! The active requests of a node, waiting and running.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use gristmill_kernel::{Output, Passes, Record, RecordRule};
use gristmill_layout::Layout;
use gristmill_peers::ExtraWork;
use gristmill_runtime::{Request, RunError};
use gristmill_schedule::{Place, Revision};
use gristmill_wire::{Asker, FoldRequest};
use tokio::sync::Notify;

use crate::hand_off::HandOff;

/// Properties of an active request when it arrives.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub kernel: String,
    /// Principal of its grant.
    pub principal: String,
    /// Name that the client's process gave itself.
    pub client_name: Option<String>,
    /// The client, if the request may be handed back to it.
    pub asker: Option<Asker>,
    /// Address that its connection comes from, unless a node passed the request on.
    pub from: Option<IpAddr>,
    /// Bytes on this node that it reads.
    pub bytes: u64,
    /// Seconds of one processor that it needs in addition to the fold of these bytes.
    pub extra_seconds: f64,
    /// Approximate bytes of its answer.
    pub result_bytes: u64,
    /// Bytes of a position. The progress in bytes is computed from positions.
    pub record: u64,
    /// Whether it has several passes, each of which reads all bytes.
    pub several_passes: bool,
}

impl Work {
    /// Describes a request of this principal. `kernel` is the name under which its speed is measured.
    ///
    /// # Errors
    /// Returns an error if a chunk does not lie in the file.
    pub fn new(
        request: &FoldRequest,
        run: &Request,
        kernel: String,
        principal: &str,
    ) -> Result<Work, RunError> {
        let (spec, file) = (run.kernel.spec(), &run.file);
        let record = match (spec.record, run.input.record) {
            (Record::Index(_), _) => 0,
            (_, RecordRule::Fixed(size)) => size,
            (_, RecordRule::Lines) => 1,
        };
        let at = |position: u64| {
            run.selection.skip.saturating_add(position.saturating_mul(record)).min(file.length)
        };
        let range = at(request.select.0)..at(request.select.1);
        let (bytes, record) = match &run.chunks {
            None => {
                let bytes = |target: &u32| file.layout.bytes_on(*target, range.clone());
                (request.targets.iter().map(bytes).sum(), record)
            }
            Some(chunks) => {
                let shares = chunks.shares(&file.layout, file.length)?;
                let own = || request.targets.iter().filter_map(|target| shares.get(*target as usize));
                let bytes: u64 = own().map(|share| share.bytes).sum();
                let chunks: u64 = own().map(|share| share.chunks).sum();
                (bytes, bytes / chunks.max(1))
            }
        };
        let extra_seconds = match &file.layout {
            Layout::Striped(striped) if spec.output != Output::Value && run.chunks.is_none() => {
                let lines = run.input.record == RecordRule::Lines;
                // The estimate assumes a node for each target.
                let nodes = u64::from(striped.targets());
                let all = bytes.saturating_mul(nodes) / (request.targets.len() as u64).max(1);
                ExtraWork::for_rows(all, striped.unit(), nodes, lines).shared_by(nodes).seconds()
                    * request.targets.len() as f64
            }
            _ => 0.0,
        };
        Ok(Work {
            kernel,
            principal: principal.to_owned(),
            client_name: request.asker.as_ref().map(|asker| asker.name.clone()),
            asker: request.asker.clone(),
            from: None,
            bytes,
            result_bytes: if spec.output == Output::Bytes { bytes } else { spec.state_hint },
            record,
            several_passes: spec.passes == Passes::Several,
            extra_seconds,
        })
    }
}

#[cfg(test)]
impl Work {
    /// A request of so many bytes that may be handed back to a client on a machine of its own.
    pub fn for_tests(bytes: u64) -> Work {
        let name = "asker".to_owned();
        let asker = Asker { name, lanes: 1, millicores: None, rate: None, link: None, processors: None };
        Work {
            kernel: "kmeans".into(),
            principal: "anonymous".into(),
            client_name: None,
            asker: Some(asker),
            from: None,
            bytes,
            extra_seconds: 0.0,
            result_bytes: 64,
            record: 1,
            several_passes: false,
        }
    }
}

/// An active request on this node.
pub(crate) struct Active {
    pub number: u64,
    pub work: Work,
    pub hand_off: Arc<HandOff>,
    /// Time of arrival.
    pub arrived: Instant,
    running: AtomicBool,
    /// Notified after each decision about all active requests.
    pub decided: Notify,
    pub revision: Mutex<Revision>,
    /// Bytes and seconds that were used already to learn the rate of its kernel.
    learned: Mutex<(u64, f64)>,
}

impl Active {
    /// Approximate bytes that are not folded yet.
    pub fn bytes_left(&self) -> u64 {
        self.work.bytes.saturating_sub(self.folded())
    }

    /// Seconds of one processor that it still needs in addition to the fold of the bytes left.
    pub fn extra_seconds_left(&self) -> f64 {
        self.work.extra_seconds * self.bytes_left() as f64 / (self.work.bytes as f64).max(1.0)
    }

    /// Approximate bytes that were folded in this pass.
    pub fn folded(&self) -> u64 {
        self.hand_off.own.progress().0.saturating_mul(self.work.record)
    }

    /// Approximate bytes that were folded in all passes. Bytes that statistics settled do not count: they were not
    /// folded and say nothing about the speed.
    pub fn folded_in_all_passes(&self) -> u64 {
        let own = &self.hand_off.own;
        own.total_folded().saturating_sub(own.total_settled()).saturating_mul(self.work.record)
    }

    /// Bytes folded and seconds of processor time used since the last call that returned a value. `None` for fewer
    /// than `least` bytes.
    pub fn progress(&self, least: u64) -> Option<(u64, f64)> {
        let now = (self.folded_in_all_passes(), self.hand_off.pace.used());
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = now.0.saturating_sub(learned.0);
        if bytes < least {
            return None;
        }
        let before = std::mem::replace(&mut *learned, now);
        Some((bytes, now.1 - before.1))
    }

    pub fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed)
    }

    /// Records that the request has its turn since `now`, on the clock of revisions. Only the first call counts.
    pub fn set_running(&self, now: f64) {
        let mut revision = self.revision.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.running.swap(true, Ordering::Relaxed) {
            *revision = Revision::new(Place::Storage, now);
        }
    }
}

/// Whether a request of the list may be handed back.
fn any_movable(list: &BTreeMap<u64, Arc<Active>>) -> bool {
    list.values().any(|active| active.work.asker.is_some())
}

/// All active requests of a node.
#[derive(Default)]
pub(crate) struct ActiveList {
    list: Mutex<BTreeMap<u64, Arc<Active>>>,
    next: AtomicU64,
}

impl ActiveList {
    fn list(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Active>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request. `now`: seconds on the clock of revisions.
    pub fn add(&self, work: Work, hand_off: Arc<HandOff>, now: f64) -> Arc<Active> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let active = Arc::new(Active {
            number,
            work,
            hand_off,
            arrived: Instant::now(),
            running: AtomicBool::new(false),
            decided: Notify::new(),
            revision: Mutex::new(Revision::new(Place::Storage, now)),
            learned: Mutex::new((0, 0.0)),
        });
        self.list().insert(number, active.clone());
        active
    }

    /// Removes a request. Returns whether a request that may be handed back is left.
    pub fn remove(&self, number: u64) -> bool {
        let mut list = self.list();
        list.remove(&number);
        any_movable(&list)
    }

    /// Whether there is a request that may be handed back. Without one there is nothing to decide.
    pub fn has_movable(&self) -> bool {
        any_movable(&self.list())
    }

    /// All requests, in the order of their arrival.
    pub fn all(&self) -> Vec<Arc<Active>> {
        self.list().values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use gristmill_runtime::Control;

    use super::*;
    use crate::ActivePriority;
    use crate::contention::cap::Cap;
    use crate::contention::normal::NormalCount;
    use crate::contention::pace::FoldPace;

    fn hand_off() -> Arc<HandOff> {
        let cap = Arc::new(Cap::new(1.0, 1.0, ActivePriority::Idle, NormalCount::default()));
        Arc::new(HandOff::at_passes(&Arc::new(Control::new()), FoldPace::for_tests(&cap)))
    }

    #[test]
    fn there_is_something_to_decide_while_a_request_may_be_handed_back() {
        let list = ActiveList::default();
        let stays = list.add(Work { asker: None, ..Work::for_tests(8000) }, hand_off(), 0.0);
        assert!(!list.has_movable());
        let moves = list.add(Work::for_tests(8000), hand_off(), 0.0);
        assert!(list.has_movable());
        assert!(list.remove(stays.number));
        assert!(!list.remove(moves.number));
    }

    #[test]
    fn speeds_are_learned_from_all_passes() {
        let active = ActiveList::default().add(Work { record: 8, ..Work::for_tests(8000) }, hand_off(), 0.0);
        for _ in 0..3 {
            active.hand_off.own.begin_pass(0, 1000);
            for _ in 0..2 {
                active.hand_off.own.folded(500);
                assert_eq!(active.progress(4000).map(|(bytes, _)| bytes), Some(4000));
                assert_eq!(active.progress(1), None);
            }
            assert_eq!(active.bytes_left(), 0);
        }
    }
}
