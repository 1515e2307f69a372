//! [`Lines`]: makes a kernel over lines one over bytes, which may be split anywhere.
//!
//! A run of bytes begins with the end of a line that began before it (the *head*) and ends with the beginning
//! of one that goes on after it (the *tail*). Both travel in the partial, and the line they make is folded
//! where the two runs are merged: no byte is ever fetched from a neighbour. The wrapped kernel sees whole
//! lines only, each with its `\n` but for a last line that lacks one.
//!
//! A state holds at most two fragments of [`Lines::max_record`] bytes beside that of the wrapped kernel.

use std::sync::Arc;

use memchr::{memchr, memrchr};

use crate::state::{StateReader, StateWriter};
use crate::{Block, Ctx, Emptied, Fold, Kernel, KernelError, Next, Order, Record, Sink, Spec, Step, feed};

/// Checks that no line is longer than `max_record` bytes, its newline counted. `data` begins where a line
/// begins, at byte `at` of the file; lines that reach past its end are judged by what is there of them.
///
/// Looks at few bytes: from the furthest place where the next newline may be, backwards.
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

/// A kernel over bytes made of one over lines ([`Record::Line`]). Positions are byte offsets for both.
#[derive(Clone, Debug)]
pub struct Lines<K> {
    kernel: Arc<K>,
    max_record: u64,
}

impl<K: Kernel + 'static> Lines<K> {
    /// Wraps `kernel`; a line of more than `max_record` bytes (its `\n` counted) is an error.
    pub fn new(kernel: K, max_record: u64) -> Lines<K> {
        Lines { kernel: Arc::new(kernel), max_record }
    }

    /// The longest line allowed, in bytes.
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

/// The bytes folded so far, if any.
#[derive(Debug)]
struct Run {
    /// Position after the last byte.
    end: u64,
    /// No line has begun yet: all bytes are in `head`.
    open: bool,
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
    fn check(&self, len: usize, end: u64) -> Result<(), KernelError> {
        if len as u64 > self.max {
            return Err(KernelError::LineTooLong { offset: end - len as u64, max: self.max });
        }
        Ok(())
    }

    /// Gives whole lines to the wrapped fold: how many of their bytes it took, and `Some` other step than
    /// `Took` where it met one.
    fn lines(
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

    /// Folds a line that the seam of two runs brought to light.
    fn seam(&mut self, at: u64, line: &[u8], mut sink: &mut dyn Sink) -> Result<(), KernelError> {
        if line.is_empty() || self.enough {
            return Ok(());
        }
        let block = Block::new(at, line.len() as u64, line);
        let full = |_: &mut &mut dyn Sink| Ok(Emptied::Nothing);
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
            open: !begins,
            head: Vec::new(),
            tail: Vec::new(),
        });
        let mut at = 0;
        if run.open {
            at = memchr(b'\n', data).map_or(data.len(), |nl| nl + 1);
            run.head.extend_from_slice(&data[..at]);
            run.open = run.head.last() != Some(&b'\n');
            self.check(run.head.len(), block.first() + at as u64)?;
        }
        if !run.tail.is_empty() {
            let whole = memchr(b'\n', data).map(|nl| nl + 1).or(last.then_some(data.len()));
            if let Some(whole) = whole {
                let start = block.first() - run.tail.len() as u64;
                let line = [&run.tail[..], &data[..whole]].concat();
                self.check(line.len(), block.first() + whole as u64)?;
                if let (took, Some(step)) = self.lines(start, &line, sink)? {
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
            let (took, step) = self.lines(block.first() + at as u64, &rest[..whole], sink)?;
            at += took as usize;
            if let Some(step) = step {
                run.end = block.first() + at as u64;
                self.run = Some(run);
                return Ok(if step == Step::Enough { step } else { Step::Full(at as u64) });
            }
        }
        run.tail.extend_from_slice(&data[at..]);
        run.end = block.end();
        self.check(run.tail.len(), run.end)?;
        self.run = Some(run);
        Ok(Step::Took(block.count()))
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.put_flag(self.enough);
        out.put_flag(self.run.is_some());
        if let Some(run) = &self.run {
            out.put_u64(run.end);
            out.put_flag(run.open);
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
        if run.open {
            run.head.extend_from_slice(&later_run.head);
            self.check(run.head.len(), seam + later_run.head.len() as u64)?;
            run.open = later_run.open;
        } else {
            run.tail.extend_from_slice(&later_run.head);
            self.check(run.tail.len(), seam + later_run.head.len() as u64)?;
            let whole = !later_run.open || later_run.end == self.ctx.extent.end;
            if whole {
                let line = std::mem::take(&mut run.tail);
                self.seam(seam + later_run.head.len() as u64 - line.len() as u64, &line, sink)?;
            }
        }
        if !self.enough {
            self.inner.merge(inner, sink)?;
            self.enough = later_enough;
            if !later_run.open {
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
        let open = read.flag()?;
        let head = read.blob()?.to_vec();
        let tail = read.blob()?.to_vec();
        if open && !tail.is_empty() {
            return Err(read.bad("a run without a line has a tail"));
        }
        Some(Run { end, open, head, tail })
    } else {
        None
    };
    Ok((run, enough, read.rest()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NoRows, catalog, saved};

    fn count(split: &[&str], whole: &str, max: u64) -> Result<Next, KernelError> {
        let kernel = catalog::bind("count", &[], &crate::Input::lines())?;
        let kernel = Lines::new(kernel, max);
        let ctx = Ctx::first(0..whole.len() as u64);
        let mut at = 0;
        let mut first: Option<Box<dyn Fold>> = None;
        for piece in split {
            let mut fold = kernel.begin(&ctx)?;
            fold.update(&Block::new(at, piece.len() as u64, piece.as_bytes()), &mut NoRows)?;
            at += piece.len() as u64;
            match &mut first {
                None => first = Some(fold),
                Some(first) => first.merge(&saved(&*fold), &mut NoRows)?,
            }
        }
        kernel.advance(&ctx, &saved(&*first.unwrap()))
    }

    fn counted(n: u64) -> Next {
        Next::Done(crate::Value::Map(vec![("count", n.into())]))
    }

    #[test]
    fn a_line_in_three_pieces_is_one_line() {
        assert_eq!(count(&["ab", "c", "d\nx"], "abcd\nx", 100), Ok(counted(2)));
        assert_eq!(count(&["a", "b", "c"], "abc", 100), Ok(counted(1)));
        assert_eq!(count(&["\n", "\n"], "\n\n", 100), Ok(counted(2)));
    }

    #[test]
    fn a_line_is_too_long_wherever_the_text_is_cut() {
        let text = "a\nbcd\nefghijk\nl\n\nmnopqr";
        for max in 0..10 {
            for cut in 0..text.len() {
                for again in cut..text.len() {
                    let pieces = [&text[..cut], &text[cut..again], &text[again..]];
                    let pieces: Vec<_> = pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
                    let counted_lines = count(&pieces, text, max);
                    if max < 8 {
                        let refused = matches!(counted_lines, Err(KernelError::LineTooLong { .. }));
                        assert!(refused, "{pieces:?}, at most {max}: {counted_lines:?}");
                    } else {
                        assert_eq!(counted_lines, Ok(counted(6)), "{pieces:?}, at most {max}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_line_over_the_bound_is_an_error_that_names_it() {
        let error = count(&["a\nbcd", "efgh\n"], "a\nbcdefgh\n", 5).unwrap_err();
        assert_eq!(error, KernelError::LineTooLong { offset: 2, max: 5 });
    }
}
