//! The selection along one axis: a slice, as Python reads it.

use serde::Deserialize;

/// Start, end and stride of a selection. They mean what they mean in Python: negative positions count from the end of the axis, and
/// positions outside are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Slice(pub i64, pub i64, pub i64);

/// The selected positions along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Positions {
    pub start: i64,
    pub step: i64,
    pub count: u64,
}

impl Positions {
    /// All positions of an axis.
    pub fn all(length: u64) -> Positions {
        Positions { start: 0, step: 1, count: length }
    }

    /// The position of a selected element.
    pub fn at(self, number: u64) -> u64 {
        // Selected positions are inside the axis.
        (self.start + self.step.saturating_mul(number as i64)) as u64
    }
}

impl Slice {
    /// The positions of an axis of this length, like `range(*slice(start, end, stride).indices(length))`. The stride is not 0.
    pub(crate) fn positions(self, length: u64) -> Positions {
        let Slice(start, end, step) = self;
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        let (lowest, highest) = if step > 0 { (0, length) } else { (-1, length - 1) };
        let cut = |at: i64| (if at < 0 { at.saturating_add(length) } else { at }).clamp(lowest, highest);
        let (start, end) = (cut(start), cut(end));
        let distance = if step > 0 { end - start } else { start - end };
        let count = if distance > 0 { distance.unsigned_abs().div_ceil(step.unsigned_abs()) } else { 0 };
        Positions { start, step, count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_those_of_python() {
        let positions = |start, end, step, length| {
            let all = Slice(start, end, step).positions(length);
            (0..all.count).map(|n| all.at(n)).collect::<Vec<u64>>()
        };
        assert_eq!(positions(0, 4, 1, 4), [0, 1, 2, 3]);
        assert_eq!(positions(1, 100, 2, 6), [1, 3, 5]);
        assert_eq!(positions(-3, -1, 1, 5), [2, 3]);
        assert_eq!(positions(4, 0, -2, 5), [4, 2]);
        assert_eq!(positions(9, -6, -1, 3), [2, 1, 0]);
        assert_eq!(positions(1, 0, -1, 1), [0; 0]);
        assert_eq!(positions(3, 3, 1, 5), [0; 0]);
        assert_eq!(positions(i64::MIN, i64::MAX, i64::MAX, 5), [0]);
        assert_eq!(positions(i64::MAX, i64::MIN, i64::MIN, 5), [4]);
        assert_eq!(positions(0, 1, 1, 0), [0; 0]);
    }
}
