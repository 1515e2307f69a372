//! The selected part of a file, and the records that it has.

use std::ops::Range;

use gristmill_kernel::{Input, Record, RecordRule, Spec};
use gristmill_layout::FixedRecords;

use crate::fetch::read_range;
use crate::lines::{LineSearch, line_start};
use crate::{FileParts, RunError};

/// The selected part of a file, in bytes.
///
/// A range selects the records whose *first* byte lies in it. So ranges that tile a file select every record once,
/// wherever they cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Bytes before the first record (or line).
    pub skip: u64,
    /// First byte of a range of the file, and its length; without a length it reaches to the end. `None`: the whole file.
    pub range: Option<(u64, Option<u64>)>,
}

/// The records of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Domain {
    /// The places of the records in the file; for lines, records of one byte. `None`: virtual records.
    pub records: Option<FixedRecords>,
    /// Positions of the selected records.
    pub select: Range<u64>,
}

impl Domain {
    /// The domain of `count` chunks. `known` are the selected chunks, if the caller knows them.
    pub fn of_chunks(count: u64, known: Option<Range<u64>>) -> Result<Domain, RunError> {
        Ok(Domain { records: None, select: check_known(known, count)?.unwrap_or(0..count) })
    }
}

impl Selection {
    /// The selected bytes from `skip` on, checked against the file.
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

    /// Finds the selected records. `known` are these records, if the caller knows them; then no bytes are read.
    pub(crate) fn resolve(
        &self,
        file: &FileParts,
        input: &Input,
        spec: &Spec,
        max_record: u64,
        known: Option<Range<u64>>,
    ) -> Result<Domain, RunError> {
        if let Record::Index(count) = spec.record {
            return Ok(Domain { records: None, select: check_known(known, count)?.unwrap_or(0..count) });
        }
        let bytes = self.bytes(file)?;
        match input.record {
            RecordRule::Lines => {
                let records = FixedRecords::new(0, 1, file.length)?;
                if let Some(select) = check_known(known, file.length)? {
                    return Ok(Domain { records: Some(records), select });
                }
                let whole = self.skip..file.length;
                // This reads a few hundred bytes before the request runs.
                let mut search = LineSearch::default();
                let mut read = |range, buffer: &mut [u8]| read_range(file, range, buffer);
                let start = line_start(bytes.start, whole.clone(), max_record, &mut search, &mut read)?;
                let end = line_start(bytes.end, whole, max_record, &mut search, &mut read)?;
                Ok(Domain { records: Some(records), select: start..end })
            }
            RecordRule::Fixed(size) => {
                let (records, left) = FixedRecords::fitting(self.skip, size, file.length)?;
                // The caller has checked the end of the file already.
                if let Some(select) = check_known(known, records.count())? {
                    return Ok(Domain { records: Some(records), select });
                }
                // Bytes that are left over begin where the last whole record ends.
                if left > 0 && bytes.end > records.end() {
                    let behind = file.length - self.skip;
                    return Err(RunError::Ragged { bytes: behind, skip: self.skip, record: size, left });
                }
                Ok(Domain { records: Some(records), select: records.starting_in(bytes) })
            }
        }
    }
}

/// Checks a known selection against the number of positions.
fn check_known(known: Option<Range<u64>>, count: u64) -> Result<Option<Range<u64>>, RunError> {
    match known {
        Some(select) if select.start > select.end || select.end > count => Err(RunError::BadPartial {
            why: format!("records {} to {} are not a selection of {count} records", select.start, select.end),
        }),
        known => Ok(known),
    }
}
