//! Which statistics are made of a chunk that is read.
//!
//! What a request makes anyway costs nothing more; the range costs little beside any other work on the elements. An exact
//! sum that nobody asked for is made only where reading the chunk cost more: where it was slow to decompress.

use crate::measure::Sums;
use crate::plan::Plan;
use crate::reduction::Op;
use crate::settle::Sole;
use crate::statistics::ChunkStatistics;
use crate::totals::Rule;
use crate::truth::is_float;

/// What is to be found out about a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lesson {
    pub(crate) sums: Sums,
    /// Where the chunk goes, if its statistics are all that the request needs of it.
    pub(crate) sole: Option<Sole>,
}

impl Lesson {
    /// `None` where there is nothing to find out: not all of the chunk is asked for, or all is known already.
    pub(crate) fn of(
        plan: &Plan,
        rule: &Rule,
        number: u64,
        known: Option<&ChunkStatistics>,
        thorough: bool,
    ) -> Option<Lesson> {
        // Any and all are done with an element in less time than its range takes.
        let quick = matches!(rule.op, Op::Any | Op::All) && !thorough;
        if rule.round > 0 || quick || !plan.wholly_selected(number) {
            return None;
        }
        let measured = plan.expr.is_none() && rule.measured();
        let sole = if measured { plan.sole(number) } else { None };
        let adds =
            sole.is_some() && matches!(rule.op, Op::Sum | Op::Mean | Op::Totals) && is_float(rule.column);
        let sums = Sums { exact: adds && rule.one || thorough, binned: adds && !rule.one };
        let float = is_float(plan.meaning.decoded());
        let new = known.is_none_or(|known| {
            float && (sums.exact && known.exact.is_none() || sums.binned && known.binned.is_none())
        });
        new.then_some(Lesson { sums, sole })
    }
}

impl Plan {
    /// Whether all elements of a chunk are selected, and none is left out by its label.
    fn wholly_selected(&self, number: u64) -> bool {
        if number >= self.grid.chunks() {
            return false;
        }
        let selected = |piece: &crate::walk::Piece<'_>| {
            piece.axes.iter().map(|axis| axis.length as u64).product::<u64>()
        };
        self.pieces(number).iter().map(selected).sum::<u64>() == self.elements(number)
    }
}
