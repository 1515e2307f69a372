//! The selection of a request: a hyperslab with steps.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::ArrayError;
use crate::grid::{Grid, MAX_AXES};

/// Longest text of a selection, in bytes.
const MAX_TEXT: usize = 4096;

/// The selection along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Take {
    /// One element, negative from the end. The axis is dropped from the answer.
    At(i64),
    /// Elements as a Python slice takes them, clipped to the axis. Negative ends count from the end.
    Slice {
        /// The first element; `None` is the first of the axis.
        start: Option<i64>,
        /// The end, not included; `None` is the end of the axis.
        stop: Option<i64>,
        /// Distance between elements, at least 1.
        step: u64,
    },
}

impl Take {
    /// The whole axis.
    pub const ALL: Take = Take::Slice { start: None, stop: None, step: 1 };
}

/// The selection along each axis. Further axes are taken whole.
///
/// ```
/// use gristmill_array::{Grid, Selection};
///
/// let selection: Selection = "2:10:2,:,-1".parse()?;
/// let grid = Grid::whole(vec![7, 3, 4])?;
/// let resolved = selection.resolve(&grid)?;
/// assert_eq!(resolved.shape(), [3, 3]); // elements 2, 4 and 6; all; the last, whose axis is dropped
/// # Ok::<(), gristmill_array::ArrayError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection(pub Vec<Take>);

impl FromStr for Selection {
    type Err = ArrayError;

    /// Reads `start:stop:step` or a number for each axis, with commas between. An empty text is the whole array.
    fn from_str(text: &str) -> Result<Selection, ArrayError> {
        let wrong = |text: &str, why: &str| ArrayError::Selection { text: text.into(), why: why.into() };
        if text.len() > MAX_TEXT {
            return Err(wrong(&text[..text.floor_char_boundary(40)], "it is too long"));
        }
        if text.trim().is_empty() {
            return Ok(Selection::default());
        }
        let takes = text.split(',').map(str::trim).map(|part| {
            let number =
                |text: &str| text.trim().parse::<i64>().map_err(|_| wrong(part, "it is not a number"));
            let end = |text: &str| if text.trim().is_empty() { Ok(None) } else { number(text).map(Some) };
            let pieces: Vec<&str> = part.split(':').collect();
            match pieces[..] {
                [at] => Ok(Take::At(number(at)?)),
                [start, stop] => Ok(Take::Slice { start: end(start)?, stop: end(stop)?, step: 1 }),
                [start, stop, step] => {
                    let step = end(step)?.unwrap_or(1);
                    let step = u64::try_from(step).ok().filter(|step| *step > 0);
                    let step = step.ok_or_else(|| wrong(part, "a step must be at least 1"))?;
                    Ok(Take::Slice { start: end(start)?, stop: end(stop)?, step })
                }
                _ => Err(wrong(part, "it has more than three parts")),
            }
        });
        Ok(Selection(takes.collect::<Result<_, _>>()?))
    }
}

impl Selection {
    /// Resolves the selection in an array.
    ///
    /// # Errors
    /// Returns [`ArrayError::Selection`] if there are more parts than axes, more than [`MAX_AXES`] axes, or a step of
    /// 0, and [`ArrayError::Index`] if an index is out of range.
    pub fn resolve(&self, grid: &Grid) -> Result<Selected, ArrayError> {
        let axes = grid.shape().len();
        if self.0.len() > axes || axes > MAX_AXES {
            let why = format!("it has {} parts and the array {axes} axes", self.0.len());
            return Err(ArrayError::Selection { text: String::new(), why });
        }
        let takes = self.0.iter().copied().chain(std::iter::repeat(Take::ALL));
        let ranges = takes.zip(grid.shape()).enumerate().map(|(axis, (take, length))| {
            let length = *length;
            let from_end =
                |index: i64| if index < 0 { i128::from(index) + i128::from(length) } else { index.into() };
            match take {
                Take::At(index) => {
                    let at = u64::try_from(from_end(index)).ok().filter(|at| *at < length);
                    let first = at.ok_or(ArrayError::Index { index, axis, length })?;
                    Ok(Range { first, count: 1, step: 1, dropped: true })
                }
                Take::Slice { start, stop, step } => {
                    if step == 0 {
                        let why = "a step must be at least 1".into();
                        return Err(ArrayError::Selection { text: String::new(), why });
                    }
                    let inside = |at: i128| at.clamp(0, length.into()) as u64;
                    let first = start.map_or(0, |start| inside(from_end(start)));
                    let stop = stop.map_or(length, |stop| inside(from_end(stop)));
                    let count = stop.saturating_sub(first).div_ceil(step);
                    Ok(Range { first, count, step, dropped: false })
                }
            }
        });
        Ok(Selected { axes: ranges.collect::<Result<_, _>>()? })
    }
}

/// Elements of one axis: `first`, `first + step`, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first element.
    pub first: u64,
    /// Number of elements.
    pub count: u64,
    /// Distance between elements.
    pub step: u64,
    /// Whether the answer lacks the axis because the selection gave it a single index.
    pub dropped: bool,
}

impl Range {
    /// Returns the selected elements in `origin..origin + length` as three numbers: the number of the first one in the
    /// selection, its distance from `origin`, and the count.
    pub fn within(&self, origin: u64, length: u64) -> (u64, u64, u64) {
        let skipped = origin.saturating_sub(self.first).div_ceil(self.step).min(self.count);
        let begin = self.first.saturating_add(skipped.saturating_mul(self.step));
        let end = origin.saturating_add(length);
        let count = end.saturating_sub(begin).div_ceil(self.step).min(self.count - skipped);
        (skipped, begin.saturating_sub(origin), count)
    }

    /// Number of chunks along the axis that hold a selected element.
    fn touched(&self, chunk: u64) -> u64 {
        match self.ends() {
            Some((first, last)) if self.step <= chunk => last / chunk - first / chunk + 1,
            _ => self.count,
        }
    }

    /// Index, among the chunks of the axis, of the `number`th chunk that holds a selected element.
    fn place(&self, number: u64, chunk: u64) -> u64 {
        if self.step <= chunk {
            self.first / chunk + number
        } else {
            (self.first + number * self.step) / chunk
        }
    }

    /// The first and the last element, or `None` if there are no elements.
    fn ends(&self) -> Option<(u64, u64)> {
        (self.count > 0).then(|| (self.first, self.first + (self.count - 1) * self.step))
    }
}

/// A selection that is resolved in an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// The selected elements of each axis of the array.
    pub axes: Vec<Range>,
}

impl Selected {
    /// Shape of the selection without dropped axes.
    pub fn shape(&self) -> Vec<u64> {
        self.axes.iter().filter(|range| !range.dropped).map(|range| range.count).collect()
    }

    /// Number of selected elements.
    pub fn elements(&self) -> u64 {
        self.axes.iter().map(|range| range.count).product()
    }

    /// Numbers of the chunks that hold a selected element, ascending.
    pub fn chunks<'a>(&'a self, grid: &'a Grid) -> impl Iterator<Item = u64> + 'a {
        let counts: Vec<u64> =
            self.axes.iter().zip(grid.chunk()).map(|(range, chunk)| range.touched(*chunk)).collect();
        // At most as many as selected elements, so the product fits.
        let all: u64 = counts.iter().product();
        (0..all).map(move |mut rest| {
            let mut place = vec![0; counts.len()];
            for (axis, count) in counts.iter().enumerate().rev() {
                place[axis] = self.axes[axis].place(rest % count, grid.chunk()[axis]);
                rest /= count;
            }
            grid.number(&place)
        })
    }

    /// Returns the first and the last chunk along each axis that may hold a selected element, or `None` if nothing is
    /// selected.
    pub fn places(&self, grid: &Grid) -> Option<Vec<(u64, u64)>> {
        let of =
            |(range, chunk): (&Range, &u64)| range.ends().map(|(first, last)| (first / chunk, last / chunk));
        self.axes.iter().zip(grid.chunk()).map(of).collect()
    }
}
