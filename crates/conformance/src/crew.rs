//! A crew in memory. Each member folds the records of some targets of the same file, and its answers go through bytes.

use std::fmt;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};

use fastrand::Rng;
use gristmill_kernel::Passes;
use gristmill_runtime::{
    Control, Crew, EventOutput, EventSource, GroupEnd, GroupJob, HandBack, Options, Partial, PassOrder,
    Request, RowsEnd, RunError, Selection, Shard, ShardEnd, ShardJob, TakeShard, UnitEvent, UnitSource,
    keeps_bytes,
};

use crate::kept::KeptObject;

/// Most events that a member sends before they are read.
const EVENTS_AHEAD: usize = 1;

/// Members that each fold the records of some targets.
pub(crate) struct MemoryCrew {
    request: Request,
    /// Targets and options of each member.
    members: Vec<(Vec<u32>, Options)>,
    /// Objects of the members, if they keep their bytes.
    kept: Option<Mutex<Vec<KeptObject>>>,
    seed: u64,
}

impl fmt::Display for MemoryCrew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let targets: Vec<_> = self.members.iter().map(|(targets, _)| targets).collect();
        let keep = if self.kept.is_some() { " keep their bytes and" } else { "" };
        write!(f, "members with the targets {targets:?}{keep} answer in an order of seed {}", self.seed)
    }
}

impl MemoryCrew {
    /// Creates members with random groups of the targets of the request's file.
    pub fn new(request: &Request, rng: &mut Rng) -> MemoryCrew {
        let mut targets: Vec<u32> = (0..request.file.layout.targets()).collect();
        rng.shuffle(&mut targets);
        let mut members: Vec<(Vec<u32>, Options)> = Vec::new();
        for target in targets {
            match members.last_mut() {
                Some((group, _)) if rng.u8(0..3) == 0 => group.push(target),
                _ => {
                    let options = Options {
                        lanes: rng.usize(1..3),
                        block_bytes: rng.usize(1..100),
                        unit_bytes: rng.u64(1..300),
                        ..request.options.clone()
                    };
                    members.push((vec![target], options));
                }
            }
        }
        let kept = (keeps_bytes(&request.kernel.spec()) && rng.bool()).then(Mutex::default);
        MemoryCrew { request: request.clone(), members, kept, seed: rng.u64(..) }
    }

    /// The bytes that the members kept, as one file. `None` if they do not keep bytes.
    pub fn kept(&self) -> Option<Result<Vec<u8>, RunError>> {
        let kept = self.kept.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        Some(crate::kept::kept_file(&kept))
    }

    /// Whether members keep the bytes of this pass.
    fn keeps_now(&self, order: &PassOrder<'_>) -> bool {
        self.kept.is_some() && (order.ctx.last || order.kernel.spec().passes == Passes::One)
    }

    /// Draws the number of records after which a member hands back the rest, if it does so.
    fn draw_control(&self, order: &PassOrder<'_>, member: &(Vec<u32>, Options)) -> Control {
        let mut rng = Rng::with_seed(self.seed ^ u64::from(order.ctx.round) ^ u64::from(member.0[0]) << 32);
        let records = order.ctx.extent.end - order.ctx.extent.start;
        if order.kernel.spec().can_save && rng.bool() {
            Control::stop_after(rng.u64(0..=records.min(200)))
        } else {
            Control::new()
        }
    }

    /// Folds a member's shard for a value. The crew itself folds the rest that the member hands back.
    fn fold_value(&self, order: &PassOrder<'_>, member: &(Vec<u32>, Options)) -> Result<ShardEnd, RunError> {
        let job = self.job(order, member)?;
        let Some(kept) = self.kept.as_ref().filter(|_| self.keeps_now(order)) else {
            let control = self.draw_control(order, member);
            let mut end = job.values(&control)?;
            if control.stopped() {
                let mut state = Vec::new();
                end.partial.encode(&mut state);
                let (rest, mut own) = self.job(order, member)?.resume_value(Partial::decode(&state)?)?;
                std::mem::swap(&mut own, &mut end.partial);
                end.join(&**order.kernel, order.ctx, rest.values(&Control::new())?)?;
            }
            return Ok(end);
        };
        let mut object = KeptObject::default();
        let end = job.keep(&mut object, &Control::new())?;
        kept.lock().unwrap_or_else(PoisonError::into_inner).push(object);
        Ok(end)
    }

    fn job(&self, order: &PassOrder<'_>, member: &(Vec<u32>, Options)) -> Result<ShardJob, RunError> {
        let mut request = self.request.clone();
        request.selection = Selection { skip: request.selection.skip, range: None };
        request.options = member.1.clone();
        let shard = Shard {
            targets: member.0.clone(),
            round: order.ctx.round,
            shared: order.ctx.shared.clone(),
            last: order.ctx.last,
            keep: self.keeps_now(order),
            select: order.ctx.extent.clone(),
        };
        ShardJob::new(request, shard)
    }
}

impl Crew for MemoryCrew {
    fn keeps(&self) -> bool {
        self.kept.is_some()
    }

    fn finish_as_group(&self, order: &PassOrder<'_>) -> Result<Option<GroupEnd>, RunError> {
        if self.seed.is_multiple_of(3) {
            return Ok(None);
        }
        let member = |member: &(Vec<u32>, Options)| {
            let mut request = self.request.clone();
            request.selection = Selection { skip: request.selection.skip, range: None };
            request.options = member.1.clone();
            GroupJob::new(request, member.0.clone(), order.ctx.extent.clone())
        };
        let members = self.members.iter().map(member).collect::<Result<Vec<_>, _>>()?;
        crate::group::finish(&members).map(Some)
    }

    fn values(&self, order: &PassOrder<'_>, take: &mut TakeShard<'_>) -> Result<(), RunError> {
        let mut rng = Rng::with_seed(self.seed ^ u64::from(order.ctx.round));
        let mut members: Vec<_> = self.members.iter().collect();
        rng.shuffle(&mut members);
        let mut pending: Option<ShardEnd> = None;
        for member in members {
            let mut end = self.fold_value(order, member)?;
            if let Some(before) = pending.take() {
                // A member that passes the request on to others joins the parts in this way.
                end.join(&**order.kernel, order.ctx, before)?;
            }
            let mut bytes = Vec::new();
            end.partial.encode(&mut bytes);
            end.partial = Partial::decode(&bytes)?;
            if rng.u8(0..3) == 0 {
                pending = Some(end);
            } else if !take(end)? {
                return Ok(());
            }
        }
        pending.map_or(Ok(true), take).map(|_| ())
    }

    fn rows<'o>(&'o self, order: &'o PassOrder<'_>) -> Result<Vec<Box<dyn UnitSource + 'o>>, RunError> {
        let mut sources: Vec<Box<dyn UnitSource + 'o>> = Vec::new();
        for member in &self.members {
            let job = self.job(order, member)?;
            sources.push(Box::new(row_source(job, member.0.clone(), self.draw_control(order, member))?));
        }
        Rng::with_seed(self.seed).shuffle(&mut sources);
        Ok(sources)
    }

    fn take_over<'o>(
        &'o self,
        order: &'o PassOrder<'_>,
        hand_back: HandBack,
    ) -> Result<Option<Box<dyn UnitSource + 'o>>, RunError> {
        let member = self.members.iter().find(|member| member.0 == hand_back.targets);
        let job = self
            .job(order, member.ok_or(RunError::Internal { what: "an unknown member handed back its work" })?)?
            .resume_rows(hand_back.row_cut);
        Ok(Some(Box::new(row_source(job, hand_back.targets, Control::new())?)))
    }
}

/// Folds the rows of a shard on its own thread, until its receiver has enough.
fn row_source(job: ShardJob, targets: Vec<u32>, control: Control) -> Result<EventSource, RunError> {
    let (sender, events) = sync_channel(EVENTS_AHEAD);
    let fold = move || {
        // The receiver is closed if it has enough.
        let _ = match job.rows(&mut EventOutput(&sender), &control) {
            Ok(RowsEnd { tally, row_cut }) => {
                if let Some(row_cut) = row_cut {
                    let why = "it has folded enough".into();
                    let _ = sender.send(UnitEvent::HandedBack(HandBack { targets, row_cut, why }));
                }
                sender.send(UnitEvent::Finished(tally))
            }
            Err(error) => sender.send(UnitEvent::Failed(error)),
        };
    };
    std::thread::Builder::new().spawn(fold).map_err(RunError::Lane)?;
    Ok(EventSource(events))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use gristmill_kernel::{Input, KernelError, Value, catalog};
    use gristmill_layout::Striped;
    use gristmill_runtime::{Discard, Outcome, run_on};

    use super::*;
    use crate::placement::memory_file;

    /// Checks the outcome of a kernel over a text, for many orders of answers.
    fn check_all_orders(kernel: &str, text: &str, check: impl Fn(Result<Outcome, RunError>)) {
        for seed in 0..200 {
            let mut rng = Rng::with_seed(seed);
            let striped = Striped::new(rng.u64(1..200), rng.u32(2..6), 0).unwrap();
            let kernel = catalog::bind(kernel, &[], &Input::lines()).unwrap();
            let mut request =
                Request::new(kernel, Input::lines(), memory_file(text.as_bytes(), striped.into()).unwrap());
            request.options.max_record = 200;
            let crew = MemoryCrew::new(&request, &mut rng);
            check(run_on(request, &crew, &mut Discard, &Control::new()));
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_an_error_only_before_enough_is_found() {
        let text = ["short\n".repeat(50), "x".repeat(900)].concat();
        check_all_orders("first", &text, |outcome| {
            let Ok(Outcome::Done(answer)) = outcome else { panic!("{outcome:?}") };
            assert_eq!(answer.value.get("first"), Some(&Value::Text("short".into())));
        });
        check_all_orders("last", &text, |outcome| {
            let Err(RunError::Kernel(KernelError::LineTooLong { offset, max: 200 })) = outcome else {
                panic!("{outcome:?}")
            };
            // The offset is the beginning of the fragment that has the line.
            assert!((300..text.len() as u64).contains(&offset), "{offset}");
        });
    }
}
