//! Stripes of equal length, dealt to the targets in turn.

use std::ops::Range;

use crate::{LayoutError, MAX_FILE_BYTES, MAX_TARGETS, MAX_UNIT, TargetIndex};

/// Stripe `i` (file bytes `i*unit .. (i+1)*unit`) lies on target `(first + i) % targets`. Each target keeps its
/// stripes one after the other, in file order and without gaps, in one object. [In place](Striped::in_place), each target
/// reads the same whole file, and the stripes say only which records it owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Striped {
    unit: u64,
    targets: u32,
    first: u32,
    in_place: bool,
}

impl Striped {
    /// Stripes of `unit` bytes over `targets` targets, the first stripe on target `first`.
    ///
    /// # Errors
    /// [`LayoutError::Unit`], [`LayoutError::Targets`] or [`LayoutError::First`] if one is out of bounds.
    pub fn new(unit: u64, targets: u32, first: u32) -> Result<Self, LayoutError> {
        if unit == 0 || unit > MAX_UNIT {
            return Err(LayoutError::Unit { unit });
        }
        if targets == 0 || targets > MAX_TARGETS {
            return Err(LayoutError::Targets { targets });
        }
        if first >= targets {
            return Err(LayoutError::First { first, targets });
        }
        Ok(Self { unit, targets, first, in_place: false })
    }

    /// One contiguous piece per target (Son 2010): the stripe unit is the file's length over the number of
    /// targets, rounded up, so that the last targets may hold less or nothing. The pieces stay single only as
    /// long as the file does not grow past `file_len`.
    ///
    /// # Errors
    /// [`LayoutError::FileTooLong`] or [`LayoutError::Targets`].
    pub fn contiguous(file_len: u64, targets: u32) -> Result<Self, LayoutError> {
        if file_len > MAX_FILE_BYTES {
            return Err(LayoutError::FileTooLong { bytes: file_len });
        }
        if targets == 0 {
            return Err(LayoutError::Targets { targets });
        }
        Self::new(file_len.div_ceil(u64::from(targets)).max(1), targets, 0)
    }

    /// The same stripes of a file that lies in one piece where all targets read it. Its offsets are those of the file.
    #[must_use]
    pub fn in_place(self) -> Self {
        Self { in_place: true, ..self }
    }

    /// Whether each target reads the whole file.
    pub fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// Bytes of a stripe.
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// How many targets the stripes are dealt to.
    pub fn targets(&self) -> u32 {
        self.targets
    }

    /// The target of stripe 0.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// The target that holds this byte of the file.
    pub fn target_of(&self, file_offset: u64) -> TargetIndex {
        let targets = u64::from(self.targets);
        // Below `targets`, and so fits a u32.
        ((file_offset / self.unit % targets + u64::from(self.first)) % targets) as TargetIndex
    }

    /// Where this byte of the file lies in the object of its target. Never larger than `file_offset`.
    pub fn object_offset(&self, file_offset: u64) -> u64 {
        if self.in_place {
            return file_offset;
        }
        file_offset / self.unit / u64::from(self.targets) * self.unit + file_offset % self.unit
    }

    /// The file byte that lies at `object_offset` in the object of `target`.
    ///
    /// # Errors
    /// [`LayoutError::UnknownTarget`], or [`LayoutError::ObjectOffset`] if no file is long enough to have it.
    pub fn file_offset(&self, target: TargetIndex, object_offset: u64) -> Result<u64, LayoutError> {
        let column =
            self.column(target).ok_or(LayoutError::UnknownTarget { target, targets: self.targets })?;
        if self.in_place {
            return Some(object_offset)
                .filter(|offset| *offset < MAX_FILE_BYTES && self.target_of(*offset) == target)
                .ok_or(LayoutError::ObjectOffset { target, object_offset });
        }
        (object_offset / self.unit)
            .checked_mul(u64::from(self.targets))
            .and_then(|stripe| stripe.checked_add(column))
            .and_then(|stripe| stripe.checked_mul(self.unit))
            .and_then(|start| start.checked_add(object_offset % self.unit))
            .filter(|offset| *offset < MAX_FILE_BYTES)
            .ok_or(LayoutError::ObjectOffset { target, object_offset })
    }

    /// Bytes of the stripes of `target` in a file of `file_len` bytes; 0 for a target that is not in the list. It is the
    /// length of the object, unless the file is in place.
    pub fn object_len(&self, target: TargetIndex, file_len: u64) -> u64 {
        let Some(column) = self.column(target) else { return 0 };
        let whole = file_len / self.unit;
        let rows = whole / u64::from(self.targets);
        let last = whole % u64::from(self.targets);
        rows * self.unit
            + match column.cmp(&last) {
                std::cmp::Ordering::Less => self.unit,
                std::cmp::Ordering::Equal => file_len % self.unit,
                std::cmp::Ordering::Greater => 0,
            }
    }

    /// Which stripe of each row of `targets` stripes lies on this target.
    fn column(&self, target: TargetIndex) -> Option<u64> {
        let (target, targets) = (u64::from(target), u64::from(self.targets));
        (target < targets).then(|| (target + targets - u64::from(self.first)) % targets)
    }

    /// The first run on `target` that ends after byte `from`, uncut. On one target everything is one run.
    pub(crate) fn run_from(&self, target: TargetIndex, from: u64) -> Option<Range<u64>> {
        let column = self.column(target)?;
        if self.targets == 1 {
            return (from < MAX_FILE_BYTES).then_some(0..MAX_FILE_BYTES);
        }
        let targets = u64::from(self.targets);
        let stripe = from / self.unit;
        let ahead = (column + targets - stripe % targets) % targets;
        let start = stripe.checked_add(ahead)?.checked_mul(self.unit).filter(|s| *s < MAX_FILE_BYTES)?;
        Some(start..self.stripe_end(start))
    }

    /// End of the stripe that holds byte `offset`, cut at the longest file.
    pub(crate) fn stripe_end(&self, offset: u64) -> u64 {
        (offset - offset % self.unit).saturating_add(self.unit).min(MAX_FILE_BYTES)
    }

    /// Bytes after which the dealing starts over; none if no file is that long.
    pub(crate) fn cycle(&self) -> Option<u64> {
        self.unit.checked_mul(u64::from(self.targets)).filter(|cycle| *cycle <= MAX_FILE_BYTES)
    }

    /// Where in a cycle the bytes of `target` lie; only where there is a cycle.
    pub(crate) fn bytes_in_cycle(&self, target: TargetIndex) -> Option<Range<u64>> {
        self.cycle()?;
        let start = self.column(target)? * self.unit;
        Some(start..start + self.unit)
    }
}
