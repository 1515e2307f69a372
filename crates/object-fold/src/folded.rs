//! The states that a fold over an object gives.

use std::ops::Range;

use gristmill_kernel::state::{StateReader, StateWriter};

use crate::order::{FORM, MAX_SPANS};
use crate::{FoldError, Span};

/// Longest answer, in bytes.
pub const MAX_ANSWER: usize = 1 << 20;

/// A state and the records that it covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldedState {
    /// The records, in ascending order; one range unless the kernel merges in any order.
    pub records: Vec<Range<u64>>,
    /// The saved state of the fold over them.
    pub state: Vec<u8>,
}

/// The records that were folded, and their states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    /// The states. No record is in two of them.
    pub states: Vec<FoldedState>,
    /// A fold had enough: no record from this position on is needed, or, if the kernel merges in any order, no further record at all.
    pub enough: Option<u64>,
    /// Whether the time was over before all records were folded.
    pub out_of_time: bool,
}

impl Folded {
    /// The number of folded records.
    pub fn count(&self) -> u64 {
        let ranges = self.states.iter().flat_map(|state| &state.records);
        ranges.map(|range| range.end - range.start).sum()
    }

    /// Adds the states of another object.
    pub fn add(&mut self, other: Folded) {
        self.states.extend(other.states);
        self.enough = self.enough.into_iter().chain(other.enough).min();
        self.out_of_time |= other.out_of_time;
    }

    /// The message.
    ///
    /// # Errors
    /// The error is [`FoldError::TooLong`] if it has more than [`MAX_ANSWER`] bytes.
    pub fn encode(&self) -> Result<Vec<u8>, FoldError> {
        let mut out = Vec::new();
        out.put_u64(FORM);
        out.put_u64(self.states.len() as u64);
        for state in &self.states {
            out.put_u64(state.records.len() as u64);
            for range in &state.records {
                out.put_u64(range.start);
                out.put_u64(range.end);
            }
            out.put_blob(&state.state);
        }
        out.put_flag(self.enough.is_some());
        out.put_u64(self.enough.unwrap_or(0));
        out.put_flag(self.out_of_time);
        if out.len() > MAX_ANSWER {
            return Err(FoldError::TooLong {
                what: "the answer of a fold",
                bytes: out.len(),
                max: MAX_ANSWER,
            });
        }
        Ok(out)
    }

    /// Reads an answer to a message that asked for these spans.
    ///
    /// # Errors
    /// It fails if the bytes are no answer, or if they cover a record twice or one that was not asked for.
    pub fn decode(answer: &[u8], asked: &[Span]) -> Result<Folded, FoldError> {
        let mut from = StateReader::new("fold over an object", answer);
        let got = from.u64()?;
        if got != FORM {
            return Err(FoldError::OtherForm { got, want: FORM });
        }
        let many = |count: u64| FoldError::Malformed(format!("{count} ranges are more than {MAX_SPANS}"));
        let mut all = Vec::new();
        let mut folded = Folded::default();
        let count = from.u64()?;
        if count > MAX_SPANS as u64 {
            return Err(many(count));
        }
        for _ in 0..count {
            let ranges = from.u64()?;
            if ranges > (MAX_SPANS - all.len().min(MAX_SPANS)) as u64 {
                return Err(many(ranges));
            }
            let mut records = Vec::new();
            for _ in 0..ranges {
                records.push(from.u64()?..from.u64()?);
            }
            all.extend(records.iter().cloned());
            folded.states.push(FoldedState { records, state: from.blob()?.to_vec() });
        }
        let (has_enough, enough) = (from.flag()?, from.u64()?);
        folded.enough = has_enough.then_some(enough);
        folded.out_of_time = from.flag()?;
        from.end()?;
        check_covered(all, asked)?;
        Ok(folded)
    }
}

/// Checks that ranges were asked for and have no record in common.
fn check_covered(mut ranges: Vec<Range<u64>>, asked: &[Span]) -> Result<(), FoldError> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut asked = asked.iter().map(|span| span.records.clone()).peekable();
    let mut after = 0;
    for range in ranges {
        let wrong = || {
            let why =
                format!("records {} to {} were not asked for, or are covered twice", range.start, range.end);
            Err(FoldError::Malformed(why))
        };
        if range.is_empty() || range.start < after {
            return wrong();
        }
        // Spans may touch, so a range may lie in several of them.
        let mut at = range.start;
        while at < range.end {
            while asked.next_if(|span| span.end <= at).is_some() {}
            match asked.peek() {
                Some(span) if span.start <= at => at = span.end,
                _ => return wrong(),
            }
        }
        after = range.end;
    }
    Ok(())
}
