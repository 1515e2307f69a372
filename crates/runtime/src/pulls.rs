//! What an owner lacks for the units of one window of the file, pulled with one message to each holder.
//!
//! For records of a fixed size that is the end of the last record of each run and the halo; for lines the byte
//! before each run, which says whether a line begins there, and the first bytes behind it, where its last line most
//! likely ends. What is not among these is asked for by itself, so an answer never depends on what was pulled.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_layout::{Extent, TargetIndex};

use crate::fetch::Tally;
use crate::lines::LOOKS;
use crate::parts::Want;
use crate::prepare::Prepared;
use crate::{ErrorKind, FileParts, RunError};

/// Bytes that are pulled at once, besides the halo of one record; a lane holds no more of them than that.
const MAX_PULLED: u64 = 8 << 20;

/// Stretches in one message.
const MAX_WANTS: usize = 4096;

/// Stretches that are held.
const MAX_PULLED_PIECES: usize = 1 << 16;

/// The units of one target in one window; lanes that fold them share what was pulled.
#[derive(Debug)]
pub(crate) struct Batch {
    window: Range<u64>,
    latest: Mutex<Arc<Pulled>>,
}

/// Bytes of other targets that were pulled.
#[derive(Debug, Default)]
pub(crate) struct Pulled {
    /// What is lacking for runs that begin in these bytes of the file is here.
    reach: Range<u64>,
    /// Bytes of the file, sorted by their starts, and their places in `bytes`.
    pieces: Vec<(Range<u64>, usize)>,
    bytes: Vec<u8>,
}

impl Batch {
    pub fn new(window: Range<u64>) -> Arc<Batch> {
        Arc::new(Batch { window, latest: Mutex::default() })
    }

    /// What is lacking for the run that begins at `run`, and for those behind it in the window.
    pub fn pulled(
        &self,
        job: &Prepared,
        owner: TargetIndex,
        select: &Range<u64>,
        run: u64,
        tally: &mut Tally,
    ) -> Result<Arc<Pulled>, RunError> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.reach.is_empty() {
            // Whichever lane comes first, so that none of an earlier unit pulls the same again.
            *latest = Arc::new(pull(job, owner, select, self.window.clone(), tally)?);
        }
        if !latest.reaches(run) {
            *latest = Arc::new(pull(job, owner, select, run..self.window.end, tally)?);
        }
        Ok(latest.clone())
    }
}

impl Pulled {
    /// Whether what is lacking for the run that begins here was pulled.
    pub fn reaches(&self, run: u64) -> bool {
        self.reach.contains(&run)
    }

    /// The bytes from `at` on that are in the same piece; empty if `at` was not pulled.
    pub fn from(&self, at: u64) -> &[u8] {
        let behind = self.pieces.partition_point(|(range, _)| range.start <= at);
        let piece = behind.checked_sub(1).and_then(|n| self.pieces.get(n));
        let Some((range, place)) = piece.filter(|(range, _)| at < range.end) else { return &[] };
        let start = place + (at - range.start) as usize;
        self.bytes.get(start..place + (range.end - range.start) as usize).unwrap_or(&[])
    }

    /// The start of the first piece behind `at`.
    pub fn next(&self, at: u64) -> u64 {
        let behind = self.pieces.partition_point(|(range, _)| range.start <= at);
        self.pieces.get(behind).map_or(u64::MAX, |(range, _)| range.start)
    }

    /// Whether all of these bytes were pulled and no line ends in them.
    fn inside_a_line(&self, range: Range<u64>) -> bool {
        let mut at = range.start;
        while at < range.end {
            let piece = self.from(at);
            let piece = &piece[..piece.len().min((range.end - at) as usize)];
            if piece.is_empty() || piece.contains(&b'\n') {
                return false;
            }
            at += piece.len() as u64;
        }
        true
    }
}

/// Pulls what is lacking for the runs from the start of `window` on, as many as the bounds allow and one at least.
fn pull(
    job: &Prepared,
    owner: TargetIndex,
    select: &Range<u64>,
    window: Range<u64>,
    tally: &mut Tally,
) -> Result<Pulled, RunError> {
    let layout = &job.file.layout;
    let halo = job.domain.records.map_or(0, |records| records.size().saturating_mul(job.spec.halo));
    let mut plan = Plan { most: MAX_PULLED.saturating_add(halo.saturating_mul(2)), ..Plan::default() };
    let mut ends = Vec::new();
    // What is needed before this byte was asked for.
    let mut done = 0;
    let mut reach = window.start..window.start.saturating_add(1);
    for run in layout.runs(owner, window) {
        let need = needed(job, run.file.clone(), select);
        let before = need.start.max(done)..run.file.start.min(need.end);
        let after = run.file.end.max(need.start).max(done)..need.end;
        let lacking = [before, after].into_iter().flat_map(|range| layout.extents(range));
        let whole = lacking.filter(|extent| extent.target != owner).all(|extent| plan.add(extent));
        // What does not fit for one run alone is asked for by itself.
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
    let mut pulled = Pulled { reach, ..Pulled::default() };
    let mut all = plan.fetch(&job.file, &mut pulled, tally);
    if job.whole_lines && all.is_ok() {
        all = tails(job, owner, select.end, ends, &mut pulled, tally);
    }
    match all {
        // A place that cannot be read is told by whoever needs it, at its own position.
        Err(error) if error.kind() == ErrorKind::Unavailable => Err(error),
        _ => Ok(pulled),
    }
}

/// Bytes that the owner of a run needs for it, its own included; begins and ends ascend from run to run.
fn needed(job: &Prepared, run: Range<u64>, select: &Range<u64>) -> Range<u64> {
    if job.whole_lines {
        let end = run.end.saturating_add(LOOKS[0]).min(select.end);
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

/// Looks further behind the runs that end at `ends` where no line has ended yet.
fn tails(
    job: &Prepared,
    owner: TargetIndex,
    end: u64,
    mut ends: Vec<u64>,
    pulled: &mut Pulled,
    tally: &mut Tally,
) -> Result<(), RunError> {
    let mut known = LOOKS[0];
    for more in &LOOKS[1..] {
        ends.retain(|at| pulled.inside_a_line(*at..at.saturating_add(known)));
        let mut plan = Plan { most: MAX_PULLED.saturating_sub(pulled.bytes.len() as u64), ..Plan::default() };
        plan.held = pulled.pieces.len();
        for at in &ends {
            let from = at.saturating_add(known);
            let extents = job.file.layout.extents(from..from.saturating_add(*more).min(end));
            if !extents.take_while(|extent| extent.target != owner).all(|extent| plan.add(extent)) {
                break;
            }
        }
        plan.fetch(&job.file, pulled, tally)?;
        known += more;
    }
    Ok(())
}

/// Messages that are put together.
#[derive(Default)]
struct Plan<'a> {
    shares: BTreeMap<TargetIndex, Share<'a>>,
    /// Bytes of all shares, and their bound.
    len: u64,
    most: u64,
    /// Pieces there are.
    held: usize,
}

/// What one holder is asked for.
#[derive(Default)]
struct Share<'a> {
    wants: Vec<Want<'a>>,
    /// Bytes of the file and their places in the answer.
    pieces: Vec<(Range<u64>, usize)>,
    len: usize,
}

impl<'a> Plan<'a> {
    /// False if it does not fit.
    fn add(&mut self, extent: Extent<'a>) -> bool {
        let share = self.shares.entry(extent.target).or_default();
        let len = extent.file.end - extent.file.start;
        let goes_on = share.wants.last().is_some_and(|last| {
            last.object == extent.object && last.offset + last.len as u64 == extent.object_offset
        });
        if len > self.most.saturating_sub(self.len)
            || self.held >= MAX_PULLED_PIECES
            || !goes_on && share.wants.len() >= MAX_WANTS
        {
            return false;
        }
        match share.wants.last_mut() {
            Some(last) if goes_on => last.len += len as usize,
            _ => {
                let (object, offset) = (extent.object, extent.object_offset);
                share.wants.push(Want { object, offset, len: len as usize });
            }
        }
        share.pieces.push((extent.file, share.len));
        share.len += len as usize;
        self.len += len;
        self.held += 1;
        true
    }

    /// Sends the messages and adds what comes back.
    fn fetch(self, file: &FileParts, pulled: &mut Pulled, tally: &mut Tally) -> Result<(), RunError> {
        for (holder, share) in self.shares {
            if share.wants.is_empty() {
                continue;
            }
            let base = pulled.bytes.len();
            pulled.bytes.resize(base + share.len, 0);
            let read = file.part(holder)?.read_many(&share.wants, &mut pulled.bytes[base..]);
            if let Err(error) = read {
                pulled.bytes.truncate(base);
                pulled.pieces.sort_unstable_by_key(|(range, _)| range.start);
                return Err(error);
            }
            tally.pulled(holder, share.len as u64);
            pulled.pieces.extend(share.pieces.into_iter().map(|(range, place)| (range, base + place)));
        }
        pulled.pieces.sort_unstable_by_key(|(range, _)| range.start);
        Ok(())
    }
}
