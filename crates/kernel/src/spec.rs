//! The declaration of a kernel, so that a runtime can split, place and move its folds.

use std::fmt;

use crate::{DType, Position};

/// The declaration of a bound kernel: its input, how it may be split, and its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Name for messages.
    pub name: &'static str,
    /// The unit that cannot be split.
    pub record: Record,
    /// Number of records on each side of a block that the fold sees but does not own.
    pub halo: u64,
    /// Whether partials may be merged out of order.
    pub order: Order,
    /// The promise about the bits of the answer.
    pub numerics: Numerics,
    /// The output of the fold.
    pub output: Output,
    /// The number of passes.
    pub passes: Passes,
    /// Records can be split only at multiples of this number, counted from record 0 of the file. With 1 they can be
    /// split anywhere.
    pub grain: u64,
    /// Bytes of a record of the second input, if there is one. Both inputs are read together, record by record.
    pub second: Option<u64>,
    /// Expected bytes of a saved state, for the planner.
    pub state_hint: u64,
    /// Whether `save` works between any two records. A fold that cannot save is never moved.
    pub can_save: bool,
}

impl Spec {
    /// A kernel over fixed-size records that gives a value, with the usual settings for everything else.
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

/// The unit that a kernel cannot split. It also defines the unit of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// A fixed number of bytes (at least 1). Positions are record numbers.
    Fixed(u64),
    /// A line with its `\n`. Positions are byte offsets in the file. A block ends where a line ends.
    Line,
    /// A number of virtual records without bytes, for generators. Positions are record numbers.
    Index(u64),
}

impl Record {
    /// Bytes per position: the record size, 1 for lines, 0 for virtual records.
    pub const fn bytes(self) -> u64 {
        match self {
            Record::Fixed(bytes) => bytes,
            Record::Line => 1,
            Record::Index(_) => 0,
        }
    }
}

/// Whether only adjacent extents can be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Partials may be merged in any order and across gaps.
    Any,
    /// Only the partial of the extent that follows immediately may be merged.
    File,
}

/// The promise about the bits of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numerics {
    /// The answer is rounded correctly for any split.
    Exact,
    /// Each value is cut to a grid that depends on the largest value, and sums are rounded once. The bits are the same
    /// on every placement, within a stated bound of the exact answer.
    Binned,
    /// The bits are the same on every placement, because operations have one canonical order.
    Fixed,
    /// The kernel makes none of these promises. It is used only on request.
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

/// The number of passes of a kernel over its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// One pass, or at most a few. The fold gives its output in the last of them. Rows in an earlier pass are an error.
    One,
    /// As many passes as the kernel needs. Only the pass that [`Next::Last`](crate::Next::Last) announces gives rows or
    /// bytes. All other passes give a value only. Servers finish such passes among themselves.
    Several,
}

/// The output of a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A value at the end. The fold emits no rows.
    Value,
    /// Rows in the order of their positions, and a value at the end.
    Rows(RowShape),
    /// Bytes in the order of their positions: the kernel is a map or a generator. The bytes at a position are those of
    /// its record, or of this record and some records after it.
    Bytes,
}

/// The form in which users see the rows of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowShape {
    /// The name of the position of a row: `index` or `offset`.
    pub position: &'static str,
    /// The displayed position is `origin + record * per_record + part`.
    pub origin: u64,
    /// See `origin`.
    pub per_record: u64,
    /// The content of the bytes of a row.
    pub value: RowValue,
}

impl RowShape {
    /// The displayed number of a position.
    pub const fn display_number(&self, at: Position) -> u64 {
        at.record.saturating_mul(self.per_record).saturating_add(at.part).saturating_add(self.origin)
    }
}

/// The content of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowValue {
    /// One element, little-endian. Its name is `value`.
    Element(DType),
    /// A line without its terminator. Its name is `line`.
    Line,
}
