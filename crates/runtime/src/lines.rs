//! Finds the starts of lines.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use gristmill_kernel::KernelError;

use crate::RunError;

/// Most ranges without the start of a line that are remembered. Few suffice because lanes work close to each other.
const MAX_KNOWN: usize = 64;

/// Bytes of the first steps of a search for the end of a line. A batch pulls as many bytes behind a run.
pub(crate) const SEARCH_STEPS: [u64; 3] = [256, 4 << 10, 32 << 10];

/// Bytes of every later step.
const LAST_STEP: u64 = 64 << 10;

/// Finds the starts of lines and remembers some. If a line is longer than a unit, all units within it ask for its end. Only
/// the first of them searches for it.
#[derive(Debug, Default)]
pub(crate) struct LineStarts {
    /// Ranges without the start of a line: from every position of a range on, the next line begins at the end of the range.
    known: Mutex<VecDeque<Range<u64>>>,
}

/// Reads bytes of the file.
pub(crate) type ReadBytes<'r> = dyn FnMut(Range<u64>, &mut [u8]) -> Result<(), RunError> + 'r;

impl LineStarts {
    /// Finds a start as [`line_start`] does, or remembers it.
    pub fn find(
        &self,
        at: u64,
        whole: Range<u64>,
        max_record: u64,
        search: &mut LineSearch,
        read: &mut ReadBytes<'_>,
    ) -> Result<u64, RunError> {
        let remembered = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.iter().find(|range| range.start <= at && at <= range.end).map(|range| range.end)
        };
        if let Some(start) = remembered {
            return Ok(start.min(whole.end));
        }
        let start = line_start(at, whole.clone(), max_record, search, read)?;
        if whole.start < at && at < start {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.push_back(at..start);
            if known.len() > MAX_KNOWN {
                known.pop_front();
            }
        }
        Ok(start)
    }
}

/// The bytes of the last search for the start of a line: at most `max_record` bytes and one step more.
#[derive(Debug, Default)]
pub(crate) struct LineSearch {
    /// Offset of the first byte in the file.
    pub from: u64,
    /// The bytes that were read.
    pub bytes: Vec<u8>,
}

/// Finds the first start of a line at or behind `at`, within `whole`. The first byte of `whole` starts a line and the end of
/// `whole` ends one.
///
/// Reads from the byte before `at` until a newline, at most `max_record` bytes. The bytes stay in `search`.
pub(crate) fn line_start(
    at: u64,
    whole: Range<u64>,
    max_record: u64,
    search: &mut LineSearch,
    read: &mut ReadBytes<'_>,
) -> Result<u64, RunError> {
    if at <= whole.start || at >= whole.end {
        return Ok(at.clamp(whole.start, whole.end));
    }
    let mut steps = SEARCH_STEPS.into_iter();
    search.from = at - 1;
    search.bytes.clear();
    let mut from = at - 1;
    // The byte before `at`, and as many bytes from `at` on as a batch pulls.
    let mut step = 1 + steps.next().unwrap_or(LAST_STEP);
    while from < whole.end {
        if from - (at - 1) > max_record {
            return Err(KernelError::LineTooLong { offset: at - 1, max: max_record }.into());
        }
        let to = (from + step).min(whole.end);
        let known = search.bytes.len();
        search.bytes.resize(known + (to - from) as usize, 0);
        let new = &mut search.bytes[known..];
        if let Err(error) = read(from..to, new) {
            search.bytes.truncate(known);
            return Err(error);
        }
        if let Some(newline) = new.iter().position(|byte| *byte == b'\n') {
            return Ok(from + newline as u64 + 1);
        }
        from = to;
        step = steps.next().unwrap_or(LAST_STEP);
    }
    Ok(whole.end)
}
