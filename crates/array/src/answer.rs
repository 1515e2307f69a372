//! From cells to arrays.

use gristmill_kernel::{Array, KernelError, Value};

use crate::axes::cells;
use crate::fold::{Tiles, WantedByTile};
use crate::plan::Plan;
use crate::totals::{AnswerArray, Extra, Rule, Wanted};

impl Plan {
    /// Returns a map of the operation's arrays and `axes`, which names the selection's axis for each axis of the
    /// answer.
    pub(crate) fn answer(&self, rule: &Rule, tiles: &Tiles) -> Result<Value, KernelError> {
        self.scattered(rule, tiles.keys().copied(), |part, tile, at, out| {
            match tile.and_then(|tile| tiles.get(&tile)) {
                Some(totals) => totals.answer(part, at, out),
                None => rule.totals(1, None).answer(part, 0, out),
            }
        })
    }

    /// Does as [`Plan::answer`] for quantiles.
    pub(crate) fn quantiles(&self, rule: &Rule, wanted_tiles: &WantedByTile) -> Result<Value, KernelError> {
        let nothing = Wanted::default();
        self.scattered(rule, wanted_tiles.keys().copied(), |_, tile, at, out| {
            tile.and_then(|tile| wanted_tiles.get(&tile)).unwrap_or(&nothing).answer(rule, at, out);
            Ok(())
        })
    }

    /// Puts the cells of tiles in their places. Every other place gets the answer of a cell without elements.
    fn scattered(
        &self,
        rule: &Rule,
        tiles: impl Iterator<Item = u64> + Clone,
        answer: impl Fn(usize, Option<u64>, usize, &mut Vec<u8>) -> Result<(), KernelError>,
    ) -> Result<Value, KernelError> {
        let total = self.axes.cells().unwrap_or(0) as usize;
        let (shape, axes) = self.axes.shape(self.keepdims);
        let mut entries = Vec::new();
        let lengths = self.axes.lengths();
        for (number, part) in rule.arrays().into_iter().enumerate() {
            let bytes = part.dtype.size() * part.extra.width();
            let mut data = vec![0u8; total * bytes];
            let mut done = vec![false; total];
            let mut cell = Vec::with_capacity(bytes);
            for tile in tiles.clone() {
                let spans = self.axes.spans(&self.grid, &self.selected, tile);
                let mut place: Vec<u64> = spans.iter().map(|span| span.start).collect();
                for at in 0..cells(&spans) {
                    let to = place.iter().zip(lengths).fold(0, |to, (i, n)| to * n + i) as usize;
                    cell.clear();
                    answer(number, Some(tile), at, &mut cell)?;
                    data[to * bytes..(to + 1) * bytes].copy_from_slice(&cell);
                    done[to] = true;
                    for axis in (0..place.len()).rev() {
                        place[axis] += 1;
                        if place[axis] < spans[axis].end {
                            break;
                        }
                        place[axis] = spans[axis].start;
                    }
                }
            }
            if done.contains(&false) {
                cell.clear();
                answer(number, None, 0, &mut cell)?;
                for (to, _) in done.iter().enumerate().filter(|(_, done)| !**done) {
                    data[to * bytes..(to + 1) * bytes].copy_from_slice(&cell);
                }
            }
            entries.push((part.name, Value::Array(shaped(&part, &shape, data))));
        }
        entries.push(("axes", Value::List(axes.into_iter().map(Value::from).collect())));
        Ok(Value::Map(entries))
    }
}

/// Moves the axis that the operation adds, which lies inside the cells, to its place in the array.
fn shaped(part: &AnswerArray, shape: &[u64], data: Vec<u8>) -> Array {
    let mut shape = shape.to_vec();
    let data = match part.extra {
        Extra::None => data,
        Extra::Last(width) => {
            shape.push(width as u64);
            data
        }
        Extra::First(width) => {
            shape.insert(0, width as u64);
            let size = part.dtype.size();
            let mut turned = Vec::with_capacity(data.len());
            for q in 0..width {
                for cell in data.chunks_exact(width * size) {
                    turned.extend_from_slice(&cell[q * size..(q + 1) * size]);
                }
            }
            turned
        }
    };
    Array { dtype: part.dtype, shape, data }
}
