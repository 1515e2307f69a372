//! The filter over some rows: down the columns, then along the rows, each output in one fixed order of operations.

use std::collections::VecDeque;

use multiversion::multiversion;

use super::border::Border;
use super::weights::Weights;

/// Output rows made together, and columns of them at a time, so that what they share stays in the first-level cache.
const ROWS: usize = 16;
const COLUMNS: usize = 128;

/// Elements that are added up side by side.
const WIDE: usize = 32;

/// The filter of one image, with the room it works in.
pub(crate) struct Filter {
    pub height: i64,
    pub width: usize,
    pub channels: usize,
    pub down: Weights,
    pub along: Weights,
    pub border: Border,
    /// Source rows in f64, one after the other in the image as it is continued.
    rows: VecDeque<Vec<f64>>,
    /// Rows that are behind, kept for their room.
    spare: Vec<Vec<f64>>,
    /// Rows filtered down the columns, then continued on both sides.
    middle: Vec<Vec<f64>>,
    out: Vec<f64>,
}

impl Filter {
    pub fn new(
        height: i64,
        width: usize,
        channels: usize,
        down: Weights,
        along: Weights,
        border: Border,
    ) -> Filter {
        let (rows, spare, middle, out) = (VecDeque::new(), Vec::new(), Vec::new(), Vec::new());
        Filter { height, width, channels, down, along, border, rows, spare, middle, out }
    }

    /// Makes rows `first..end`. `read` gives a row of the image in f64; `give` takes each row that was made, in order.
    pub fn rows(
        &mut self,
        first: i64,
        end: i64,
        mut read: impl FnMut(i64, &mut Vec<f64>),
        mut give: impl FnMut(&[f64]),
    ) {
        let radius = self.down.radius();
        let elements = self.width * self.channels;
        let margin = self.along.radius() * self.channels;
        self.spare.extend(self.rows.drain(..));
        let mut next = first - radius as i64;
        for from in (first..end).step_by(ROWS) {
            let count = (end - from).min(ROWS as i64) as usize;
            while self.rows.len() > 2 * radius {
                self.spare.extend(self.rows.pop_front());
            }
            while self.rows.len() < count + 2 * radius {
                let mut row = self.spare.pop().unwrap_or_default();
                row.clear();
                match self.border.place(next, self.height) {
                    Some(at) => read(at, &mut row),
                    None => row.resize(elements, self.border.constant()),
                }
                row.resize(elements, 0.0);
                self.rows.push_back(row);
                next += 1;
            }
            self.middle.resize_with(ROWS, Vec::new);
            let sources: Vec<&[f64]> = self.rows.iter().map(Vec::as_slice).collect();
            let middle = &mut self.middle[..count];
            middle.iter_mut().for_each(|row| row.resize(elements + 2 * margin, 0.0));
            for column in (0..elements).step_by(COLUMNS) {
                let width = COLUMNS.min(elements - column);
                for (n, row) in middle.iter_mut().enumerate() {
                    let out = &mut row[margin + column..][..width];
                    down(&sources[n..=n + 2 * radius], column, &self.down.0, out);
                }
            }
            for row in middle {
                pad(row, self.width, self.channels, self.along.radius(), self.border);
                self.out.resize(elements, 0.0);
                along(row, self.channels, &self.along.0, &mut self.out);
                give(&self.out);
            }
        }
    }
}

/// Continues a row that lies in the middle on both sides.
fn pad(row: &mut [f64], width: usize, channels: usize, radius: usize, border: Border) {
    for beyond in (0..radius).chain(radius + width..2 * radius + width) {
        let place = border.place(beyond as i64 - radius as i64, width as i64);
        for channel in 0..channels {
            let value =
                place.map_or(border.constant(), |at| row[(at as usize + radius) * channels + channel]);
            row[beyond * channels + channel] = value;
        }
    }
}

/// The middle of 2r + 1 places times its weight, plus for each distance, the largest first, both places at that
/// distance times its weight: the order of SciPy's `correlate1d` for symmetric weights.
#[inline(always)]
fn weigh<'a, const N: usize>(
    places: impl Fn(usize) -> Option<&'a [f64; N]>,
    weights: &[f64],
) -> Option<[f64; N]> {
    let radius = weights.len() - 1;
    let mut sums = [0.0; N];
    for (sum, x) in sums.iter_mut().zip(places(radius)?) {
        *sum = x * weights[0];
    }
    for distance in (1..=radius).rev() {
        let (a, b, weight) = (places(radius - distance)?, places(radius + distance)?, weights[distance]);
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += (a + b) * weight;
        }
    }
    Some(sums)
}

#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx", "x86_64+sse4.2"))]
fn down(rows: &[&[f64]], column: usize, weights: &[f64], out: &mut [f64]) {
    let mut at = column;
    let mut chunks = out.chunks_exact_mut(WIDE);
    for chunk in &mut chunks {
        if let Some(sums) = weigh::<WIDE>(|n| rows[n][at..].first_chunk(), weights) {
            chunk.copy_from_slice(&sums);
        }
        at += WIDE;
    }
    for (n, x) in chunks.into_remainder().iter_mut().enumerate() {
        *x = weigh::<1>(|row| rows[row][at + n..].first_chunk(), weights).map_or(0.0, |[sum]| sum);
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx", "x86_64+sse4.2"))]
fn along(row: &[f64], step: usize, weights: &[f64], out: &mut [f64]) {
    let mut at = 0;
    let mut chunks = out.chunks_exact_mut(WIDE);
    for chunk in &mut chunks {
        if let Some(sums) = weigh::<WIDE>(|n| row[at + n * step..].first_chunk(), weights) {
            chunk.copy_from_slice(&sums);
        }
        at += WIDE;
    }
    for (n, x) in chunks.into_remainder().iter_mut().enumerate() {
        *x = weigh::<1>(|place| row[at + n + place * step..].first_chunk(), weights).map_or(0.0, |[sum]| sum);
    }
}
