//! Where lines begin.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use gristmill_kernel::KernelError;

use crate::fetch::{Tally, read_as};
use crate::{FileParts, RunError};

/// Stretches that are remembered: lanes work close to each other.
const MAX_KNOWN: usize = 64;

/// Where lines begin, with a short memory: the units of a line that is longer than they are all ask for its end,
/// and only the first looks for it.
#[derive(Debug, Default)]
pub(crate) struct LineStarts {
    /// From every position of such a range on, the next line begins at its end.
    known: Mutex<VecDeque<Range<u64>>>,
}

impl LineStarts {
    /// See [`line_start`].
    pub fn find(
        &self,
        file: &FileParts,
        at: u64,
        whole: Range<u64>,
        max_record: u64,
        tally: &mut Tally,
    ) -> Result<u64, RunError> {
        let remembered = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.iter().find(|range| range.start <= at && at <= range.end).map(|range| range.end)
        };
        if let Some(start) = remembered {
            return Ok(start.min(whole.end));
        }
        let start = line_start(file, at, whole.clone(), max_record, tally)?;
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

/// The first start of a line at or behind `at`, within `whole`, whose first byte starts a line and whose end
/// ends one.
///
/// Looks at the byte before `at` and on until a newline, at most `max_record` bytes. What it reads goes to `tally`.
pub(crate) fn line_start(
    file: &FileParts,
    at: u64,
    whole: Range<u64>,
    max_record: u64,
    tally: &mut Tally,
) -> Result<u64, RunError> {
    if at <= whole.start || at >= whole.end {
        return Ok(at.clamp(whole.start, whole.end));
    }
    const FIRST_LOOK: u64 = 256;
    const LARGEST_LOOK: u64 = 64 << 10;
    let mut from = at - 1;
    let mut look = FIRST_LOOK;
    let mut buffer = Vec::new();
    while from < whole.end {
        if from - (at - 1) > max_record {
            return Err(KernelError::LineTooLong { offset: at - 1, max: max_record }.into());
        }
        let to = (from + look).min(whole.end);
        buffer.resize((to - from) as usize, 0);
        read_as(file, None, from..to, &mut buffer, tally)?;
        if let Some(newline) = buffer.iter().position(|byte| *byte == b'\n') {
            return Ok(from + newline as u64 + 1);
        }
        from = to;
        look = (look * 4).min(LARGEST_LOOK);
    }
    Ok(whole.end)
}
