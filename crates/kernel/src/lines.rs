//! [`Lines`]: turns a kernel over lines into a kernel over bytes, which may be split anywhere.
//!
//! A run of bytes begins with the end of a line that began before the run (the *head*). It ends with the beginning of a
//! line that continues after the run (the *tail*). The partial contains both. When two runs are merged, the tail of the
//! first and the head of the second make a line, which is folded then. So no byte is fetched from a neighbour. The
//! wrapped kernel sees whole lines only. Each has its `\n`, except a last line that lacks it.
//!
//! A state holds at most two fragments of [`Lines::max_record`] bytes and the state of the wrapped kernel.

use std::sync::Arc;

use memchr::{memchr, memrchr};

use crate::state::{StateReader, StateWriter};
use crate::{
    Block, Ctx, DrainOutcome, Fold, Kernel, KernelError, Next, Order, Record, Sink, Spec, Step, feed,
};

/// Checks that no line is longer than `max_record` bytes including its newline. `data` begins at the beginning of a
/// line, at byte `at` of the file. Of a line that continues after `data`, only the part in `data` counts.
///
/// The search reads few bytes: it goes backwards from the last place where the next newline may be.
///
/// # Errors
/// The error is [`KernelError::LineTooLong`] for the first line that is longer.
pub fn check_lines(at: u64, data: &[u8], max_record: u64) -> Result<(), KernelError> {
    let max = usize::try_from(max_record).unwrap_or(usize::MAX);
    let mut start = 0;
    while data.len() - start > max {
        match memrchr(b'\n', &data[start..start + max]) {
            Some(newline) => start += newline + 1,
            None => return Err(KernelError::LineTooLong { offset: at + start as u64, max: max_record }),
        }
    }
    Ok(())
}

/// A kernel over bytes that wraps a kernel over lines ([`Record::Line`]). Positions are byte offsets for both.
#[derive(Clone, Debug)]
pub struct Lines<K> {
    kernel: Arc<K>,
    max_record: u64,
}

impl<K: Kernel + 'static> Lines<K> {
    /// Wraps `kernel`. A line of more than `max_record` bytes including its `\n` is an error.
    pub fn new(kernel: K, max_record: u64) -> Lines<K> {
        Lines { kernel: Arc::new(kernel), max_record }
    }

    /// Most bytes of a line.
    pub const fn max_record(&self) -> u64 {
        self.max_record
    }
}

impl<K: Kernel + 'static> Kernel for Lines<K> {
    fn spec(&self) -> Spec {
        Spec { record: Record::Fixed(1), order: Order::File, ..self.kernel.spec() }
    }

    fn begin(&self, ctx: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(LinesFold {
            inner: self.kernel.begin(ctx)?,
            spec: self.kernel.spec(),
            kernel: self.kernel.clone(),
            ctx: ctx.clone(),
            max: self.max_record,
            run: None,
            enough: false,
        }))
    }

    fn advance(&self, ctx: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let (run, enough, inner) = decode(self.kernel.spec().name, whole)?;
        if let Some(run) = run
            && !(enough || run.head.is_empty() && run.tail.is_empty())
        {
            let why = "a line is still in pieces".into();
            return Err(KernelError::BadState { kernel: self.kernel.spec().name, why });
        }
        self.kernel.advance(ctx, inner)
    }
}

/// The run of bytes that was folded so far.
#[derive(Debug)]
struct Run {
    /// Position after the last byte.
    end: u64,
    /// Whether all bytes are in `head`, because no line has begun yet.
    only_head: bool,
    head: Vec<u8>,
    tail: Vec<u8>,
}

struct LinesFold<K> {
    kernel: Arc<K>,
    inner: Box<dyn Fold>,
    spec: Spec,
    ctx: Ctx,
    max: u64,
    run: Option<Run>,
    enough: bool,
}

impl<K: Kernel> LinesFold<K> {
    fn check_length(&self, len: usize, end: u64) -> Result<(), KernelError> {
        if len as u64 > self.max {
            return Err(KernelError::LineTooLong { offset: end - len as u64, max: self.max });
        }
        Ok(())
    }

    /// Gives whole lines to the wrapped fold. Returns the number of bytes that it took, and its last step if that was
    /// not `Took`.
    fn fold_lines(
        &mut self,
        at: u64,
        lines: &[u8],
        sink: &mut dyn Sink,
    ) -> Result<(u64, Option<Step>), KernelError> {
        check_lines(at, lines, self.max)?;
        let block = Block::new(at, lines.len() as u64, lines);
        let mut done = 0;
        while done < block.count() {
            match self.inner.update(&block.part(&self.spec, done, block.count()), sink)? {
                Step::Took(0) => {
                    let why = "took no line of a block".into();
                    return Err(KernelError::Contract { kernel: self.spec.name, why });
                }
                Step::Took(took) => done += took,
                Step::Full(took) => return Ok((done + took, Some(Step::Full(done + took)))),
                Step::Enough => {
                    self.enough = true;
                    return Ok((done, Some(Step::Enough)));
                }
            }
        }
        Ok((done, None))
    }

    /// Folds the line between two runs that are merged.
    fn fold_seam_line(&mut self, at: u64, line: &[u8], mut sink: &mut dyn Sink) -> Result<(), KernelError> {
        if line.is_empty() || self.enough {
            return Ok(());
        }
        let block = Block::new(at, line.len() as u64, line);
        let full = |_: &mut &mut dyn Sink| Ok(DrainOutcome::Nothing);
        (_, self.enough) = feed(&self.spec, &mut *self.inner, &block, &mut sink, full)?;
        Ok(())
    }
}

impl<K: Kernel> Fold for LinesFold<K> {
    fn update(&mut self, block: &Block<'_>, sink: &mut dyn Sink) -> Result<Step, KernelError> {
        if self.enough {
            return Ok(Step::Enough);
        }
        let data = block.data();
        let last = block.end() == self.ctx.extent.end;
        let begins = block.first() == self.ctx.extent.start;
        let mut run = self.run.take().unwrap_or(Run {
            end: block.first(),
            only_head: !begins,
            head: Vec::new(),
            tail: Vec::new(),
        });
        let mut at = 0;
        if run.only_head {
            at = memchr(b'\n', data).map_or(data.len(), |nl| nl + 1);
            run.head.extend_from_slice(&data[..at]);
            run.only_head = run.head.last() != Some(&b'\n');
            self.check_length(run.head.len(), block.first() + at as u64)?;
        }
        if !run.tail.is_empty() {
            let whole = memchr(b'\n', data).map(|nl| nl + 1).or(last.then_some(data.len()));
            if let Some(whole) = whole {
                let start = block.first() - run.tail.len() as u64;
                let line = [&run.tail[..], &data[..whole]].concat();
                self.check_length(line.len(), block.first() + whole as u64)?;
                if let (took, Some(step)) = self.fold_lines(start, &line, sink)? {
                    let all = took == line.len() as u64;
                    if all {
                        run.tail.clear();
                        run.end = block.first() + whole as u64;
                    }
                    self.run = Some(run);
                    return Ok(match step {
                        Step::Enough => step,
                        _ => Step::Full(if all { whole as u64 } else { 0 }),
                    });
                }
                run.tail.clear();
                at = whole;
            }
        }
        if run.tail.is_empty() && at < data.len() {
            let rest = &data[at..];
            let whole = if last { rest.len() } else { memrchr(b'\n', rest).map_or(0, |nl| nl + 1) };
            let (took, step) = self.fold_lines(block.first() + at as u64, &rest[..whole], sink)?;
            at += took as usize;
            if let Some(step) = step {
                run.end = block.first() + at as u64;
                self.run = Some(run);
                return Ok(if step == Step::Enough { step } else { Step::Full(at as u64) });
            }
        }
        run.tail.extend_from_slice(&data[at..]);
        run.end = block.end();
        self.check_length(run.tail.len(), run.end)?;
        self.run = Some(run);
        Ok(Step::Took(block.count()))
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.put_flag(self.enough);
        out.put_flag(self.run.is_some());
        if let Some(run) = &self.run {
            out.put_u64(run.end);
            out.put_flag(run.only_head);
            out.put_blob(&run.head);
            out.put_blob(&run.tail);
        }
        self.inner.save(out);
    }

    fn merge(&mut self, later: &[u8], sink: &mut dyn Sink) -> Result<(), KernelError> {
        if self.enough {
            return Ok(());
        }
        let (later_run, later_enough, inner) = decode(self.spec.name, later)?;
        let Some(later_run) = later_run else { return Ok(()) };
        let Some(mut run) = self.run.take() else {
            self.inner = self.kernel.restore(&self.ctx, inner)?;
            self.run = Some(later_run);
            self.enough = later_enough;
            return Ok(());
        };
        let seam = run.end;
        if run.only_head {
            run.head.extend_from_slice(&later_run.head);
            self.check_length(run.head.len(), seam + later_run.head.len() as u64)?;
            run.only_head = later_run.only_head;
        } else {
            run.tail.extend_from_slice(&later_run.head);
            self.check_length(run.tail.len(), seam + later_run.head.len() as u64)?;
            let whole = !later_run.only_head || later_run.end == self.ctx.extent.end;
            if whole {
                let line = std::mem::take(&mut run.tail);
                self.fold_seam_line(seam + later_run.head.len() as u64 - line.len() as u64, &line, sink)?;
            }
        }
        if !self.enough {
            self.inner.merge(inner, sink)?;
            self.enough = later_enough;
            if !later_run.only_head {
                run.tail = later_run.tail;
            }
        }
        run.end = later_run.end;
        self.run = Some(run);
        Ok(())
    }
}

fn decode<'a>(kernel: &'static str, state: &'a [u8]) -> Result<(Option<Run>, bool, &'a [u8]), KernelError> {
    let mut read = StateReader::new(kernel, state);
    let enough = read.flag()?;
    let run = if read.flag()? {
        let end = read.u64()?;
        let only_head = read.flag()?;
        let head = read.blob()?.to_vec();
        let tail = read.blob()?.to_vec();
        if only_head && !tail.is_empty() {
            return Err(read.bad("a run without a line has a tail"));
        }
        Some(Run { end, only_head, head, tail })
    } else {
        None
    };
    Ok((run, enough, read.rest()))
}

#[cfg(test)]
mod tests;
