//! Where lines begin.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use gristmill_kernel::KernelError;

use crate::RunError;

/// Stretches that are remembered: lanes work close to each other.
const MAX_KNOWN: usize = 64;

/// Bytes in which the end of a line is looked for, one look after the other; what a batch pulls behind a run.
pub(crate) const LOOKS: [u64; 3] = [256, 4 << 10, 32 << 10];

/// Bytes of every look after these.
const LAST_LOOK: u64 = 64 << 10;

/// Where lines begin, with a short memory: the units of a line that is longer than they are all ask for its end,
/// and only the first looks for it.
#[derive(Debug, Default)]
pub(crate) struct LineStarts {
    /// From every position of such a range on, the next line begins at its end.
    known: Mutex<VecDeque<Range<u64>>>,
}

/// Reads bytes of the file.
pub(crate) type Read<'r> = dyn FnMut(Range<u64>, &mut [u8]) -> Result<(), RunError> + 'r;

impl LineStarts {
    /// See [`line_start`].
    pub fn find(
        &self,
        at: u64,
        whole: Range<u64>,
        max_record: u64,
        look: &mut Look,
        read: &mut Read<'_>,
    ) -> Result<u64, RunError> {
        let remembered = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.iter().find(|range| range.start <= at && at <= range.end).map(|range| range.end)
        };
        if let Some(start) = remembered {
            return Ok(start.min(whole.end));
        }
        let start = line_start(at, whole.clone(), max_record, look, read)?;
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

/// What was looked at last for the start of a line: `max_record` bytes and one look more, at most.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// Place of the first byte in the file.
    pub from: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// The first start of a line at or behind `at`, within `whole`, whose first byte starts a line and whose end
/// ends one.
///
/// Looks at the byte before `at` and on until a newline, at most `max_record` bytes; they stay in `look`.
pub(crate) fn line_start(
    at: u64,
    whole: Range<u64>,
    max_record: u64,
    look: &mut Look,
    read: &mut Read<'_>,
) -> Result<u64, RunError> {
    if at <= whole.start || at >= whole.end {
        return Ok(at.clamp(whole.start, whole.end));
    }
    let mut looks = LOOKS.into_iter();
    look.from = at - 1;
    look.bytes.clear();
    let mut from = at - 1;
    // The byte before, and as many from `at` on as are pulled at once.
    let mut step = 1 + looks.next().unwrap_or(LAST_LOOK);
    while from < whole.end {
        if from - (at - 1) > max_record {
            return Err(KernelError::LineTooLong { offset: at - 1, max: max_record }.into());
        }
        let to = (from + step).min(whole.end);
        let known = look.bytes.len();
        look.bytes.resize(known + (to - from) as usize, 0);
        let new = &mut look.bytes[known..];
        if let Err(error) = read(from..to, new) {
            look.bytes.truncate(known);
            return Err(error);
        }
        if let Some(newline) = new.iter().position(|byte| *byte == b'\n') {
            return Ok(from + newline as u64 + 1);
        }
        from = to;
        step = looks.next().unwrap_or(LAST_LOOK);
    }
    Ok(whole.end)
}
