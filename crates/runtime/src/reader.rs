//! Turns units into aligned blocks: reads what the owner has, pulls what it lacks, and hands out whole records
//! with their halo, little-endian.

use std::ops::Range;
use std::sync::Arc;

use gristmill_kernel::{Block, KernelError, check_lines};
use gristmill_layout::{FixedRecords, TargetIndex};

use crate::RunError;
use crate::assembly::Assembly;
use crate::buffer::Buffer;
use crate::chunk_reader::Decoding;
use crate::fetch::{Sight, Tally, read_range};
use crate::gather::gather;
use crate::lines::Look;
use crate::options::MAX_BLOCK_BYTES;
use crate::prepare::Prepared;
use crate::pulls::Pulled;
use crate::units::Unit;

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Go,
    Stop,
}

/// Stretches of records read together, at most.
const MAX_TAKES: usize = 4096;

/// A block has this many times the records of its halo on one side, as far as it may: of what is read, at most a fifth
/// is then halo, which was read for the block before too.
const HALOS_IN_BLOCK: u64 = 8;

/// Takes one block.
pub(crate) type Each<'e> = dyn FnMut(&Block<'_>) -> Result<Flow, RunError> + 'e;

pub(crate) struct Reader<'a> {
    pub(crate) job: &'a Prepared,
    pub tally: Tally,
    /// Position of the first record that was not handed out, or that is being folded: where a failure lies.
    pub at: u64,
    pub(crate) records: Buffer,
    pub(crate) own: Buffer,
    second: Buffer,
    takes: Vec<Take>,
    pulled: Arc<Pulled>,
    look: Look,
    /// For chunks.
    pub(crate) decoding: Option<Decoding>,
    /// For what is read beside them.
    pub(crate) assembly: Option<Assembly>,
}

/// Records that follow each other, all owned by one target.
#[derive(Debug)]
struct Take {
    records: Range<u64>,
    /// With halo.
    bytes: Range<u64>,
    before: usize,
    after: usize,
}

impl Take {
    fn len(&self) -> usize {
        (self.bytes.end - self.bytes.start) as usize
    }
}

impl<'a> Reader<'a> {
    pub fn new(job: &'a Prepared) -> Reader<'a> {
        Reader {
            job,
            tally: Tally::new(job.file.parts.len()),
            at: 0,
            records: Buffer::default(),
            own: Buffer::default(),
            second: Buffer::default(),
            takes: Vec::new(),
            pulled: Arc::default(),
            look: Look::default(),
            decoding: None,
            assembly: None,
        }
    }

    /// Hands out the blocks of a unit in order, until there are no more or `each` says stop.
    pub fn unit(&mut self, unit: &Unit, each: &mut Each<'_>) -> Result<Flow, RunError> {
        let job = self.job;
        if let Some(owned) = &job.chunks {
            return self.chunks(owned, unit, each);
        }
        let Some(records) = &job.domain.records else { return self.virtual_records(unit, each) };
        if job.whole_lines {
            return self.lines(unit, each);
        }
        let file = &job.file;
        self.pulled = Arc::default();
        let widest = records.size().max(job.spec.second.unwrap_or(0));
        let most = (job.options.block_bytes as u64 / widest)
            .max(job.spec.halo.saturating_mul(HALOS_IN_BLOCK).min(MAX_BLOCK_BYTES / widest))
            .max(1);
        let mut bytes = 0;
        for run in file.layout.runs(unit.target, unit.window.clone()) {
            let mut owned = job.ownership.map_or(0..0, |own| own.starting_in(run.file.clone(), &unit.select));
            while !owned.is_empty() {
                let part = owned.start..owned.end.min(owned.start.saturating_add(most));
                owned.start = part.end;
                let take = self.take(records, part);
                let lacking = take.bytes.start < run.file.start || take.bytes.end > run.file.end;
                let pull = lacking && !self.pulled.reaches(run.file.start);
                let full = bytes + take.len() > job.options.block_bytes || self.takes.len() >= MAX_TAKES;
                if bytes > 0 && (full || pull) {
                    bytes = 0;
                    if self.flush(unit.target, each)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
                if pull {
                    self.at = take.records.start;
                    self.pull(unit, run.file.start)?;
                }
                bytes += take.len();
                self.takes.push(take);
            }
        }
        self.flush(unit.target, each)
    }

    /// Pulls what is lacking from this run on.
    fn pull(&mut self, unit: &Unit, run: u64) -> Result<(), RunError> {
        self.pulled = unit.batch.pulled(self.job, unit.target, &unit.select, run, &mut self.tally)?;
        Ok(())
    }

    fn take(&self, records: &FixedRecords, part: Range<u64>) -> Take {
        let halo = self.job.spec.halo;
        let low = part.start.saturating_sub(halo);
        let high = part.end.saturating_add(halo).min(records.count());
        let inner = records.bytes(part.clone());
        let bytes = records.bytes(low..high);
        let (before, after) = ((inner.start - bytes.start) as usize, (bytes.end - inner.end) as usize);
        Take { records: part, bytes, before, after }
    }

    /// Reads the records of all takes and hands them out.
    fn flush(&mut self, target: TargetIndex, each: &mut Each<'_>) -> Result<Flow, RunError> {
        let Some(first) = self.takes.first() else { return Ok(Flow::Go) };
        self.at = first.records.start;
        let job = self.job;
        let takes = std::mem::take(&mut self.takes);
        let total: usize = takes.iter().map(Take::len).sum();
        let data = self.records.get(total);
        let (file, pulled, tally) = (&job.file, &*self.pulled, &mut self.tally);
        let mut sight = Sight { file, owner: target, pulled, look: (0, &[]), tally };
        gather(&mut sight, takes.iter().map(|take| take.bytes.clone()), data, &mut self.own)?;
        if let Some(element) = job.input.element {
            job.byte_order.to_little(element.size(), data);
        }
        let mut at = 0;
        let mut flow = Flow::Go;
        for take in &takes {
            let bytes = &data[at..at + take.len()];
            at += take.len();
            self.at = take.records.start;
            let count = take.records.end - take.records.start;
            let mut block = Block::new(take.records.start, count, bytes).with_halo(take.before, take.after);
            if let Some(second) = &job.second {
                let range = second.records.bytes(take.records.clone());
                let buffer = self.second.get((range.end - range.start) as usize);
                read_range(&second.file, range, buffer)?;
                self.tally.own(target, buffer.len() as u64);
                if let Some(element) = second.element {
                    second.byte_order.to_little(element.size(), buffer);
                }
                block = block.with_second(buffer);
            }
            if let Some(records) = self.tally.records.get_mut(target as usize) {
                *records += count;
            }
            flow = each(&block)?;
            if flow == Flow::Stop {
                break;
            }
        }
        self.takes = takes;
        self.takes.clear();
        Ok(flow)
    }

    fn virtual_records(&mut self, unit: &Unit, each: &mut Each<'_>) -> Result<Flow, RunError> {
        let step = self.job.options.block_bytes as u64;
        let mut at = unit.window.start;
        while at < unit.window.end {
            self.at = at;
            let end = unit.window.end.min(at.saturating_add(step));
            if let Some(records) = self.tally.records.get_mut(unit.target as usize) {
                *records += end - at;
            }
            if each(&Block::new(at, end - at, &[]))? == Flow::Stop {
                return Ok(Flow::Stop);
            }
            at = end;
        }
        Ok(Flow::Go)
    }

    /// Whole lines that begin in the unit, pulled to their ends.
    fn lines(&mut self, unit: &Unit, each: &mut Each<'_>) -> Result<Flow, RunError> {
        let job = self.job;
        let max = job.options.max_record;
        self.at = unit.window.start.max(unit.select.start);
        self.pull(unit, unit.window.start)?;
        let start = self.line_start(unit, unit.window.start)?;
        let end = self.line_start(unit, unit.window.end)?;
        let mut at = start;
        let mut step = job.options.block_bytes as u64;
        while at < end {
            self.at = at;
            let to = end.min(at.saturating_add(step));
            let buffer = self.records.get((to - at) as usize);
            let (file, owner, pulled) = (&job.file, unit.target, &*self.pulled);
            let look = (self.look.from, &*self.look.bytes);
            Sight { file, owner, pulled, look, tally: &mut self.tally }.read(at..to, buffer)?;
            let whole = if to == end { buffer.len() } else { last_line_end(buffer) };
            if whole == 0 {
                if step > max {
                    return Err(KernelError::LineTooLong { offset: at, max }.into());
                }
                step = step.saturating_mul(2);
                continue;
            }
            check_lines(at, &buffer[..whole], max)?;
            if each(&Block::new(at, whole as u64, &buffer[..whole]))? == Flow::Stop {
                return Ok(Flow::Stop);
            }
            at += whole as u64;
            step = job.options.block_bytes as u64;
        }
        Ok(Flow::Go)
    }

    /// Where the first line begins at or behind `at`.
    fn line_start(&mut self, unit: &Unit, at: u64) -> Result<u64, RunError> {
        let job = self.job;
        let at = at.max(unit.select.start);
        let (file, owner, pulled, tally) = (&job.file, unit.target, &*self.pulled, &mut self.tally);
        let mut sight = Sight { file, owner, pulled, look: (0, &[]), tally };
        let mut read = |range, buffer: &mut [u8]| sight.read(range, buffer);
        let max = job.options.max_record;
        job.line_starts.find(at, unit.select.clone(), max, &mut self.look, &mut read)
    }
}

fn last_line_end(buffer: &[u8]) -> usize {
    buffer.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1)
}
