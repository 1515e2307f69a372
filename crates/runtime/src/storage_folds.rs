//! Folds inside the storage of parts: storage daemons fold the records that lie whole in their objects, and the lane the rest.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_kernel::{Ctx, NoRows};
use gristmill_layout::TargetIndex;
use gristmill_object_fold::{Binding, FoldOrder, FoldPolicy, Folded, Span, check_foldable};

use crate::fetch::Tally;
use crate::pass::{Pass, lock};
use crate::prepare::Prepared;
use crate::units::Unit;
use crate::{ExtentSet, Partial, RunError};

/// Most times that one unit is asked for. A call that runs out of time folds a part.
const MAX_ROUNDS_OF_UNIT: u32 = 4_096;

/// Units that the storage folds together: a lane asks for their objects at once, so that none waits for the other.
const UNITS_AT_ONCE: u64 = 8;

/// Bytes of a unit of a pass.
pub(crate) fn unit_bytes(job: &Prepared) -> u64 {
    let unit = job.options.unit_bytes;
    let folds = job.in_storage.is_some() && job.file.parts.iter().any(|part| part.folds_now());
    if folds { unit.saturating_mul(UNITS_AT_ONCE) } else { unit }
}

/// Whether the storage of parts may fold a prepared request, and the kernel as it is told to it. `None` if the lanes fold everything.
///
/// # Errors
/// The error is [`RunError::NotInStorage`] if it must ([`FoldPolicy::Always`]) and cannot.
pub(crate) fn allowed(
    binding: Option<Binding>,
    job: &Prepared,
    last: bool,
) -> Result<Option<Binding>, RunError> {
    let refuse = |why: String| match job.fold_policy {
        FoldPolicy::Always => Err(RunError::NotInStorage { why }),
        FoldPolicy::Auto | FoldPolicy::Never => Ok(None),
    };
    if job.fold_policy == FoldPolicy::Never {
        return Ok(None);
    }
    let Some(binding) = binding else {
        return refuse("only built-in kernels over records run there".to_owned());
    };
    if job.chunks.is_some() || job.domain.records.is_none() || !job.side.is_empty() {
        return refuse("chunks of arrays are folded by storage nodes".to_owned());
    }
    match check_foldable(&job.spec, last) {
        Ok(_) => Ok(Some(Binding { max_line: job.options.max_record, ..binding })),
        Err(error) => refuse(error.to_string()),
    }
}

/// The folds inside storage in one pass.
pub(crate) struct StorageFolds {
    order: FoldOrder,
    must: bool,
    /// Whether the lanes fold the rest of the pass.
    ended: AtomicBool,
}

impl StorageFolds {
    pub fn new(job: &Prepared, ctx: &Ctx) -> Option<StorageFolds> {
        let binding = job.in_storage.clone()?;
        let order = FoldOrder {
            binding,
            round: ctx.round,
            shared: ctx.shared.clone(),
            last: ctx.last,
            extent: ctx.extent.clone(),
        };
        let must = job.fold_policy == FoldPolicy::Always;
        Some(StorageFolds { order, must, ended: AtomicBool::new(false) })
    }

    /// Has the storage fold the records of a unit, joins the states to the partial of the pass, and returns the records.
    pub fn unit(&self, pass: &Pass<'_>, unit: &Unit, tally: &mut Tally) -> Result<ExtentSet, RunError> {
        let mut done = ExtentSet::new();
        let part = pass.job.file.part(unit.target)?;
        if !part.folds() {
            return match self.must {
                true => Err(RunError::NotInStorage {
                    why: "the node has its objects in no pool of Ceph".to_owned(),
                }),
                false => Ok(done),
            };
        }
        // Interrupted folds go on in lanes.
        if self.ended.load(Ordering::Relaxed) || !lock(&pass.resumed).is_empty() {
            return Ok(done);
        }
        for (object, spans) in spans(pass.job, unit) {
            for _ in 0..MAX_ROUNDS_OF_UNIT {
                let left = left(pass.job, &spans, &done);
                if left.is_empty() || self.ended.load(Ordering::Relaxed) || pass.stopping() {
                    break;
                }
                if pass.enough.load(Ordering::Relaxed) <= left.first().map_or(0, |span| span.records.start) {
                    return Ok(done);
                }
                match part.fold(object, &self.order, &left) {
                    Ok(folded) => {
                        let again = folded.out_of_time && !folded.states.is_empty();
                        // A slow kernel would keep a storage daemon from its other work.
                        if folded.out_of_time && !self.must {
                            self.ended.store(true, Ordering::Relaxed);
                        }
                        join(pass, unit.target, folded, &mut done, tally)?;
                        if !again {
                            break;
                        }
                    }
                    Err(refusal) if self.must => {
                        return Err(RunError::NotInStorage { why: refusal.to_string() });
                    }
                    Err(_) => self.ended.store(true, Ordering::Relaxed),
                }
            }
        }
        Ok(done)
    }
}

/// Joins states to the partial of a pass.
fn join(
    pass: &Pass<'_>,
    target: TargetIndex,
    folded: Folded,
    done: &mut ExtentSet,
    tally: &mut Tally,
) -> Result<(), RunError> {
    let size = pass.job.domain.records.map_or(0, |records| records.size());
    let enough_at = folded.enough;
    for state in folded.states {
        let covered = ExtentSet::from_ranges(state.records)?;
        let count = covered.count();
        done.union(&covered)?;
        let piece = Partial { enough_at, ..Partial::new(pass.ctx.round, covered, state.state) };
        let seam = lock(&pass.partial).join_to_seam(&*pass.job.kernel, pass.ctx, piece, &mut NoRows)?;
        if let Some((at, error)) = seam {
            pass.fail(at, error);
        }
        let bytes = count.saturating_mul(size);
        tally.count_own(target, bytes);
        tally.in_storage = tally.in_storage.saturating_add(bytes);
        if let Some(records) = tally.records.get_mut(target as usize) {
            *records += count;
        }
    }
    if let Some(at) = enough_at {
        pass.enough.fetch_min(at, Ordering::Relaxed);
    }
    Ok(())
}

/// The records of a unit by the object in which they lie, where that is the target's own.
fn spans<'j>(job: &'j Prepared, unit: &Unit) -> Vec<(Option<&'j str>, Vec<Span>)> {
    let Some(records) = &job.domain.records else { return Vec::new() };
    let mut objects: Vec<(Option<&str>, Vec<Span>)> = Vec::new();
    // The last record of a window may end behind it.
    let window = unit.window.start..unit.window.end.saturating_add(records.size() - 1);
    for run in job.file.layout.runs(unit.target, window) {
        let starts = run.file.start..run.file.end.min(unit.window.end);
        if starts.is_empty() {
            continue;
        }
        let owned = job.ownership.map_or(0..0, |own| own.starting_in(starts, &unit.select));
        // A record that ends in another run lies on another target, or elsewhere in the object.
        let whole = whole_records(owned, records, run.file.end);
        if whole.is_empty() {
            continue;
        }
        let offset = run.object_offset + (records.bytes(whole.clone()).start - run.file.start);
        let span = Span { offset, records: whole };
        match objects.last_mut().filter(|(object, _)| *object == run.object) {
            Some((_, spans)) => spans.push(span),
            None => objects.push((run.object, vec![span])),
        }
    }
    objects
}

/// The records that end before a byte of the file.
fn whole_records(owned: Range<u64>, records: &gristmill_layout::FixedRecords, end: u64) -> Range<u64> {
    let mut whole = owned;
    if !whole.is_empty() && records.bytes(whole.clone()).end > end {
        whole.end -= 1;
    }
    whole
}

/// The parts of spans that are not folded yet.
fn left(job: &Prepared, spans: &[Span], done: &ExtentSet) -> Vec<Span> {
    let size = job.domain.records.map_or(0, |records| records.size());
    let rest = |span: &Span| {
        let first = span.clone();
        done.gaps(span.records.clone()).into_iter().map(move |records| Span {
            offset: first.offset + (records.start - first.records.start) * size,
            records,
        })
    };
    spans.iter().flat_map(rest).collect()
}
