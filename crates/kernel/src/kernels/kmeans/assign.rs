//! The pass of an iteration: each point goes to its nearest centre, and the points of each centre are added up.

use super::NAME;
use super::cells::Cells;
use super::nearest::Centres;
use super::points::Points;
use crate::state::{StateReader, StateWriter};
use crate::{Block, Fold, KernelError, Position, Sink, Step};

/// What was added up.
#[derive(Clone, Debug)]
pub(crate) struct Totals {
    /// Points of each centre.
    pub counts: Vec<u64>,
    /// Sums of coordinates, centre by centre.
    pub sums: Cells,
    /// The sum of squared distances, one cell.
    pub inertia: Cells,
    /// Points whose centre is another than before.
    pub changed: u64,
}

impl Totals {
    /// Nothing, for values up to 2^exponent.
    pub fn new(k: usize, dims: usize, exponent: i32) -> Totals {
        // A squared distance is at most dims (2 x 2^e)^2.
        let squares = 2 * exponent + 2 + dims.next_power_of_two().trailing_zeros() as i32;
        let squares = squares.clamp(*super::cells::EXPONENTS.start(), *super::cells::EXPONENTS.end());
        Totals {
            counts: vec![0; k],
            sums: Cells::new(exponent, k, dims),
            inertia: Cells::new(squares, 1, 1),
            changed: 0,
        }
    }

    /// Points of all centres.
    pub fn points(&self) -> u64 {
        self.counts.iter().fold(0, |sum, n| sum.saturating_add(*n))
    }

    pub fn save(&self, out: &mut Vec<u8>) {
        self.counts.iter().for_each(|n| out.put_u64(*n));
        self.sums.save(out);
        self.inertia.save(out);
        out.put_u64(self.changed);
    }

    pub fn merge(&mut self, state: &[u8]) -> Result<(), KernelError> {
        let mut read = StateReader::new(NAME, state);
        for count in &mut self.counts {
            *count = count.saturating_add(read.u64()?);
        }
        self.sums.merge(&mut read)?;
        self.inertia.merge(&mut read)?;
        self.changed = self.changed.saturating_add(read.u64()?);
        read.end()
    }
}

/// The fold.
pub(crate) struct Assign {
    points: Points,
    centres: Centres,
    /// The centres before, where points that changed are counted.
    before: Option<Centres>,
    totals: Totals,
    /// Each point's centre is emitted, as i32.
    emits: bool,
    number: Vec<u32>,
    distance: Vec<f64>,
    old: Vec<u32>,
    labels: Vec<u8>,
}

impl Assign {
    pub fn new(
        points: Points,
        centres: Centres,
        before: Option<Centres>,
        totals: Totals,
        emits: bool,
    ) -> Assign {
        let (number, distance, old, labels) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Assign { points, centres, before, totals, emits, number, distance, old, labels }
    }

    /// Adds up a block's points.
    fn add(&mut self, block: &Block<'_>) -> Result<(), KernelError> {
        self.labels.clear();
        self.points.each_tile(block, |_, tile| {
            self.centres.nearest(tile, &mut self.number, &mut self.distance);
            if let Some(before) = &mut self.before {
                before.nearest(tile, &mut self.old, &mut Vec::new());
                let moved = self.old.iter().zip(&self.number).filter(|(old, new)| old != new);
                self.totals.changed += moved.count() as u64;
            }
            self.number.iter().for_each(|number| self.totals.counts[*number as usize] += 1);
            self.totals.sums.add(&self.number, tile);
            self.totals.inertia.add_to_first(&self.distance);
            self.totals.sums.added(self.number.len() as u32);
            self.totals.inertia.added(self.number.len() as u32);
            if self.emits {
                self.number.iter().for_each(|n| self.labels.extend_from_slice(&n.to_le_bytes()));
            }
            Ok(())
        })
    }
}

impl Fold for Assign {
    fn update(&mut self, block: &Block<'_>, sink: &mut dyn Sink) -> Result<Step, KernelError> {
        if !self.emits {
            self.add(block)?;
            return Ok(Step::Took(block.count()));
        }
        // The labels are known before it is known whether the sink takes them, so what they add up to is kept apart.
        let totals = self.totals.clone();
        self.add(block)?;
        if sink.put(Position::of(block.first()), &self.labels).is_err() {
            self.totals = totals;
            return Ok(Step::Full(0));
        }
        Ok(Step::Took(block.count()))
    }

    fn save(&self, out: &mut Vec<u8>) {
        self.totals.save(out);
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        self.totals.merge(later)
    }
}
