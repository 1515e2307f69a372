//! The kernel: a request bound to an array.

use std::sync::Arc;

use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::{Ctx, Fold, Kernel, KernelError, Next, NoRows, Numerics, Order, Passes, Spec};

use crate::axes::cells;
use crate::error::ArrayError;
use crate::fold::{ArrayFold, Known};
use crate::plan::{Memory, Plan, Request};
use crate::reduction::Op;
use crate::selection::Selected;
use crate::totals::{NAME, Rank, Rule, Wanted};
use crate::truth::is_float;

/// A reduction of an array. A record is a chunk, its position the number in the [`Grid`](crate::Grid); chunks may come in any order,
/// and those that nothing is selected of need not come. Elements are little-endian; behind those of the chunk a record has
/// those of each further variable over the same box, in the shape in which the chunk is stored.
#[derive(Clone, Debug)]
pub struct ArrayReduce {
    plan: Arc<Plan>,
}

impl ArrayReduce {
    /// Works a request out.
    ///
    /// # Errors
    /// What does not fit together, and answers that are too large to be kept.
    pub fn bind(request: Request) -> Result<ArrayReduce, ArrayError> {
        Ok(ArrayReduce { plan: Arc::new(Plan::new(request)?) })
    }

    /// What it takes wherever it runs.
    pub fn memory(&self) -> Memory {
        self.plan.memory()
    }

    /// The selection in the array; its chunks are those that are needed.
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

    /// What the pass before broadcast.
    fn known(&self, ctx: &Ctx) -> Result<Known, KernelError> {
        let mut known = Known::new();
        if ctx.round == 0 {
            return Ok(known);
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
            known.insert(tile, Wanted::decode(&mut read, cells(&spans), shares.len())?);
        }
        read.end()?;
        Ok(known)
    }

    fn fold(&self, ctx: &Ctx) -> Result<ArrayFold, KernelError> {
        Ok(ArrayFold::new(self.plan.clone(), self.rule(ctx), Arc::new(self.known(ctx)?)))
    }

    /// What quantiles go on with.
    fn judge(&self, ctx: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let rule = self.rule(ctx);
        let before = self.known(ctx)?;
        let mut read = StateReader::new(NAME, whole);
        let (mut known, mut further) = (Known::new(), false);
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
            known.insert(tile, wanted);
        }
        read.end()?;
        if !further {
            return Ok(Next::Done(self.plan.quantiles(&rule, &known)?));
        }
        let mut shared = Vec::new();
        shared.put_u64(known.len() as u64);
        for (tile, wanted) in &known {
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
        let binned = rule.weighted || rule.op == Op::Comoments || sums && is_float(rule.column) && !rule.one;
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

    fn settled(&self, record: u64, summary: &[u8]) -> bool {
        self.plan.settle(record, summary).is_some()
    }

    /// What the elements are decoded to, and in what grid. What is made of several inputs is told by no statistics of one.
    fn summary_key(&self) -> Option<Vec<u8>> {
        self.plan.is_alone().then(|| self.plan.identity())
    }
}
