//! The pass of an iteration. It assigns each point to its nearest centre and adds up the points of each centre.

use super::NAME;
use super::cells::Cells;
use super::nearest::Centres;
use super::point_reader::PointReader;
use crate::state::{StateReader, StateWriter};
use crate::{Block, Fold, KernelError, Position, Sink, Step};

/// The totals of an iteration.
#[derive(Clone, Debug)]
pub(crate) struct ClusterTotals {
    /// Number of points of each centre.
    pub counts: Vec<u64>,
    /// Sums of coordinates, centre by centre.
    pub sums: Cells,
    /// The sum of squared distances, one cell.
    pub inertia: Cells,
    /// Number of points whose centre changed.
    pub changed: u64,
}

impl ClusterTotals {
    /// Totals of no points, for values up to 2^exponent.
    pub fn new(k: usize, dims: usize, exponent: i32) -> ClusterTotals {
        // A squared distance is at most dims (2 x 2^e)^2.
        let squares = 2 * exponent + 2 + dims.next_power_of_two().trailing_zeros() as i32;
        let squares = squares.clamp(*super::cells::EXPONENTS.start(), *super::cells::EXPONENTS.end());
        ClusterTotals {
            counts: vec![0; k],
            sums: Cells::new(exponent, k, dims),
            inertia: Cells::new(squares, 1, 1),
            changed: 0,
        }
    }

    /// Number of all points.
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

/// The fold of an iteration.
pub(crate) struct AssignFold {
    points: PointReader,
    centres: Centres,
    /// The previous centres, if points that changed are counted.
    previous: Option<Centres>,
    totals: ClusterTotals,
    /// Whether the number of each point's centre is emitted, as i32.
    emits: bool,
    number: Vec<u32>,
    distance: Vec<f64>,
    old: Vec<u32>,
    labels: Vec<u8>,
}

impl AssignFold {
    pub fn new(
        points: PointReader,
        centres: Centres,
        previous: Option<Centres>,
        totals: ClusterTotals,
        emits: bool,
    ) -> AssignFold {
        let (number, distance, old, labels) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        AssignFold { points, centres, previous, totals, emits, number, distance, old, labels }
    }

    /// Adds up the points of a block.
    fn add(&mut self, block: &Block<'_>) -> Result<(), KernelError> {
        self.labels.clear();
        self.points.each_tile(block, |_, tile| {
            self.centres.nearest(tile, &mut self.number, &mut self.distance);
            if let Some(previous) = &mut self.previous {
                previous.nearest(tile, &mut self.old, &mut Vec::new());
                let moved = self.old.iter().zip(&self.number).filter(|(old, new)| old != new);
                self.totals.changed += moved.count() as u64;
            }
            self.number.iter().for_each(|number| self.totals.counts[*number as usize] += 1);
            self.totals.sums.add(&self.number, tile);
            self.totals.inertia.add_to_first(&self.distance);
            self.totals.sums.count_additions(self.number.len() as u32);
            self.totals.inertia.count_additions(self.number.len() as u32);
            if self.emits {
                self.number.iter().for_each(|n| self.labels.extend_from_slice(&n.to_le_bytes()));
            }
            Ok(())
        })
    }
}

impl Fold for AssignFold {
    fn update(&mut self, block: &Block<'_>, sink: &mut dyn Sink) -> Result<Step, KernelError> {
        if !self.emits {
            self.add(block)?;
            return Ok(Step::Took(block.count()));
        }
        // The sink may refuse the labels after the points were added up. Then the earlier totals are restored.
        let totals = self.totals.clone();
        self.add(block)?;
        if sink.put(Position::of_record(block.first()), &self.labels).is_err() {
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
