//! Turns units into aligned blocks. It reads the bytes that the owner has, pulls those that it lacks, and gives out
//! whole records with their halo, little-endian.

use std::ops::Range;
use std::sync::Arc;

use gristmill_kernel::{Block, KernelError, check_lines};
use gristmill_layout::{FixedRecords, TargetIndex};

use crate::assembly::Assembly;
use crate::buffer::Buffer;
use crate::chunk_reader::ChunkDecoder;
use crate::fetch::{OwnerView, Tally, read_range};
use crate::gather::gather;
use crate::lines::LineSearch;
use crate::options::MAX_BLOCK_BYTES;
use crate::prepare::Prepared;
use crate::pulls::PulledBytes;
use crate::units::Unit;
use crate::{ExtentSet, RunError};

/// The decision of a callback to go on or to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Go,
    Stop,
}

/// Most blocks whose records are read together.
const MAX_PLANNED_BLOCKS: usize = 4096;

/// Records of a block as a multiple of its halo on one side, if the bound of a block allows it. Then at most a fifth of the
/// bytes that are read is halo, which was read for the block before too.
const HALOS_IN_BLOCK: u64 = 8;

/// Takes one block.
pub(crate) type TakeBlock<'e> = dyn FnMut(&Block<'_>) -> Result<Flow, RunError> + 'e;

pub(crate) struct Reader<'a> {
    pub(crate) job: &'a Prepared,
    pub tally: Tally,
    /// Position of the first record that was not given out, or that is being folded. A failure is at this position.
    pub at: u64,
    pub(crate) records: Buffer,
    pub(crate) own: Buffer,
    second: Buffer,
    planned: Vec<PlannedBlock>,
    pulled: Arc<PulledBytes>,
    search: LineSearch,
    /// The decoder of the lead, if records are chunks.
    pub(crate) decoder: Option<ChunkDecoder>,
    /// Records that are not given out, because they are folded already.
    pub folded: ExtentSet,
    /// The assembly of records, if chunks of other variables are read too.
    pub(crate) assembly: Option<Assembly>,
}

/// The records of one block. They follow each other, and one target owns them all.
#[derive(Debug)]
struct PlannedBlock {
    records: Range<u64>,
    /// Bytes of the file, including the halo.
    bytes: Range<u64>,
    /// Bytes of the halo on each side.
    before: usize,
    after: usize,
}

impl PlannedBlock {
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
            planned: Vec::new(),
            pulled: Arc::default(),
            search: LineSearch::default(),
            decoder: None,
            folded: ExtentSet::new(),
            assembly: None,
        }
    }

    /// Gives the blocks of a unit to `each` in order, until there are no more or `each` returns [`Flow::Stop`].
    pub fn unit(&mut self, unit: &Unit, each: &mut TakeBlock<'_>) -> Result<Flow, RunError> {
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
            let owned = job.ownership.map_or(0..0, |own| own.starting_in(run.file.clone(), &unit.select));
            for mut rest in self.folded.gaps(owned) {
                while !rest.is_empty() {
                    let part = rest.start..rest.end.min(rest.start.saturating_add(most));
                    rest.start = part.end;
                    let block = self.plan_block(records, part);
                    let lacking = block.bytes.start < run.file.start || block.bytes.end > run.file.end;
                    let pull = lacking && !self.pulled.reaches(run.file.start);
                    let full = bytes + block.len() > job.options.block_bytes
                        || self.planned.len() >= MAX_PLANNED_BLOCKS;
                    if bytes > 0 && (full || pull) {
                        bytes = 0;
                        if self.flush(unit.target, each)? == Flow::Stop {
                            return Ok(Flow::Stop);
                        }
                    }
                    if pull {
                        self.at = block.records.start;
                        self.pull(unit, run.file.start)?;
                    }
                    bytes += block.len();
                    self.planned.push(block);
                }
            }
        }
        self.flush(unit.target, each)
    }

    /// Pulls the lacking bytes from this run on.
    fn pull(&mut self, unit: &Unit, run: u64) -> Result<(), RunError> {
        self.pulled = unit.batch.pull(self.job, unit.target, &unit.select, run, &mut self.tally)?;
        Ok(())
    }

    fn plan_block(&self, records: &FixedRecords, part: Range<u64>) -> PlannedBlock {
        let halo = self.job.spec.halo;
        let low = part.start.saturating_sub(halo);
        let high = part.end.saturating_add(halo).min(records.count());
        let inner = records.bytes(part.clone());
        let bytes = records.bytes(low..high);
        let (before, after) = ((inner.start - bytes.start) as usize, (bytes.end - inner.end) as usize);
        PlannedBlock { records: part, bytes, before, after }
    }

    /// Reads the records of all planned blocks and gives them out.
    fn flush(&mut self, target: TargetIndex, each: &mut TakeBlock<'_>) -> Result<Flow, RunError> {
        let Some(first) = self.planned.first() else { return Ok(Flow::Go) };
        self.at = first.records.start;
        let job = self.job;
        let planned = std::mem::take(&mut self.planned);
        let total: usize = planned.iter().map(PlannedBlock::len).sum();
        let data = self.records.get(total);
        let (file, pulled, tally) = (&job.file, &*self.pulled, &mut self.tally);
        let mut view = OwnerView { file, owner: target, pulled, searched: (0, &[]), tally };
        gather(&mut view, planned.iter().map(|block| block.bytes.clone()), data, &mut self.own)?;
        if let Some(element) = job.input.element {
            job.byte_order.to_little(element.size(), data);
        }
        let mut at = 0;
        let mut flow = Flow::Go;
        for plan in &planned {
            let bytes = &data[at..at + plan.len()];
            at += plan.len();
            self.at = plan.records.start;
            let count = plan.records.end - plan.records.start;
            let mut block = Block::new(plan.records.start, count, bytes).with_halo(plan.before, plan.after);
            if let Some(second) = &job.second {
                let range = second.records.bytes(plan.records.clone());
                let buffer = self.second.get((range.end - range.start) as usize);
                read_range(&second.file, range, buffer)?;
                self.tally.count_own(target, buffer.len() as u64);
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
        self.planned = planned;
        self.planned.clear();
        Ok(flow)
    }

    fn virtual_records(&mut self, unit: &Unit, each: &mut TakeBlock<'_>) -> Result<Flow, RunError> {
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

    /// Gives whole lines that begin in the unit to `each`. The ends of the lines are pulled.
    fn lines(&mut self, unit: &Unit, each: &mut TakeBlock<'_>) -> Result<Flow, RunError> {
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
            let searched = (self.search.from, &*self.search.bytes);
            OwnerView { file, owner, pulled, searched, tally: &mut self.tally }.read(at..to, buffer)?;
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

    /// The start of the first line at or behind `at`.
    fn line_start(&mut self, unit: &Unit, at: u64) -> Result<u64, RunError> {
        let job = self.job;
        let at = at.max(unit.select.start);
        let (file, owner, pulled, tally) = (&job.file, unit.target, &*self.pulled, &mut self.tally);
        let mut view = OwnerView { file, owner, pulled, searched: (0, &[]), tally };
        let mut read = |range, buffer: &mut [u8]| view.read(range, buffer);
        let max = job.options.max_record;
        job.line_starts.find(at, unit.select.clone(), max, &mut self.search, &mut read)
    }
}

/// Length of the buffer up to the end of its last whole line.
fn last_line_end(buffer: &[u8]) -> usize {
    buffer.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1)
}
