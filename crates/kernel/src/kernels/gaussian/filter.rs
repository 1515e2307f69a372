//! The filter over some rows: down the columns, then along the rows. Each output has one fixed order of operations.

use std::ops::Range;

use multiversion::multiversion;

use super::border::Border;
use super::plane::Plane;
use super::weights::Weights;

/// Output rows that are filtered together, and elements of them at a time, so that their input stays in the first-level
/// cache.
pub(crate) const ROWS: usize = 16;
const COLUMNS: usize = 128;

/// Elements that are computed together. Loops go through whole groups of this size. Elements after the end of a row are
/// computed, too, but not used.
pub(crate) const WIDE: usize = 32;

/// Elements of a row that are filtered along the row and emitted together.
const PIECE: usize = 512;

/// The filter of one image, with its buffers.
pub(crate) struct Filter {
    height: i64,
    width: usize,
    channels: usize,
    down: Weights,
    along: Weights,
    border: Border,
    /// Source rows of the continued image in f64. Row n is in slot n modulo the number of slots.
    sources: Plane,
    /// Rows that are in `sources`: `loaded.0..loaded.1`. The next output rows use them again.
    loaded: (i64, i64),
    /// Rows that were filtered down the columns and then continued on both sides.
    padded: Plane,
    out: [f64; PIECE],
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
        let elements = width * channels;
        let sources = Plane::new(slots(&down), elements);
        let whole = elements.next_multiple_of(WIDE) + 2 * along.radius() * channels;
        let padded = Plane::new(ROWS, whole);
        Filter {
            height,
            width,
            channels,
            down,
            along,
            border,
            sources,
            loaded: (0, 0),
            padded,
            out: [0.0; PIECE],
        }
    }

    /// Filters rows `first..end`. `read` reads a row of the image in f64. `emit` takes the output, piece by piece, in
    /// order.
    pub fn filter_rows(
        &mut self,
        first: i64,
        end: i64,
        mut read: impl FnMut(i64, &mut [f64]),
        mut emit: impl FnMut(&[f64]),
    ) {
        let radius = self.down.radius() as i64;
        let elements = self.width * self.channels;
        let margin = self.along.radius() * self.channels;
        let slots = slots(&self.down) as i64;
        if !(self.loaded.0..=self.loaded.1).contains(&(first - radius)) {
            self.loaded = (first - radius, first - radius);
        }
        for from in (first..end).step_by(ROWS) {
            let count = (end - from).min(ROWS as i64);
            let (low, high) = (from - radius, from + count + radius);
            for next in self.loaded.1..high {
                let row = &mut self.sources.row_mut(next.rem_euclid(slots) as usize)[..elements];
                match self.border.place(next, self.height) {
                    Some(at) => read(at, row),
                    None => row.fill(self.border.constant()),
                }
            }
            self.loaded = (low, high);
            let sources: Vec<&[[f64; WIDE]]> =
                (low..high).map(|n| self.sources.row(n.rem_euclid(slots) as usize).as_chunks().0).collect();
            let chunks = elements.div_ceil(WIDE);
            for start in (0..chunks).step_by(COLUMNS / WIDE) {
                let columns = start..(start + COLUMNS / WIDE).min(chunks);
                for n in 0..count as usize {
                    let out = &mut self.padded.row_mut(n)[margin + start * WIDE..];
                    down(&sources[n..=n + 2 * radius as usize], columns.clone(), &self.down.0, out);
                }
            }
            for n in 0..count as usize {
                let row = self.padded.row_mut(n);
                pad(row, self.width, self.channels, self.along.radius(), self.border);
                for piece in (0..elements).step_by(PIECE) {
                    let made = PIECE.min(elements - piece);
                    let out = &mut self.out[..made.next_multiple_of(WIDE)];
                    along(&row[piece..], self.channels, &self.along.0, out);
                    emit(&out[..made]);
                }
            }
        }
    }
}

/// Number of source rows that are needed at once.
fn slots(down: &Weights) -> usize {
    ROWS + 2 * down.radius()
}

/// Continues a row, which lies in the middle of its buffer, on both sides.
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

/// Weighted sums over 2r + 1 places. The middle place times its weight comes first. Then, for each distance from the
/// largest to 1, the sum of both places times their weight is added. This is the order of SciPy's `correlate1d` for
/// symmetric weights.
#[inline(always)]
fn weigh<'a>(places: impl Fn(usize) -> &'a [f64; WIDE], weights: &[f64]) -> [f64; WIDE] {
    let radius = weights.len() - 1;
    let mut sums = [0.0; WIDE];
    for (sum, x) in sums.iter_mut().zip(places(radius)) {
        *sum = x * weights[0];
    }
    for distance in (1..=radius).rev() {
        let (a, b, weight) = (places(radius - distance), places(radius + distance), weights[distance]);
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += (a + b) * weight;
        }
    }
    sums
}

/// Computes the chunks `columns` of one row. Each of `rows` is one place of the filter.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx", "x86_64+sse4.2"))]
fn down(rows: &[&[[f64; WIDE]]], columns: Range<usize>, weights: &[f64], out: &mut [f64]) {
    for (out, column) in out.as_chunks_mut().0.iter_mut().zip(columns) {
        *out = weigh(|n| &rows[n][column], weights);
    }
}

/// Computes `out`, whose length is a multiple of [`WIDE`], from a row whose places are `step` elements apart.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx", "x86_64+sse4.2"))]
fn along(row: &[f64], step: usize, weights: &[f64], out: &mut [f64]) {
    for (chunk, out) in out.as_chunks_mut::<WIDE>().0.iter_mut().enumerate() {
        // A row is long enough for its last chunk.
        let places = |n: usize| row[chunk * WIDE + n * step..].first_chunk().unwrap_or(&[0.0; WIDE]);
        *out = weigh(places, weights);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Computes one value after the other, in the order of the definition.
    fn naive(filter: &Filter, image: &[f64]) -> Vec<f64> {
        let (width, channels) = (filter.width, filter.channels);
        let weighed = |Weights(weights): &Weights, at: &dyn Fn(i64) -> f64| {
            let far = |d: usize| at(-(d as i64)) + at(d as i64);
            (1..weights.len()).rev().fold(at(0) * weights[0], |sum, d| sum + far(d) * weights[d])
        };
        let constant = filter.border.constant();
        let pass = |image: &[f64], weights: &Weights, n: usize, step: usize| -> Vec<f64> {
            let value = |at: usize| {
                let place = (at / step % n) as i64;
                let other = |d: i64| match filter.border.place(place + d, n as i64) {
                    Some(to) => image[(at as i64 + (to - place) * step as i64) as usize],
                    None => constant,
                };
                weighed(weights, &other)
            };
            (0..image.len()).map(value).collect()
        };
        let down = pass(image, &filter.down, filter.height as usize, width * channels);
        pass(&down, &filter.along, width, channels)
    }

    fn borders() -> impl Strategy<Value = Border> {
        let all = [Border::Reflect, Border::Mirror, Border::Nearest, Border::Wrap, Border::Constant(7.5)];
        prop::sample::select(all.to_vec())
    }

    proptest! {
        /// The bits are those of the definition, for any rows that were filtered before in any order.
        #[test]
        fn rows_equal_the_naive_filter(
            height in 1usize..60, width in 1usize..90, channels in 1usize..4, down in 0usize..9, along in 0usize..9,
            border in borders(), asked in prop::collection::vec((0usize..60, 1usize..40), 1..5), seed: u64,
        ) {
            let weights = |radius| Weights::gaussian(1.7, radius);
            let mut filter =
                Filter::new(height as i64, width, channels, weights(down), weights(along), border);
            let row = width * channels;
            let mut rng = fastrand::Rng::with_seed(seed);
            let image: Vec<f64> = (0..height * row).map(|_| rng.f64() * 100.0).collect();
            let wanted = naive(&filter, &image);
            for (first, count) in asked {
                let (first, end) = (first.min(height - 1), (first + count).min(height));
                let mut made = Vec::new();
                let read = |at: i64, out: &mut [f64]| out.copy_from_slice(&image[at as usize * row..][..row]);
                filter.filter_rows(first as i64, end as i64, read, |piece| made.extend_from_slice(piece));
                prop_assert_eq!(&made, &wanted[first * row..end * row]);
            }
        }

        /// The rows are longer than one piece, and than the columns that are filtered together.
        #[test]
        fn long_rows_equal_the_naive_filter(width in 400usize..1300, channels in 1usize..3, seed: u64) {
            let weights = Weights::gaussian(2.0, 8);
            let mut filter = Filter::new(3, width, channels, weights.clone(), weights, Border::Reflect);
            let row = width * channels;
            let mut rng = fastrand::Rng::with_seed(seed);
            let image: Vec<f64> = (0..3 * row).map(|_| rng.f64()).collect();
            let mut made = Vec::new();
            let read = |at: i64, out: &mut [f64]| out.copy_from_slice(&image[at as usize * row..][..row]);
            filter.filter_rows(0, 3, read, |piece| made.extend_from_slice(piece));
            prop_assert_eq!(made, naive(&filter, &image));
        }
    }
}
