//! The kernel: a request bound to an array.

use std::sync::Arc;

use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::{Ctx, Fold, Kernel, KernelError, Next, NoRows, Numerics, Order, Passes, Spec};

use crate::axes::cells;
use crate::error::ArrayError;
use crate::fold::{ArrayFold, WantedByTile};
use crate::plan::{Memory, Plan, Request};
use crate::reduction::{NAME, Op};
use crate::selection::Selected;
use crate::totals::{Rank, Rule, Wanted};
use crate::truth::is_float;

/// A reduction of an array. A record is a chunk, and its position is the chunk's number in the [`Grid`](crate::Grid).
/// Chunks may come in any order; chunks without a selected element need not come. Elements are little-endian. After the
/// chunk's elements a record has those of each further variable over the same box, in the shape in which the chunk is
/// stored.
#[derive(Clone, Debug)]
pub struct ArrayReduce {
    plan: Arc<Plan>,
}

impl ArrayReduce {
    /// Binds a request to its array.
    ///
    /// # Errors
    /// Returns [`ArrayError::TooLarge`] if the state could exceed [`MAX_STATE_BYTES`](crate::MAX_STATE_BYTES), and
    /// another [`ArrayError`] if the attributes, the selection, the expression or the reduction do not fit the array.
    pub fn bind(request: Request) -> Result<ArrayReduce, ArrayError> {
        Ok(ArrayReduce { plan: Arc::new(Plan::new(request)?) })
    }

    /// Memory that the reduction takes on each node.
    pub fn memory(&self) -> Memory {
        self.plan.memory()
    }

    /// The selection in the array.
    pub fn selected(&self) -> &Selected {
        &self.plan.selected
    }

    /// Numbers of the chunks that are needed, ascending.
    pub fn chunks(&self) -> impl Iterator<Item = u64> {
        self.plan.selected.chunks(&self.plan.grid)
    }

    fn rule(&self, ctx: &Ctx) -> Rule {
        Rule { round: ctx.round, ..self.plan.rule.clone() }
    }

    /// Reads the wanted elements that the previous pass broadcast.
    fn wanted_tiles(&self, ctx: &Ctx) -> Result<WantedByTile, KernelError> {
        let mut wanted_tiles = WantedByTile::new();
        if ctx.round == 0 {
            return Ok(wanted_tiles);
        }
        let mut read = StateReader::new(NAME, &ctx.shared);
        let Op::Quantile(shares) = &self.plan.rule.op else {
            return Err(read.bad("a second pass of what is done in one"));
        };
        for _ in 0..read.u64()? {
            let tile = read.u64()?;
            if tile >= self.plan.axes.tiles() {
                return Err(read.bad("a tile that is not there"));
            }
            let spans = self.plan.axes.spans(&self.plan.grid, &self.plan.selected, tile);
            wanted_tiles.insert(tile, Wanted::decode(&mut read, cells(&spans), shares.len())?);
        }
        read.end()?;
        Ok(wanted_tiles)
    }

    fn fold(&self, ctx: &Ctx) -> Result<ArrayFold, KernelError> {
        Ok(ArrayFold::new(self.plan.clone(), self.rule(ctx), Arc::new(self.wanted_tiles(ctx)?)))
    }

    /// Ends a pass of quantiles: returns the answer, or the wanted elements for the next pass.
    fn judge(&self, ctx: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let rule = self.rule(ctx);
        let before = self.wanted_tiles(ctx)?;
        let mut read = StateReader::new(NAME, whole);
        let (mut wanted_tiles, mut further) = (WantedByTile::new(), false);
        for _ in 0..read.u64()? {
            let tile = read.u64()?;
            let mut state = StateReader::new(NAME, read.blob()?);
            if tile >= self.plan.axes.tiles() || (ctx.round > 0 && !before.contains_key(&tile)) {
                return Err(read.bad("a tile that is not there"));
            }
            let spans = self.plan.axes.spans(&self.plan.grid, &self.plan.selected, tile);
            let mut rank = Rank::new(&rule, cells(&spans), before.get(&tile));
            crate::totals::Totals::merge(&mut rank, &mut state)?;
            state.end()?;
            let (wanted, more) = rank.judge()?;
            further |= more;
            wanted_tiles.insert(tile, wanted);
        }
        read.end()?;
        if !further {
            return Ok(Next::Done(self.plan.quantiles(&rule, &wanted_tiles)?));
        }
        let mut shared = Vec::new();
        shared.put_u64(wanted_tiles.len() as u64);
        for (tile, wanted) in &wanted_tiles {
            shared.put_u64(*tile);
            wanted.encode(&mut shared);
        }
        Ok(Next::Again(shared))
    }
}

impl Kernel for ArrayReduce {
    fn spec(&self) -> Spec {
        let rule = &self.plan.rule;
        let sums = matches!(rule.op, Op::Sum | Op::Mean | Op::Totals | Op::Var | Op::Std | Op::Moments);
        let binned =
            rule.weighted || rule.op == Op::Comoments || sums && is_float(rule.column) && !rule.single;
        let quantile = matches!(rule.op, Op::Quantile(_));
        Spec {
            order: Order::Any,
            numerics: if binned { Numerics::Binned } else { Numerics::Exact },
            passes: if quantile { Passes::Several } else { Passes::One },
            state_hint: self.plan.memory().state_bytes,
            ..Spec::fixed(NAME, self.plan.grid.chunk_elements() * self.plan.element_bytes() as u64)
        }
    }

    fn begin(&self, ctx: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(self.fold(ctx)?))
    }

    fn advance(&self, ctx: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        if matches!(self.plan.rule.op, Op::Quantile(_)) {
            return self.judge(ctx, whole);
        }
        let mut fold = self.fold(ctx)?;
        fold.merge(whole, &mut NoRows)?;
        Ok(Next::Done(self.plan.answer(&fold.rule, &fold.tiles)?))
    }

    fn summary_suffices(&self, record: u64, summary: &[u8]) -> bool {
        self.plan.settle(record, summary).is_some()
    }

    /// Returns the identity of the lead's statistics, or `None` if an expression reads further inputs: statistics of
    /// one input do not give its results.
    fn summary_key(&self) -> Option<Vec<u8>> {
        self.plan.reads_only_lead().then(|| self.plan.identity())
    }
}
