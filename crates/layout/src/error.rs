//! What can be wrong with a layout or a record rule, and what to do about it.

use crate::{MAX_FILE_BYTES, MAX_NEEDS, MAX_OBJECT_NAME, MAX_SEGMENTS, MAX_TARGETS, MAX_UNIT, TargetIndex};

/// Every error of this crate. All come from parameters; arithmetic on accepted values cannot fail.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// A stripe unit of 0, or one past [`MAX_UNIT`].
    #[error(
        "a stripe unit of {unit} bytes cannot be used: give 1 to {max} bytes, for example 65536",
        max = MAX_UNIT
    )]
    Unit {
        /// The unit that was asked for, in bytes.
        unit: u64,
    },

    /// No targets, or more than [`MAX_TARGETS`].
    #[error("a file cannot lie on {targets} targets: give 1 to {max}", max = MAX_TARGETS)]
    Targets {
        /// The number that was asked for.
        targets: u32,
    },

    /// The first stripe is to lie on a target that is not in the list.
    #[error(
        "the first stripe cannot lie on target {first} of {targets}: targets count from 0, give a number below {targets}"
    )]
    First {
        /// The target asked for.
        first: u32,
        /// How many there are.
        targets: u32,
    },

    /// A file, or what is described in it, longer than [`MAX_FILE_BYTES`].
    #[error("{bytes} bytes are more than a file can have ({max}): check the length", max = MAX_FILE_BYTES)]
    FileTooLong {
        /// The length asked for.
        bytes: u64,
    },

    /// A target that the file does not lie on.
    #[error("the file has {targets} targets and none with number {target}: targets count from 0")]
    UnknownTarget {
        /// The target asked for.
        target: TargetIndex,
        /// How many there are.
        targets: u32,
    },

    /// An offset in an object that no file byte can have.
    #[error("byte {object_offset} of the object on target {target} would lie past the longest file ({max} bytes): the object is longer than its layout allows, check which layout belongs to it", max = MAX_FILE_BYTES)]
    ObjectOffset {
        /// The target whose object it is.
        target: TargetIndex,
        /// The offset in that object.
        object_offset: u64,
    },

    /// A record of 0 bytes, or one longer than a file can be.
    #[error("a record of {size} bytes cannot be used: give 1 to {max} bytes", max = MAX_FILE_BYTES)]
    RecordSize {
        /// The size asked for, in bytes.
        size: u64,
    },

    /// Header and records together pass [`MAX_FILE_BYTES`].
    #[error("a header of {header} bytes and {count} records of {size} bytes are longer than a file can be ({max} bytes): check header, record size and count", max = MAX_FILE_BYTES)]
    RecordsTooLong {
        /// Bytes before the first record.
        header: u64,
        /// Bytes of a record.
        size: u64,
        /// Number of records.
        count: u64,
    },

    /// The file ends inside its header.
    #[error(
        "the file has {file_len} bytes and ends inside its header of {header}: skip fewer bytes, or check that the file is complete"
    )]
    HeaderPastEnd {
        /// Bytes before the first record.
        header: u64,
        /// Bytes of the file.
        file_len: u64,
    },

    /// The file does not end where a record ends.
    #[error("{leftover} bytes are left over after {count} records of {size} bytes (header {header}, file {file_len} bytes): check record size and header, or select bytes {header}..{end} to leave the rest out", end = file_len - leftover)]
    Leftover {
        /// Bytes before the first record.
        header: u64,
        /// Bytes of a record.
        size: u64,
        /// Whole records in the file.
        count: u64,
        /// Bytes of the file.
        file_len: u64,
        /// Bytes after the last whole record; below `size`.
        leftover: u64,
    },

    /// No stripe unit of whole records is small enough.
    #[error("no stripe unit of at least {wanted} bytes in whole records of {record} bytes stays within {max}: ask for a smaller unit", max = MAX_UNIT)]
    UnitTooLarge {
        /// The unit asked for, in bytes.
        wanted: u64,
        /// Bytes of a record.
        record: u64,
    },

    /// The records end past the last byte of a segment table.
    #[error(
        "the records end at byte {end} and the file at byte {len}: check header, record size and count against the file's length"
    )]
    RecordsPastEnd {
        /// First byte after the last record.
        end: u64,
        /// Bytes of the file.
        len: u64,
    },

    /// What a stretch of records lacks lies in more than [`MAX_NEEDS`] pieces.
    #[error("these records lack more than {max} pieces: ask for fewer records at a time or take the pieces in batches; a stripe unit of whole records (fit_unit) makes fewer", max = MAX_NEEDS)]
    TooManyNeeds,

    /// A segment of no bytes, or whose end lies before its start.
    #[error("segment {index} holds bytes {start}..{end}: leave empty segments out of the table")]
    SegmentEmpty {
        /// Position in the table.
        index: usize,
        /// First byte.
        start: u64,
        /// Byte after the last.
        end: u64,
    },

    /// A segment does not start where the one before it ends.
    #[error(
        "segment {index} starts at byte {found} and should start at {expected}: segments must be sorted by file position, without gap or overlap, from byte 0"
    )]
    SegmentOrder {
        /// Position in the table.
        index: usize,
        /// Where it should start.
        expected: u64,
        /// Where it starts.
        found: u64,
    },

    /// A segment whose object has no name, or one longer than [`MAX_OBJECT_NAME`].
    #[error("segment {index} names its object with {bytes} bytes: give 1 to {max}", max = MAX_OBJECT_NAME)]
    SegmentObject {
        /// Position in the table.
        index: usize,
        /// Length of the name.
        bytes: usize,
    },

    /// Two segments claim the same bytes of one object.
    #[error(
        "segments {one} and {other} both claim byte {object_offset} of object {object:?} on target {target}: the table is damaged or two attempts were mixed, build it again from one attempt"
    )]
    SegmentShared {
        /// Position of the earlier one in the table.
        one: usize,
        /// Position of the later one.
        other: usize,
        /// Their target.
        target: TargetIndex,
        /// Their object.
        object: String,
        /// The first byte of the object that both claim.
        object_offset: u64,
    },

    /// More than [`MAX_SEGMENTS`] segments.
    #[error("a segment table holds at most {max} pieces: write larger pieces, or rewrite the file striped", max = MAX_SEGMENTS)]
    TooManySegments,

    /// Files that cannot be read as one.
    #[error("the files cannot be read as one: {why}")]
    Joined {
        /// Description of the fault.
        why: String,
    },

    /// Stripes were asked of a file whose pieces are in a table.
    #[error(
        "the stripes of this file are not dealt to its targets in turn: a table says where its pieces lie"
    )]
    NotStriped,

    /// Components do not make a layout of the file.
    #[error("the components of a file in place are wrong: {why}")]
    Components {
        /// What is wrong with them.
        why: &'static str,
    },

    /// The table of a target of a segments file is not what was written.
    #[error("the table of a segments file is damaged ({why}): make the file again")]
    SegmentTable {
        /// What is wrong with it.
        why: &'static str,
    },
}
