//! Pulls the bytes that an owner lacks for the units of one window of the file, with one message to each holder.
//!
//! For records of a fixed size these are the end of the last record of each run, and the halo. For lines they are the
//! byte before each run, which tells whether a line begins there, and the first bytes behind the run, where its last
//! line most likely ends. Other bytes are read separately, so no answer depends on what was pulled.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_layout::{Extent, TargetIndex};

use crate::fetch::Tally;
use crate::lines::SEARCH_STEPS;
use crate::parts::PartRange;
use crate::prepare::Prepared;
use crate::{ErrorKind, FileParts, RunError};

/// Most bytes that are pulled at once, besides the halo of one record. A lane holds no more pulled bytes.
const MAX_PULLED: u64 = 8 << 20;

/// Most ranges in one message.
const MAX_RANGES_IN_MESSAGE: usize = 4096;

/// Most pieces that are held.
const MAX_PULLED_PIECES: usize = 1 << 16;

/// The pulled bytes for the units of one target in one window. Lanes that fold these units share them.
#[derive(Debug)]
pub(crate) struct PullBatch {
    window: Range<u64>,
    latest: Mutex<Arc<PulledBytes>>,
}

/// Bytes that were pulled from other targets.
#[derive(Debug, Default)]
pub(crate) struct PulledBytes {
    /// The lacking bytes were pulled for all runs that begin in this range of the file.
    reach: Range<u64>,
    /// Ranges of the file, sorted by their starts, and their places in `bytes`.
    pieces: Vec<(Range<u64>, usize)>,
    bytes: Vec<u8>,
}

impl PullBatch {
    pub fn new(window: Range<u64>) -> Arc<PullBatch> {
        Arc::new(PullBatch { window, latest: Mutex::default() })
    }

    /// Pulls the bytes that are lacking for the run that begins at `run` and for those behind it in the window, unless they were
    /// pulled before.
    pub fn pull(
        &self,
        job: &Prepared,
        owner: TargetIndex,
        select: &Range<u64>,
        run: u64,
        tally: &mut Tally,
    ) -> Result<Arc<PulledBytes>, RunError> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.reach.is_empty() {
            // The first lane pulls for the whole window, so that no lane of an earlier unit pulls the same bytes again.
            *latest = Arc::new(pull_runs(job, owner, select, self.window.clone(), tally)?);
        }
        if !latest.reaches(run) {
            *latest = Arc::new(pull_runs(job, owner, select, run..self.window.end, tally)?);
        }
        Ok(latest.clone())
    }
}

impl PulledBytes {
    /// Whether the lacking bytes of the run that begins at `run` were pulled.
    pub fn reaches(&self, run: u64) -> bool {
        self.reach.contains(&run)
    }

    /// The bytes of a piece from `at` on; empty if `at` was not pulled.
    pub fn bytes_from(&self, at: u64) -> &[u8] {
        let behind = self.pieces.partition_point(|(range, _)| range.start <= at);
        let piece = behind.checked_sub(1).and_then(|n| self.pieces.get(n));
        let Some((range, place)) = piece.filter(|(range, _)| at < range.end) else { return &[] };
        let start = place + (at - range.start) as usize;
        self.bytes.get(start..place + (range.end - range.start) as usize).unwrap_or(&[])
    }

    /// The start of the first piece behind `at`.
    pub fn next_start(&self, at: u64) -> u64 {
        let behind = self.pieces.partition_point(|(range, _)| range.start <= at);
        self.pieces.get(behind).map_or(u64::MAX, |(range, _)| range.start)
    }

    /// Whether the whole range was pulled and no line ends in it.
    fn inside_a_line(&self, range: Range<u64>) -> bool {
        let mut at = range.start;
        while at < range.end {
            let piece = self.bytes_from(at);
            let piece = &piece[..piece.len().min((range.end - at) as usize)];
            if piece.is_empty() || piece.contains(&b'\n') {
                return false;
            }
            at += piece.len() as u64;
        }
        true
    }
}

/// Pulls the lacking bytes of the runs from the start of `window` on: as many runs as the bounds allow, and at least one.
fn pull_runs(
    job: &Prepared,
    owner: TargetIndex,
    select: &Range<u64>,
    window: Range<u64>,
    tally: &mut Tally,
) -> Result<PulledBytes, RunError> {
    let layout = &job.file.layout;
    let halo = job.domain.records.map_or(0, |records| records.size().saturating_mul(job.spec.halo));
    let mut plan =
        PullPlan { most: MAX_PULLED.saturating_add(halo.saturating_mul(2)), ..PullPlan::default() };
    let mut ends = Vec::new();
    // The needed bytes before this offset are in the plan already.
    let mut done = 0;
    let mut reach = window.start..window.start.saturating_add(1);
    for run in layout.runs(owner, window) {
        let need = needed(job, run.file.clone(), select);
        let before = need.start.max(done)..run.file.start.min(need.end);
        let after = run.file.end.max(need.start).max(done)..need.end;
        let lacking = [before, after].into_iter().flat_map(|range| layout.extents_for(owner, range));
        let whole = lacking.filter(|extent| extent.target != owner).all(|extent| plan.add(extent));
        // If the bytes of one run alone do not fit, the rest is read separately.
        if !whole && run.file.start >= reach.end {
            break;
        }
        if !need.is_empty() {
            done = done.max(need.end);
        }
        ends.push(run.file.end);
        reach.end = reach.end.max(run.file.end);
        if !whole {
            break;
        }
    }
    let mut pulled = PulledBytes { reach, ..PulledBytes::default() };
    let mut all = plan.fetch(&job.file, &mut pulled, tally);
    if job.whole_lines && all.is_ok() {
        all = pull_line_ends(job, owner, select.end, ends, &mut pulled, tally);
    }
    match all {
        // Other errors are reported by the read that needs the bytes, at its own position.
        Err(error) if error.kind() == ErrorKind::Unavailable => Err(error),
        _ => Ok(pulled),
    }
}

/// The range of bytes that the owner of a run needs for it, its own bytes included. Starts and ends ascend from run to run.
fn needed(job: &Prepared, run: Range<u64>, select: &Range<u64>) -> Range<u64> {
    if job.whole_lines {
        let end = run.end.saturating_add(SEARCH_STEPS[0]).min(select.end);
        return run.start.saturating_sub(1).max(select.start).min(end)..end;
    }
    let nothing = run.end..run.end;
    let Some((records, ownership)) = job.domain.records.as_ref().zip(job.ownership) else { return nothing };
    let owned = ownership.starting_in(run, select);
    if owned.is_empty() {
        return nothing;
    }
    let halo = job.spec.halo;
    records.bytes(owned.start.saturating_sub(halo)..owned.end.saturating_add(halo).min(records.count()))
}

/// Pulls more bytes behind the runs that end at `ends`, if no line has ended there yet.
fn pull_line_ends(
    job: &Prepared,
    owner: TargetIndex,
    end: u64,
    mut ends: Vec<u64>,
    pulled: &mut PulledBytes,
    tally: &mut Tally,
) -> Result<(), RunError> {
    let mut known = SEARCH_STEPS[0];
    for more in &SEARCH_STEPS[1..] {
        ends.retain(|at| pulled.inside_a_line(*at..at.saturating_add(known)));
        let mut plan =
            PullPlan { most: MAX_PULLED.saturating_sub(pulled.bytes.len() as u64), ..PullPlan::default() };
        plan.piece_count = pulled.pieces.len();
        for at in &ends {
            let from = at.saturating_add(known);
            let extents = job.file.layout.extents_for(owner, from..from.saturating_add(*more).min(end));
            if !extents.take_while(|extent| extent.target != owner).all(|extent| plan.add(extent)) {
                break;
            }
        }
        plan.fetch(&job.file, pulled, tally)?;
        known += more;
    }
    Ok(())
}

/// The messages of one pull.
#[derive(Default)]
struct PullPlan<'a> {
    requests: BTreeMap<TargetIndex, HolderRequest<'a>>,
    /// Bytes of all requests, and their bound.
    len: u64,
    most: u64,
    /// Number of pieces, with those of earlier pulls.
    piece_count: usize,
}

/// The request to one holder.
#[derive(Default)]
struct HolderRequest<'a> {
    ranges: Vec<PartRange<'a>>,
    /// Ranges of the file and their places in the answer.
    pieces: Vec<(Range<u64>, usize)>,
    len: usize,
}

impl<'a> PullPlan<'a> {
    /// Adds an extent. Returns false if it does not fit.
    fn add(&mut self, extent: Extent<'a>) -> bool {
        let request = self.requests.entry(extent.target).or_default();
        let len = extent.file.end - extent.file.start;
        let goes_on = request.ranges.last().is_some_and(|last| {
            last.object == extent.object && last.offset + last.len as u64 == extent.object_offset
        });
        if len > self.most.saturating_sub(self.len)
            || self.piece_count >= MAX_PULLED_PIECES
            || !goes_on && request.ranges.len() >= MAX_RANGES_IN_MESSAGE
        {
            return false;
        }
        match request.ranges.last_mut() {
            Some(last) if goes_on => last.len += len as usize,
            _ => {
                let (object, offset) = (extent.object, extent.object_offset);
                request.ranges.push(PartRange { object, offset, len: len as usize });
            }
        }
        request.pieces.push((extent.file, request.len));
        request.len += len as usize;
        self.len += len;
        self.piece_count += 1;
        true
    }

    /// Sends the messages and adds the answers to `pulled`.
    fn fetch(self, file: &FileParts, pulled: &mut PulledBytes, tally: &mut Tally) -> Result<(), RunError> {
        for (holder, request) in self.requests {
            if request.ranges.is_empty() {
                continue;
            }
            let base = pulled.bytes.len();
            pulled.bytes.resize(base + request.len, 0);
            let read = file.part(holder)?.read_many(&request.ranges, &mut pulled.bytes[base..]);
            if let Err(error) = read {
                pulled.bytes.truncate(base);
                pulled.pieces.sort_unstable_by_key(|(range, _)| range.start);
                return Err(error);
            }
            tally.count_message(holder, request.len as u64);
            pulled.pieces.extend(request.pieces.into_iter().map(|(range, place)| (range, base + place)));
        }
        pulled.pieces.sort_unstable_by_key(|(range, _)| range.start);
        Ok(())
    }
}
