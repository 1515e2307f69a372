//! The fold over chunks.

use std::collections::BTreeMap;
use std::sync::Arc;

use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::{Block, Fold, KernelError, Sink, Step, Summary};

use crate::axes::cells;
use crate::measure::{Measure, SumKinds};
use crate::plan::Plan;
use crate::reduction::{NAME, Op};
use crate::rows::{Scratch, Walk};
use crate::settle::SingleCell;
use crate::statistics::ChunkStatistics;
use crate::statistics_plan::StatisticsPlan;
use crate::totals::{Row, Rule, Totals, Wanted, domain};

/// The cells of each tile that got an element, by the number of the tile.
pub(crate) type Tiles = BTreeMap<u64, Box<dyn Totals>>;

/// The wanted elements of each tile that the previous pass found, by the number of the tile.
pub(crate) type WantedByTile = BTreeMap<u64, Wanted>;

pub(crate) struct ArrayFold {
    pub(crate) plan: Arc<Plan>,
    pub(crate) rule: Rule,
    pub(crate) wanted_tiles: Arc<WantedByTile>,
    pub(crate) tiles: Tiles,
    scratch: Scratch,
    /// The statistics of the chunk that was folded last.
    learnt: Option<Vec<u8>>,
}

impl ArrayFold {
    pub(crate) fn new(plan: Arc<Plan>, rule: Rule, wanted_tiles: Arc<WantedByTile>) -> ArrayFold {
        ArrayFold { plan, rule, wanted_tiles, tiles: Tiles::new(), scratch: Scratch::new(), learnt: None }
    }

    fn chunk(
        &mut self,
        number: u64,
        data: &[u8],
        mut measure: Option<&mut Measure>,
    ) -> Result<(), KernelError> {
        let plan = self.plan.clone();
        for piece in plan.pieces(number) {
            // In a later pass a tile without an entry has no wanted element.
            let wanted = self.wanted_tiles.get(&piece.tile);
            if self.rule.round > 0 && wanted.is_none() {
                continue;
            }
            let rule = &self.rule;
            let totals = self.tiles.entry(piece.tile).or_insert_with(|| rule.totals(piece.cells, wanted));
            let (totals, scratch) = (&mut **totals, &mut self.scratch);
            let measure = measure.as_deref_mut();
            Walk { plan: &plan, data, piece: &piece, totals, scratch, measure }.run()?;
        }
        Ok(())
    }

    /// Adds the statistics of a chunk to its cell.
    fn take(&mut self, single_cell: SingleCell, column: &ChunkStatistics) -> Result<(), KernelError> {
        let rule = &self.rule;
        let totals =
            self.tiles.entry(single_cell.tile).or_insert_with(|| rule.totals(single_cell.cells, None));
        totals.take(single_cell.cell, column)
    }

    /// Measures a chunk of which the cell needs only the statistics. Each element is read once.
    fn measured(
        &mut self,
        number: u64,
        data: &[u8],
        mut measure: Measure,
        single_cell: SingleCell,
    ) -> Result<ChunkStatistics, KernelError> {
        let plan = self.plan.clone();
        for piece in plan.pieces(number) {
            let (totals, scratch) = (&mut NoTotals, &mut self.scratch);
            let measure = Some(&mut measure);
            Walk { plan: &plan, data, piece: &piece, totals, scratch, measure }.run()?;
        }
        let statistics = measure.statistics();
        self.take(single_cell, &statistics)?;
        Ok(statistics)
    }

    /// Folds a chunk without keeping statistics. Where all elements go to one cell, their range is found at once, which
    /// is faster.
    fn plain(&mut self, number: u64, data: &[u8]) -> Result<(), KernelError> {
        let ranged = matches!(self.rule.op, Op::Min | Op::Max) && self.plan.expr.is_none();
        match if ranged { self.plan.single_cell(number) } else { None } {
            Some(single_cell) => {
                let measure = Measure::new(self.plan.meaning.decoded(), SumKinds::default());
                self.measured(number, data, measure, single_cell).map(drop)
            }
            None => self.chunk(number, data, None),
        }
    }

    /// Folds a chunk and makes the statistics that are worth keeping.
    fn learn(
        &mut self,
        number: u64,
        data: &[u8],
        known: Option<&[u8]>,
        thorough: bool,
    ) -> Result<(), KernelError> {
        let plan = self.plan.clone();
        if !plan.reads_only_lead() {
            return self.plain(number, data);
        }
        let known = known.and_then(|bytes| plan.statistics(number, bytes));
        let Some(statistics_plan) =
            StatisticsPlan::choose(&plan, &self.rule, number, known.as_ref(), thorough)
        else {
            return self.plain(number, data);
        };
        let mut measure = Measure::new(plan.meaning.decoded(), statistics_plan.sums);
        let statistics = match statistics_plan.single_cell {
            None => {
                self.chunk(number, data, Some(&mut measure))?;
                measure.statistics()
            }
            Some(single_cell) => self.measured(number, data, measure, single_cell)?,
        };
        let statistics = match known {
            Some(known) => statistics.join(known),
            None => statistics,
        };
        self.learnt = Some(statistics.encode());
        Ok(())
    }
}

impl Fold for ArrayFold {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        self.learnt = None;
        if let Summary::Substitute(bytes) = block.summary() {
            let number = block.first();
            let settled = self.plan.settle(number, bytes).filter(|_| block.count() == 1);
            let (single_cell, column) = settled.ok_or_else(|| {
                domain(format!("the statistics of chunk {number} are not enough; please report it"))
            })?;
            self.take(single_cell, &column)?;
            return Ok(Step::Took(1));
        }
        let mut rest = block.data();
        for number in block.first()..block.end() {
            let bytes = self.plan.chunk_bytes(number)?;
            let Some((data, after)) = rest.split_at_checked(bytes) else {
                return Err(domain(format!("chunk {number} has {} bytes instead of {bytes}", rest.len())));
            };
            match block.summary() {
                Summary::Requested { known, thorough } => self.learn(number, data, known, thorough)?,
                _ => self.plain(number, data)?,
            }
            rest = after;
        }
        if !rest.is_empty() {
            let last = block.end().saturating_sub(1);
            return Err(domain(format!("chunk {last} has {} bytes too many", rest.len())));
        }
        Ok(Step::Took(block.count()))
    }

    fn summary(&mut self) -> Option<Vec<u8>> {
        self.learnt.take()
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.tiles.len() as u64);
        let mut state = Vec::new();
        for (number, totals) in &self.tiles {
            state.clear();
            totals.save(&mut state);
            out.put_u64(*number);
            out.put_blob(&state);
        }
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        let mut read = StateReader::new(NAME, later);
        let mut before = None;
        for _ in 0..read.u64()? {
            let number = read.u64()?;
            if number >= self.plan.axes.tiles() || before.is_some_and(|before| before >= number) {
                return Err(read.bad("a tile that is not in its place"));
            }
            before = Some(number);
            let mut state = StateReader::new(NAME, read.blob()?);
            let wanted = self.wanted_tiles.get(&number);
            if self.rule.round > 0 && wanted.is_none() {
                return Err(read.bad("a tile of which nothing is wanted"));
            }
            let spans = self.plan.axes.spans(&self.plan.grid, &self.plan.selected, number);
            let rule = &self.rule;
            let totals = self.tiles.entry(number).or_insert_with(|| rule.totals(cells(&spans), wanted));
            totals.merge(&mut state)?;
            state.end()?;
        }
        read.end()
    }
}

/// Totals that keep nothing, for elements that are only measured.
struct NoTotals;

impl Totals for NoTotals {
    fn row(&mut self, _: usize, _: &Row<'_>) -> Result<(), KernelError> {
        Ok(())
    }
    fn run(&mut self, _: usize, _: &Row<'_>) -> Result<(), KernelError> {
        Ok(())
    }
    fn save(&self, _: &mut Vec<u8>) {}
    fn merge(&mut self, _: &mut StateReader<'_>) -> Result<(), KernelError> {
        Ok(())
    }
    fn answer(&self, _: usize, _: usize, _: &mut Vec<u8>) -> Result<(), KernelError> {
        Ok(())
    }
}
