//! What a kernel declares about itself, so that a runtime can split, place and move its folds.

use std::fmt;

use crate::{DType, Position};

/// The declaration of one bound kernel: what it reads, how it may be split, what it gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Name for messages.
    pub name: &'static str,
    /// What the kernel cannot split.
    pub record: Record,
    /// Records seen on each side of a block without being part of it.
    pub halo: u64,
    /// Whether partials may be merged out of order.
    pub order: Order,
    /// What is promised about the bits of the answer.
    pub numerics: Numerics,
    /// What the fold gives.
    pub output: Output,
    /// How many passes it takes.
    pub passes: Passes,
    /// Splits fall on multiples of this many records only, counted from record 0 of the file. 1: anywhere.
    pub grain: u64,
    /// Bytes of a record of a second input that is read record by record beside the first, where there is one.
    pub second: Option<u64>,
    /// Expected bytes of a saved state, for the planner.
    pub state_hint: u64,
    /// Whether `save` works between any two records. A fold that cannot save is never moved.
    pub can_save: bool,
}

impl Spec {
    /// A kernel over fixed-size records that gives a value, with nothing special about it.
    pub const fn fixed(name: &'static str, bytes: u64) -> Spec {
        Spec {
            name,
            record: Record::Fixed(bytes),
            halo: 0,
            order: Order::File,
            numerics: Numerics::Exact,
            output: Output::Value,
            passes: Passes::One,
            grain: 1,
            second: None,
            state_hint: 64,
            can_save: true,
        }
    }

    /// A kernel over lines that gives a value.
    pub const fn lines(name: &'static str) -> Spec {
        let mut spec = Spec::fixed(name, 1);
        spec.record = Record::Line;
        spec
    }
}

/// The unit a kernel cannot split, and with it the unit of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// This many bytes (at least 1). Positions are record numbers.
    Fixed(u64),
    /// A line with its `\n`. Positions are byte offsets in the file; a block ends where a line ends.
    Line,
    /// So many virtual records without bytes, for generators. Positions are record numbers.
    Index(u64),
}

impl Record {
    /// Bytes that one step of position stands for: the record size, 1 for lines, 0 for virtual records.
    pub const fn bytes(self) -> u64 {
        match self {
            Record::Fixed(bytes) => bytes,
            Record::Line => 1,
            Record::Index(_) => 0,
        }
    }
}

/// Whether merging asks for adjacent extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Partials may be merged in any order and across gaps.
    Any,
    /// Only the partial of the extent that follows immediately may be merged.
    File,
}

/// What is promised about the bits of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numerics {
    /// Correctly rounded, whatever the split.
    Exact,
    /// Sums rounded once, of which each value was first cut to a grid set by the largest: the same bits on every
    /// placement, within a stated bound of the exact answer.
    Binned,
    /// The same bits on every placement, by a canonical order of operations.
    Fixed,
    /// Neither; only when asked for.
    Approximate,
}

impl fmt::Display for Numerics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Numerics::Exact => "exact",
            Numerics::Binned => "binned",
            Numerics::Fixed => "fixed",
            Numerics::Approximate => "approximate",
        })
    }
}

/// How many passes a kernel takes over its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// One, or at most a few; what the fold gives it gives in the last of them, and rows that were given before are an
    /// error.
    One,
    /// As many as it takes. Only the pass that [`Next::Last`](crate::Next::Last) announces gives rows or bytes; all
    /// others give a value only. Servers finish such passes among themselves.
    Several,
}

/// What a fold gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A value at the end; nothing goes to the sink.
    Value,
    /// Rows in the order of their positions, and a value at the end.
    Rows(RowShape),
    /// Bytes that follow each other in the order of their positions: a map or a generator. What is put at a position
    /// are the bytes of its record, or of it and so many that follow.
    Bytes,
}

/// How the rows of a kernel are to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowShape {
    /// What the position of a row is called: `index` or `offset`.
    pub position: &'static str,
    /// Positions shown are `origin + record * per_record + part`.
    pub origin: u64,
    /// See `origin`.
    pub per_record: u64,
    /// What the bytes of a row are.
    pub value: RowValue,
}

impl RowShape {
    /// The number that is shown for a position.
    pub const fn shown(&self, at: Position) -> u64 {
        at.record.saturating_mul(self.per_record).saturating_add(at.part).saturating_add(self.origin)
    }
}

/// The content of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowValue {
    /// One element, little-endian; shown as `value`.
    Element(DType),
    /// A line without its terminator; shown as `line`.
    Line,
}
