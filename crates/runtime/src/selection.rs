//! What part of a file a request is about, and the records that this comes to.

use std::ops::Range;

use gristmill_kernel::{Input, Record, RecordRule, Spec};
use gristmill_layout::FixedRecords;

use crate::fetch::read_range;
use crate::lines::{Look, line_start};
use crate::{FileParts, RunError};

/// The part of a file a request is about, in bytes.
///
/// A range selects the records whose *first* byte lies in it: ranges that tile a file select every record once,
/// wherever they cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Bytes before the first record (or line).
    pub skip: u64,
    /// First byte of a range of the file, and its length; `None`: to the end.
    pub range: Option<(u64, Option<u64>)>,
}

/// The records of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Domain {
    /// Where records lie in the file; records of one byte for lines. `None`: virtual records.
    pub records: Option<FixedRecords>,
    /// Those selected, as positions.
    pub select: Range<u64>,
}

impl Domain {
    /// So many chunks, or those of them that somebody else made out.
    pub fn of_chunks(count: u64, known: Option<Range<u64>>) -> Result<Domain, RunError> {
        Ok(Domain { records: None, select: within(known, count)?.unwrap_or(0..count) })
    }
}

impl Selection {
    /// The bytes from `skip` on that are selected, checked against the file.
    fn bytes(&self, file: &FileParts) -> Result<Range<u64>, RunError> {
        let out = |range, remedy| {
            Err(RunError::OutOfFile { name: file.name.clone(), length: file.length, range, remedy })
        };
        if self.skip > file.length {
            return out(self.skip..self.skip, "give a smaller --skip");
        }
        let Some((start, length)) = self.range else { return Ok(self.skip..file.length) };
        let end = match length {
            None => file.length.max(start),
            Some(length) => start.saturating_add(length),
        };
        if start > file.length {
            return out(start..end, "begin the range within the file");
        }
        if end > file.length {
            return out(start..end, "give START: alone to read to the end of the file");
        }
        Ok(start.max(self.skip)..end.max(self.skip))
    }

    pub(crate) fn resolve(
        &self,
        file: &FileParts,
        input: &Input,
        spec: &Spec,
        max_record: u64,
        known: Option<Range<u64>>,
    ) -> Result<Domain, RunError> {
        if let Record::Index(count) = spec.record {
            return Ok(Domain { records: None, select: within(known, count)?.unwrap_or(0..count) });
        }
        let bytes = self.bytes(file)?;
        match input.record {
            RecordRule::Lines => {
                let records = FixedRecords::new(0, 1, file.length)?;
                if let Some(select) = within(known, file.length)? {
                    return Ok(Domain { records: Some(records), select });
                }
                let whole = self.skip..file.length;
                // A few hundred bytes, before anything runs.
                let mut look = Look::default();
                let mut read = |range, buffer: &mut [u8]| read_range(file, range, buffer);
                let start = line_start(bytes.start, whole.clone(), max_record, &mut look, &mut read)?;
                let end = line_start(bytes.end, whole, max_record, &mut look, &mut read)?;
                Ok(Domain { records: Some(records), select: start..end })
            }
            RecordRule::Fixed(size) => {
                let (records, left) = FixedRecords::fitting(self.skip, size, file.length)?;
                // Whoever made the selection out has seen to the ragged end.
                if let Some(select) = within(known, records.count())? {
                    return Ok(Domain { records: Some(records), select });
                }
                // The ragged end, if any, begins where the last whole record ends.
                if left > 0 && bytes.end > records.end() {
                    let behind = file.length - self.skip;
                    return Err(RunError::Ragged { bytes: behind, skip: self.skip, record: size, left });
                }
                Ok(Domain { records: Some(records), select: records.starting_in(bytes) })
            }
        }
    }
}

/// A selection that somebody else made out, checked against the number of positions there are.
fn within(known: Option<Range<u64>>, count: u64) -> Result<Option<Range<u64>>, RunError> {
    match known {
        Some(select) if select.start > select.end || select.end > count => Err(RunError::BadPartial {
            why: format!("records {} to {} of {count} are no selection", select.start, select.end),
        }),
        known => Ok(known),
    }
}
