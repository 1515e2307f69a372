//! Turns units into aligned blocks: reads what the owner has, pulls what it lacks, and hands out whole records
//! with their halo, little-endian.

use std::collections::BTreeMap;
use std::ops::Range;

use gristmill_kernel::{Block, KernelError, check_lines};
use gristmill_layout::{FixedRecords, TargetIndex};

use crate::buffer::Buffer;
use crate::fetch::{Tally, read_as};
use crate::job::Prepared;
use crate::parts::Want;
use crate::units::Unit;
use crate::{FileParts, RunError};

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Go,
    Stop,
}

/// Stretches of records read together, at most.
const MAX_TAKES: usize = 4096;

/// Takes one block.
pub(crate) type Each<'e> = dyn FnMut(&Block<'_>) -> Result<Flow, RunError> + 'e;

pub(crate) struct Reader<'a> {
    job: &'a Prepared,
    pub tally: Tally,
    records: Buffer,
    own: Buffer,
    second: Buffer,
    takes: Vec<Take>,
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
            records: Buffer::default(),
            own: Buffer::default(),
            second: Buffer::default(),
            takes: Vec::new(),
        }
    }

    /// Hands out the blocks of a unit in order, until there are no more or `each` says stop.
    pub fn unit(&mut self, unit: &Unit, each: &mut Each<'_>) -> Result<Flow, RunError> {
        let job = self.job;
        let Some(records) = &job.domain.records else { return self.virtual_records(unit, each) };
        if job.whole_lines {
            return self.lines(unit, each);
        }
        let file = &job.file;
        let widest = records.size().max(job.spec.second.unwrap_or(0));
        let most = (job.options.block_bytes as u64 / widest).max(1);
        let mut bytes = 0;
        for run in file.layout.runs(unit.target, unit.window.clone()) {
            let mut owned = job.ownership.map_or(0..0, |own| own.starting_in(run.file, &unit.select));
            while !owned.is_empty() {
                let part = owned.start..owned.end.min(owned.start.saturating_add(most));
                owned.start = part.end;
                let take = self.take(records, part);
                if bytes > 0
                    && (bytes + take.len() > job.options.block_bytes || self.takes.len() >= MAX_TAKES)
                {
                    bytes = 0;
                    if self.flush(unit.target, each)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
                bytes += take.len();
                self.takes.push(take);
            }
        }
        self.flush(unit.target, each)
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
        if self.takes.is_empty() {
            return Ok(Flow::Go);
        }
        let job = self.job;
        let takes = std::mem::take(&mut self.takes);
        let total: usize = takes.iter().map(Take::len).sum();
        let data = self.records.get(total);
        gather(&job.file, target, &takes, data, &mut self.own, &mut self.tally)?;
        if let Some(element) = job.input.element {
            job.byte_order.to_little(element.size(), data);
        }
        let mut at = 0;
        let mut flow = Flow::Go;
        for take in &takes {
            let bytes = &data[at..at + take.len()];
            at += take.len();
            let count = take.records.end - take.records.start;
            let mut block = Block::new(take.records.start, count, bytes).with_halo(take.before, take.after);
            if let Some(second) = &job.second {
                let range = second.records.bytes(take.records.clone());
                let buffer = self.second.get((range.end - range.start) as usize);
                read_as(&second.file, None, range, buffer, &mut Tally::default())?;
                if let Some(read) = self.tally.read.get_mut(target as usize) {
                    *read += buffer.len() as u64;
                }
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
        let mut begins = |at: u64| {
            let at = at.max(unit.select.start);
            job.line_starts.find(&job.file, at, unit.select.clone(), max, &mut self.tally)
        };
        let (start, end) = (begins(unit.window.start)?, begins(unit.window.end)?);
        let mut at = start;
        let mut look = job.options.block_bytes as u64;
        while at < end {
            let to = end.min(at.saturating_add(look));
            let buffer = self.records.get((to - at) as usize);
            read_as(&job.file, Some(unit.target), at..to, buffer, &mut self.tally)?;
            let whole = if to == end { buffer.len() } else { last_line_end(buffer) };
            if whole == 0 {
                if look > max {
                    return Err(KernelError::LineTooLong { offset: at, max }.into());
                }
                look = look.saturating_mul(2);
                continue;
            }
            check_lines(at, &buffer[..whole], max)?;
            if each(&Block::new(at, whole as u64, &buffer[..whole]))? == Flow::Stop {
                return Ok(Flow::Stop);
            }
            at += whole as u64;
            look = job.options.block_bytes as u64;
        }
        Ok(Flow::Go)
    }
}

fn last_line_end(buffer: &[u8]) -> usize {
    buffer.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1)
}

/// Fills `data` with the bytes of all takes, one after the other.
fn gather(
    file: &FileParts,
    target: TargetIndex,
    takes: &[Take],
    data: &mut [u8],
    scratch: &mut Buffer,
    tally: &mut Tally,
) -> Result<(), RunError> {
    // Where the owner's bytes are and where they go: (object, offset in it, place in `data`, length).
    let mut own: Vec<(Option<&str>, u64, usize, usize)> = Vec::with_capacity(takes.len());
    let mut pulls: BTreeMap<TargetIndex, Vec<(Want<'_>, usize)>> = BTreeMap::new();
    let mut at = 0;
    for take in takes {
        let mut covered = take.bytes.start;
        for extent in file.layout.extents(take.bytes.clone()) {
            let place = at + (extent.file.start - take.bytes.start) as usize;
            let len = (extent.file.end - extent.file.start) as usize;
            covered = extent.file.end;
            if extent.target != target {
                let want = Want { object: extent.object, offset: extent.object_offset, len };
                pulls.entry(extent.target).or_default().push((want, place));
                continue;
            }
            match own.last_mut() {
                // What follows on in the object and in `data` is one read.
                Some((object, offset, before, so_far))
                    if *object == extent.object
                        && *offset + *so_far as u64 == extent.object_offset
                        && *before + *so_far == place =>
                {
                    *so_far += len;
                }
                _ => own.push((extent.object, extent.object_offset, place, len)),
            }
        }
        if covered < take.bytes.end {
            return Err(RunError::Truncated {
                name: file.name.clone(),
                offset: covered,
                length: file.length,
            });
        }
        at += take.len();
    }
    read_own(file, target, &own, data, scratch, tally)?;
    for (holder, wants) in pulls {
        let len = wants.iter().map(|(want, _)| want.len).sum::<usize>();
        let buffer = scratch.get(len);
        let (wants, places): (Vec<_>, Vec<_>) = wants.into_iter().unzip();
        file.part(holder)?.read_many(&wants, buffer)?;
        tally.moved += len as u64;
        tally.messages += 1;
        if let Some(read) = tally.read.get_mut(holder as usize) {
            *read += len as u64;
        }
        let mut from = 0;
        for (want, place) in wants.iter().zip(places) {
            data[place..place + want.len].copy_from_slice(&buffer[from..from + want.len]);
            from += want.len;
        }
    }
    Ok(())
}

/// Reads the owner's bytes: at once where they lie close together in the object, else piece by piece.
fn read_own(
    file: &FileParts,
    target: TargetIndex,
    own: &[(Option<&str>, u64, usize, usize)],
    data: &mut [u8],
    scratch: &mut Buffer,
    tally: &mut Tally,
) -> Result<(), RunError> {
    let part = file.part(target)?;
    let wanted: usize = own.iter().map(|(.., len)| len).sum();
    let low = own.iter().map(|(_, offset, ..)| *offset).min().unwrap_or(0);
    let high = own.iter().map(|(_, offset, _, len)| offset + *len as u64).max().unwrap_or(0);
    let one_object = own.windows(2).all(|pair| pair[0].0 == pair[1].0);
    let close = own.len() > 1 && one_object && high - low <= 2 * wanted as u64;
    if let Some(read) = tally.read.get_mut(target as usize) {
        *read += wanted as u64;
    }
    if !close {
        for (object, offset, place, len) in own {
            part.read(*object, *offset, &mut data[*place..place + len])?;
        }
        return Ok(());
    }
    let span = scratch.get((high - low) as usize);
    part.read(own[0].0, low, span)?;
    for (_, offset, place, len) in own {
        let from = (offset - low) as usize;
        data[*place..place + len].copy_from_slice(&span[from..from + len]);
    }
    Ok(())
}
