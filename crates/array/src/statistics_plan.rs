//! The choice of the statistics to make of a chunk that is read.
//!
//! Sums that the request makes anyway cost nothing more, and a range costs little compared with any other work on the
//! elements. An exact sum that the request does not need is made only if the chunk was slow to decompress.

use crate::measure::SumKinds;
use crate::plan::Plan;
use crate::reduction::Op;
use crate::settle::SingleCell;
use crate::statistics::ChunkStatistics;
use crate::totals::Rule;
use crate::truth::is_float;

/// The statistics to make of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StatisticsPlan {
    pub(crate) sums: SumKinds,
    /// The cell of the chunk, if its statistics are all that the request needs.
    pub(crate) single_cell: Option<SingleCell>,
}

impl StatisticsPlan {
    /// Chooses the statistics to make. Returns `None` if not all of the chunk is selected, or if everything is known
    /// already. `thorough` says that the chunk was slow to read.
    pub(crate) fn choose(
        plan: &Plan,
        rule: &Rule,
        number: u64,
        known: Option<&ChunkStatistics>,
        thorough: bool,
    ) -> Option<StatisticsPlan> {
        // Any and all take less time for an element than its range would.
        let quick = matches!(rule.op, Op::Any | Op::All) && !thorough;
        if rule.round > 0 || quick || !plan.wholly_selected(number) {
            return None;
        }
        let measured = plan.expr.is_none() && rule.measured();
        let single_cell = if measured { plan.single_cell(number) } else { None };
        let adds = single_cell.is_some()
            && matches!(rule.op, Op::Sum | Op::Mean | Op::Totals)
            && is_float(rule.column);
        let sums = SumKinds { exact: adds && rule.single || thorough, binned: adds && !rule.single };
        let float = is_float(plan.meaning.decoded());
        let new = known.is_none_or(|known| {
            float && (sums.exact && known.exact.is_none() || sums.binned && known.binned.is_none())
        });
        new.then_some(StatisticsPlan { sums, single_cell })
    }
}

impl Plan {
    /// Returns whether all elements of a chunk are selected and belong to a group.
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
