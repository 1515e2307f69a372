//! `wc`: counts of lines, words and bytes.

use std::sync::Arc;

use multiversion::multiversion;

use crate::catalog::{Accepts, Declaration};
use crate::state::{StateReader, StateWriter};
use crate::{Block, Ctx, Fold, Input, Kernel, KernelError, Next, Numerics, Params, Sink, Spec, Step, Value};

const NAME: &str = "wc";

pub(crate) const DECLARATION: Declaration = Declaration {
    name: NAME,
    summary: "lines, words and bytes, as the command wc counts them",
    details: "lines is the number of newlines. A word is a longest run of bytes other than space, tab, newline, \
              vertical tab, form feed and carriage return (wc in the C locale).",
    accepts: &[Accepts::Lines],
    params: &[],
    result: &[("lines", "newlines"), ("words", "words"), ("bytes", "bytes")],
    rows: None,
    numerics: Numerics::Exact,
    bind,
};

fn bind(_: &Params, _: &Input) -> Result<Arc<dyn Kernel>, KernelError> {
    Ok(Arc::new(WordCount))
}

struct WordCount;

impl Kernel for WordCount {
    fn spec(&self) -> Spec {
        Spec::fixed(NAME, 1)
    }

    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(WordCountFold::default()))
    }

    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let whole = decode(whole)?;
        Ok(Next::Done(Value::Map(vec![
            ("lines", whole.lines.into()),
            ("words", whole.words.into()),
            ("bytes", whole.bytes.into()),
        ])))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct WordCountFold {
    lines: u64,
    /// Words that begin in the extent, as if the byte before the extent were a space.
    words: u64,
    bytes: u64,
    begins_in_word: bool,
    ends_in_word: bool,
}

fn decode(state: &[u8]) -> Result<WordCountFold, KernelError> {
    let mut read = StateReader::new(NAME, state);
    let fold = WordCountFold {
        lines: read.u64()?,
        words: read.u64()?,
        bytes: read.u64()?,
        begins_in_word: read.flag()?,
        ends_in_word: read.flag()?,
    };
    read.end()?;
    Ok(fold)
}

const fn is_space(byte: u8) -> bool {
    // 9 to 13 are tab, newline, vertical tab, form feed and carriage return.
    byte == b' ' || byte.wrapping_sub(9) < 5
}

/// Counts newlines in `data`, and places where a byte of a word follows a space.
#[multiversion(targets("x86_64+avx+avx2+bmi1+bmi2", "x86_64+sse4.2"))]
fn count(data: &[u8]) -> (u64, u64) {
    let (mut lines, mut words) = (0, 0);
    // A part has at most 255 steps, so that sums in bytes do not overflow.
    const STEP: usize = 64;
    for part in (0..data.len()).step_by(STEP * 255) {
        let end = data.len().min(part + STEP * 255);
        let now = &data[part..end];
        // The pairs (byte before, byte) for all bytes except the first byte of `data`.
        let before = if part == 0 { &data[..end.saturating_sub(1)] } else { &data[part - 1..end - 1] };
        let inner = &now[now.len() - before.len()..];
        let mut line_sums = [0u8; STEP];
        let mut word_sums = [0u8; STEP];
        let (now_steps, now_rest) = now.as_chunks::<STEP>();
        for step in now_steps {
            for (sum, byte) in line_sums.iter_mut().zip(step) {
                *sum += u8::from(*byte == b'\n');
            }
        }
        let (inner_steps, inner_rest) = inner.as_chunks::<STEP>();
        let (before_steps, before_rest) = before.as_chunks::<STEP>();
        for (step, before) in inner_steps.iter().zip(before_steps) {
            for lane in 0..STEP {
                word_sums[lane] += u8::from(is_space(before[lane]) & !is_space(step[lane]));
            }
        }
        lines += line_sums.iter().map(|n| u64::from(*n)).sum::<u64>();
        words += word_sums.iter().map(|n| u64::from(*n)).sum::<u64>();
        lines += now_rest.iter().filter(|byte| **byte == b'\n').count() as u64;
        let rest = inner_rest.iter().zip(before_rest);
        words += rest.filter(|(byte, before)| is_space(**before) && !is_space(**byte)).count() as u64;
    }
    (lines, words)
}

impl WordCountFold {
    fn absorb(&mut self, later: WordCountFold) {
        if later.bytes == 0 {
            return;
        }
        if self.bytes == 0 {
            *self = later;
            return;
        }
        self.lines = self.lines.saturating_add(later.lines);
        self.bytes = self.bytes.saturating_add(later.bytes);
        // A word across the boundary was counted on both sides.
        let across = u64::from(self.ends_in_word && later.begins_in_word);
        self.words = self.words.saturating_add(later.words).saturating_sub(across);
        self.ends_in_word = later.ends_in_word;
    }
}

impl Fold for WordCountFold {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        let data = block.data();
        if let (Some(first), Some(last)) = (data.first(), data.last()) {
            let (lines, words) = count(data);
            let begins_in_word = !is_space(*first);
            let part = WordCountFold {
                lines,
                words: words + u64::from(begins_in_word),
                bytes: data.len() as u64,
                begins_in_word,
                ends_in_word: !is_space(*last),
            };
            self.absorb(part);
        }
        Ok(Step::Took(block.count()))
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.lines);
        out.put_u64(self.words);
        out.put_u64(self.bytes);
        out.put_flag(self.begins_in_word);
        out.put_flag(self.ends_in_word);
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        self.absorb(decode(later)?);
        Ok(())
    }
}
