//! The fold over chunks.

use std::collections::BTreeMap;
use std::sync::Arc;

use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::{Block, Fold, KernelError, Sink, Step};

use crate::axes::cells;
use crate::plan::Plan;
use crate::rows::{Scratch, Walk};
use crate::totals::{NAME, Rule, Totals, Wanted, domain};

/// Tiles that an element came to, with their cells.
pub(crate) type Tiles = BTreeMap<u64, Box<dyn Totals>>;

/// What the pass before found, for each tile.
pub(crate) type Known = BTreeMap<u64, Wanted>;

pub(crate) struct ArrayFold {
    pub(crate) plan: Arc<Plan>,
    pub(crate) rule: Rule,
    pub(crate) known: Arc<Known>,
    pub(crate) tiles: Tiles,
    scratch: Scratch,
}

impl ArrayFold {
    pub(crate) fn new(plan: Arc<Plan>, rule: Rule, known: Arc<Known>) -> ArrayFold {
        ArrayFold { plan, rule, known, tiles: Tiles::new(), scratch: Scratch::new() }
    }

    fn chunk(&mut self, number: u64, data: &[u8]) -> Result<(), KernelError> {
        let plan = self.plan.clone();
        for piece in plan.pieces(number) {
            // In a later pass a tile of which nothing is known has nothing that is wanted.
            let wanted = self.known.get(&piece.tile);
            if self.rule.round > 0 && wanted.is_none() {
                continue;
            }
            let rule = &self.rule;
            let totals = self.tiles.entry(piece.tile).or_insert_with(|| rule.totals(piece.cells, wanted));
            Walk { plan: &plan, data, piece: &piece, totals: &mut **totals, scratch: &mut self.scratch }
                .run()?;
        }
        Ok(())
    }
}

impl Fold for ArrayFold {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        let mut rest = block.data();
        for number in block.first()..block.end() {
            let bytes = self.plan.chunk_bytes(number)?;
            let Some((data, after)) = rest.split_at_checked(bytes) else {
                return Err(domain(format!("chunk {number} has {} bytes instead of {bytes}", rest.len())));
            };
            self.chunk(number, data)?;
            rest = after;
        }
        if !rest.is_empty() {
            let last = block.end().saturating_sub(1);
            return Err(domain(format!("chunk {last} has {} bytes too many", rest.len())));
        }
        Ok(Step::Took(block.count()))
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
            let wanted = self.known.get(&number);
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
