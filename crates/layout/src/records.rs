//! Records of one fixed size, after a header.

use std::ops::Range;

use crate::{LayoutError, MAX_FILE_BYTES, MAX_UNIT};

/// `header` bytes, then `count` records of `size` bytes, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FixedRecords {
    header: u64,
    size: u64,
    count: u64,
}

impl FixedRecords {
    /// # Errors
    /// [`LayoutError::RecordSize`], or [`LayoutError::RecordsTooLong`] if they end past [`MAX_FILE_BYTES`].
    pub fn new(header: u64, size: u64, count: u64) -> Result<Self, LayoutError> {
        if size == 0 || size > MAX_FILE_BYTES {
            return Err(LayoutError::RecordSize { size });
        }
        let end = size.checked_mul(count).and_then(|bytes| bytes.checked_add(header));
        if end.is_none_or(|end| end > MAX_FILE_BYTES) {
            return Err(LayoutError::RecordsTooLong { header, size, count });
        }
        Ok(Self { header, size, count })
    }

    /// The records of a file that holds nothing after them. A file that ends with its header has none.
    ///
    /// # Errors
    /// [`LayoutError::Leftover`] if the file does not end where a record ends, and what
    /// [`fitting`](Self::fitting) refuses.
    pub fn from_file_len(header: u64, size: u64, file_len: u64) -> Result<Self, LayoutError> {
        let (records, leftover) = Self::fitting(header, size, file_len)?;
        if leftover > 0 {
            let count = records.count;
            return Err(LayoutError::Leftover { header, size, count, file_len, leftover });
        }
        Ok(records)
    }

    /// As many whole records as a file of this length holds, and how many bytes are left over after them.
    ///
    /// # Errors
    /// [`LayoutError::HeaderPastEnd`], [`LayoutError::RecordSize`] or [`LayoutError::FileTooLong`].
    pub fn fitting(header: u64, size: u64, file_len: u64) -> Result<(Self, u64), LayoutError> {
        if file_len > MAX_FILE_BYTES {
            return Err(LayoutError::FileTooLong { bytes: file_len });
        }
        let body = file_len.checked_sub(header).ok_or(LayoutError::HeaderPastEnd { header, file_len })?;
        let count = body.checked_div(size).ok_or(LayoutError::RecordSize { size })?;
        Ok((Self::new(header, size, count)?, body % size))
    }

    /// Bytes before the first record.
    pub fn header(&self) -> u64 {
        self.header
    }

    /// Bytes of a record.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Number of records.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The first byte after the last record.
    pub fn end(&self) -> u64 {
        self.start_of(self.count)
    }

    /// The bytes of the file that these records lie in.
    pub fn bytes(&self, records: Range<u64>) -> Range<u64> {
        let records = self.cut(records);
        self.start_of(records.start)..self.start_of(records.end)
    }

    /// The records whose first byte lies in this range of the file: those its holder owns.
    pub fn starting_in(&self, file: Range<u64>) -> Range<u64> {
        let end = self.first_from(file.end);
        self.first_from(file.start).min(end)..end
    }

    /// The record that this byte belongs to; none in the header and after the last record.
    pub fn record_of(&self, file_offset: u64) -> Option<u64> {
        let record = file_offset.checked_sub(self.header)? / self.size;
        (record < self.count).then_some(record)
    }

    /// The range without records that do not exist; never reversed.
    pub(crate) fn cut(&self, records: Range<u64>) -> Range<u64> {
        let end = records.end.min(self.count);
        records.start.min(end)..end
    }

    /// First byte of a record; of the end for all records past it.
    pub(crate) fn start_of(&self, record: u64) -> u64 {
        // The constructor checked this sum for `count`.
        self.header + record.min(self.count) * self.size
    }

    /// The first record that starts at or after this byte; `count` if none does.
    pub(crate) fn first_from(&self, file_offset: u64) -> u64 {
        file_offset.saturating_sub(self.header).div_ceil(self.size).min(self.count)
    }
}

/// The stripe unit to use where `wanted` bytes were asked for and records are `record` bytes long: the next
/// whole number of records, at least one. It cuts no record if the records start at a stripe boundary, so a
/// header before them should be a multiple of the unit too.
///
/// # Errors
/// [`LayoutError::RecordSize`], or [`LayoutError::UnitTooLarge`] if that passes [`MAX_UNIT`].
pub fn fit_unit(wanted: u64, record: u64) -> Result<u64, LayoutError> {
    if record == 0 {
        return Err(LayoutError::RecordSize { size: record });
    }
    (wanted.div_ceil(record).max(1).checked_mul(record))
        .filter(|unit| *unit <= MAX_UNIT)
        .ok_or(LayoutError::UnitTooLarge { wanted, record })
}
