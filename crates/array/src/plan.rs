//! A request that is bound to its array.

use std::sync::Arc;

use gristmill_kernel::{ArrayType, DType, KernelError};

use crate::axes::Axes;
use crate::error::ArrayError;
use crate::expr::{Expr, Typed};
use crate::grid::Grid;
use crate::inputs::{BroadcastConstant, Constant, MAX_CONSTANT_BYTES, MAX_INPUTS};
use crate::meaning::Meaning;
use crate::reduction::{MAX_WEIGHTS, Op, Reduction};
use crate::selection::{Selected, Selection};
use crate::totals::{Rule, digit, quantile_passes};
use crate::truth::is_float;

/// Most bytes of a saved state, below what a node may send (64 MiB).
pub const MAX_STATE_BYTES: u64 = 60 << 20;

/// Elements that are decoded, computed and reduced at a time.
pub const BLOCK_ELEMENTS: usize = 4096;

/// A reduction of an array: the array, the decoding of its numbers, and the operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Shape and chunks.
    pub grid: Grid,
    /// The attributes of the variable.
    pub meaning: Meaning,
    /// The attributes of further variables of the same shape, which the expression reads too.
    pub others: Vec<Meaning>,
    /// Constants that the expression reads too, of at most [`MAX_CONSTANT_BYTES`] together.
    pub constants: Vec<Constant>,
    /// The elements to reduce.
    pub selection: Selection,
    /// Expression computed of each element first. Its inputs are the variable, the others and the constants, in this
    /// order.
    pub expr: Option<Expr>,
    /// The operation and its axes.
    pub reduction: Reduction,
}

/// Memory that a request takes on each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Cells of the answer: its numbers, not counting an axis that the operation adds.
    pub cells: u64,
    /// Most bytes of a saved state, which may be sent to another node.
    pub state_bytes: u64,
    /// Most bytes of memory of one fold, not counting the chunk. Each lane has one fold.
    pub fold_bytes: u64,
    /// Most passes over the chunks.
    pub passes: u32,
}

/// An axis of the array, and a weight for each of its selected elements.
type AxisWeights = (usize, Arc<[f64]>);

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) grid: Grid,
    pub(crate) meaning: Meaning,
    pub(crate) others: Vec<Meaning>,
    pub(crate) constants: Vec<BroadcastConstant>,
    pub(crate) selected: Selected,
    pub(crate) expr: Option<Typed>,
    /// The factors of the expression, if its elements are reduced as pairs.
    pub(crate) pair: Option<[Typed; 2]>,
    pub(crate) keepdims: bool,
    pub(crate) axes: Axes,
    pub(crate) weights: Vec<AxisWeights>,
    pub(crate) rule: Rule,
}

impl Plan {
    pub(crate) fn new(request: Request) -> Result<Plan, ArrayError> {
        let Request { grid, meaning, others, constants, selection, expr, reduction } = request;
        meaning.check()?;
        others.iter().try_for_each(Meaning::check)?;
        reduction.op.check()?;
        let selected = selection.resolve(&grid)?;
        let decoded = meaning.decoded();
        let mut types = vec![decoded];
        types.extend(others.iter().map(Meaning::decoded));
        types.extend(constants.iter().map(|constant| constant.dtype));
        let constants = broadcast_constants(&selected, &constants, 1 + others.len())?;
        if expr.is_none() && types.len() > 1 {
            let why = "there is no expression that reads it".into();
            return Err(ArrayError::Input { number: 1, why });
        }
        let expr = expr.map(|expr| expr.check(&types)).transpose()?;
        let pair = match &reduction.op {
            Op::Comoments => Some(expr.as_ref().and_then(Typed::factors).ok_or_else(|| {
                let why = "it takes the product of two expressions, as in x * y".into();
                ArrayError::Reduction { op: "comoments", why }
            })?),
            _ => None,
        };
        let column = match pair {
            Some(_) => ArrayType::Number(DType::F64),
            None => expr.as_ref().map_or(decoded, Typed::dtype),
        };
        let axes = Axes::new(&grid, &selected, &reduction)?;
        let op = reduction.op.name();
        let wrong = |why: &str| ArrayError::Reduction { op, why: why.into() };
        if matches!(reduction.op, Op::ArgMin | Op::ArgMax)
            && (reduction.groups.len() + reduction.windows.len()) > 0
        {
            return Err(wrong("it cannot be combined with groups or windows"));
        }
        if matches!(reduction.op, Op::Moments | Op::Var | Op::Std) && column == ArrayType::Bool {
            return Err(wrong("true and false have no variance; cast them, as in i8(...)"));
        }
        let weights = weights(&selected, &reduction)?;
        let cells = axes.cells().unwrap_or(u64::MAX);
        let mut rule = Rule {
            skip: is_float(column) && reduction.skipna.unwrap_or(true),
            column,
            ddof: reduction.ddof,
            min_count: reduction.min_count,
            single: cells == 1,
            weighted: !weights.is_empty(),
            digit: 1,
            round: 0,
            long: selected.elements() >= 1 << 24,
            op: reduction.op,
        };
        if let Op::Quantile(shares) = &rule.op {
            rule.digit = digit(cells, shares.len() as u64);
        }
        let keepdims = reduction.keepdims;
        let plan =
            Plan { grid, meaning, others, constants, selected, expr, pair, keepdims, axes, weights, rule };
        let bytes = plan.state_bytes();
        if bytes > MAX_STATE_BYTES {
            return Err(ArrayError::TooLarge { op, cells, bytes, most: MAX_STATE_BYTES });
        }
        Ok(plan)
    }

    /// Most bytes of a state: the cells, and what each tile adds.
    fn state_bytes(&self) -> u64 {
        let cells = self.axes.cells().unwrap_or(u64::MAX);
        cells
            .saturating_mul(self.rule.cell_bytes().0)
            .saturating_add(self.axes.tiles().min(cells).saturating_mul(64))
    }

    pub(crate) fn memory(&self) -> Memory {
        let cells = self.axes.cells().unwrap_or(u64::MAX);
        let tiles = self.axes.tiles().min(cells).saturating_mul(512);
        // A block has raw elements, decoded ones, three columns of an expression and a column of each further input, of
        // at most 8 bytes an element.
        let beside = (self.others.len() + self.constants.len()) as u64;
        let blocks = (5 + beside) * 8 * BLOCK_ELEMENTS as u64;
        let passes = match &self.rule.op {
            Op::Quantile(shares) => {
                quantile_passes(cells, shares.len() as u64, 8 * self.rule.column.size() as u32).0
            }
            _ => 1,
        };
        let fold_bytes = cells.saturating_mul(self.rule.cell_bytes().1).saturating_add(tiles + blocks);
        Memory { cells, state_bytes: self.state_bytes(), fold_bytes, passes }
    }

    /// Returns the bytes that a chunk must have.
    pub(crate) fn chunk_bytes(&self, number: u64) -> Result<usize, KernelError> {
        if number >= self.grid.chunks() {
            return Err(crate::totals::domain(format!(
                "chunk {number} is not one of {}",
                self.grid.chunks()
            )));
        }
        let elements: u64 = self.grid.stored(number).iter().product();
        Ok(elements as usize * self.element_bytes())
    }

    /// Bytes of one element of every variable.
    pub(crate) fn element_bytes(&self) -> usize {
        self.meaning.raw.size() + self.others.iter().map(|meaning| meaning.raw.size()).sum::<usize>()
    }

    /// Whether the request reads only the lead.
    pub(crate) const fn reads_only_lead(&self) -> bool {
        self.others.is_empty() && self.constants.is_empty()
    }
}

/// Repeats the constants over a selection. `first` is the number of the first constant among the inputs.
fn broadcast_constants(
    selected: &Selected,
    constants: &[Constant],
    first: usize,
) -> Result<Vec<BroadcastConstant>, ArrayError> {
    let inputs = first + constants.len();
    if inputs > MAX_INPUTS {
        let why = format!("there are {inputs} inputs; at most {MAX_INPUTS} are taken");
        return Err(ArrayError::Input { number: MAX_INPUTS, why });
    }
    let bytes = constants.iter().fold(0usize, |all, constant| all.saturating_add(constant.bytes.len()));
    if bytes > MAX_CONSTANT_BYTES {
        let why = format!("constants of {bytes} bytes; at most {MAX_CONSTANT_BYTES} are taken");
        return Err(ArrayError::Input { number: first, why });
    }
    constants.iter().zip(first..).map(|(constant, number)| constant.broadcast(selected, number)).collect()
}

fn weights(selected: &Selected, reduction: &Reduction) -> Result<Vec<AxisWeights>, ArrayError> {
    let wrong = |why: String| ArrayError::Reduction { op: reduction.op.name(), why };
    if reduction.weights.is_empty() {
        return Ok(Vec::new());
    }
    if !matches!(reduction.op, Op::Sum | Op::Mean | Op::Totals) {
        return Err(wrong("weights are for sum, mean and totals".into()));
    }
    if reduction.weights.len() > MAX_WEIGHTS {
        return Err(wrong(format!("it has more than {MAX_WEIGHTS} vectors of weights; multiply them first")));
    }
    let shown: Vec<usize> = (0..selected.axes.len()).filter(|axis| !selected.axes[*axis].dropped).collect();
    let mut all: Vec<AxisWeights> = Vec::new();
    for weights in &reduction.weights {
        let count = shown.len() as i64;
        let at = usize::try_from(if weights.axis < 0 { weights.axis + count } else { weights.axis }).ok();
        let axis = at.and_then(|at| shown.get(at)).copied();
        let axis =
            axis.ok_or_else(|| wrong(format!("axis {} of the weights is out of range", weights.axis)))?;
        let length = selected.axes[axis].count;
        if weights.values.len() as u64 != length {
            let given = weights.values.len();
            return Err(wrong(format!("{given} weights are given for an axis of {length} elements")));
        }
        if !weights.values.iter().all(|w| w.is_finite()) {
            return Err(wrong("weights must be finite numbers; make missing ones 0".into()));
        }
        if all.iter().any(|(other, _)| *other == axis) {
            return Err(wrong(format!("axis {} has weights twice", weights.axis)));
        }
        all.push((axis, weights.values.clone().into()));
    }
    Ok(all)
}
