//! The inputs of an expression over several variables: the choice of the lead, and the chunks of the others.

use std::sync::Arc;

use gristmill_array::{
    ArrayReduce, Constant, Expr, Grid, Meaning, Reduction, Request as ArrayRequest, Selection,
};
use gristmill_format::{ChunkLocations, ChunkTable, Dataset, MAX_CHUNKS, Variable, is_named};
use gristmill_runtime::{Chunks, reads_per_chunk};
use gristmill_wire::grid;

use super::LEAD;
use crate::ClientError;

/// A variable as an input of an expression.
pub(super) struct Input {
    /// The name in the expression.
    pub name: String,
    pub variable: Variable,
    pub meaning: Meaning,
}

/// A reduction of inputs.
pub(super) struct ReductionSpec<'a> {
    pub selection: Selection,
    pub expr: Option<&'a str>,
    /// Constants, with their names in the expression.
    pub constants: Vec<(String, Constant)>,
    pub reduction: Reduction,
}

/// A reduction that is bound to its variables.
pub(super) struct BoundReduction {
    /// All chunks of the lead.
    pub table: Arc<ChunkTable>,
    /// The needed chunks, with tables that have only these chunks and their files.
    pub chunks: Chunks,
    pub kernel: Arc<ArrayReduce>,
    pub array_request: ArrayRequest,
}

/// Binds a reduction to variables of one shape. The lead is the variable with which the fewest chunks are read; among
/// equal ones it is the variable with the largest chunks. The answer does not depend on it.
///
/// # Errors
/// Returns an error if the variables differ in shape or dimensions, if two inputs have one name, or if the selection,
/// the expression and the operation do not fit.
pub(super) fn bind(
    dataset: &Dataset,
    inputs: Vec<Input>,
    spec: ReductionSpec<'_>,
) -> Result<BoundReduction, ClientError> {
    let usage = |why: String| ClientError::Usage(why);
    let mut names: Vec<&str> = inputs.iter().map(|input| &*input.name).collect();
    names.extend(spec.constants.iter().map(|(name, _)| &**name));
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            return Err(usage(format!("two inputs of the expression are called {name}")));
        }
    }
    let Some(first) = inputs.first().map(|input| &input.variable) else {
        return Err(usage("there is no variable".into()));
    };
    for other in inputs.iter().map(|input| &input.variable) {
        let unlike = |(a, b): (&String, &String)| a != b && is_named(a) && is_named(b);
        let dimensions = first.dimensions.iter().zip(&other.dimensions);
        if other.shape != first.shape || dimensions.into_iter().any(unlike) {
            return Err(usage(format!(
                "{} has dimensions {} and {} has {}; an expression reads variables that have the same",
                first.path,
                describe_shape(first),
                other.path,
                describe_shape(other)
            )));
        }
    }
    let tables =
        inputs.iter().map(|input| dataset.table(&input.variable.path)).collect::<Result<Vec<_>, _>>()?;
    let as_usage = |error: gristmill_wire::WireError| ClientError::Usage(error.to_string());
    let of_first: Grid = grid(&tables[0].array).map_err(as_usage)?;
    let taken = spec.selection.resolve(&of_first)?;
    let part: Vec<u64> =
        taken.axes.iter().map(|range| range.count.saturating_sub(1).saturating_mul(range.step) + 1).collect();
    let cost = |at: &usize| {
        let lead = &tables[*at];
        let beside = (0..tables.len()).filter(|other| other != at);
        let each =
            beside.map(|other| reads_per_chunk(&lead.array, &cut_as(lead, &tables[other]).array, &part));
        let elements = lead.array.chunk.iter().fold(1u64, |all, length| all.saturating_mul(*length));
        (each.fold(0u64, u64::saturating_add), u64::MAX - elements)
    };
    let lead = (0..tables.len()).min_by_key(cost).unwrap_or(0);
    let order = || [lead].into_iter().chain((0..tables.len()).filter(move |at| *at != lead));
    let names: Vec<&str> = order().map(|at| names[at]).chain(names[tables.len()..].iter().copied()).collect();
    let variable = &first.path;
    let hint = |error| {
        usage(format!("{error} (x is the variable, {variable}; --with NAME=VARIABLE brings in another)"))
    };
    let expr = spec.expr.map(|text| Expr::parse(text, &names)).transpose().map_err(hint)?;
    let table = Arc::new(tables[lead].clone());
    let mut meanings = order().map(|at| inputs[at].meaning.clone());
    let request = ArrayRequest {
        grid: grid(&table.array).map_err(as_usage)?,
        meaning: meanings.next().unwrap_or_else(|| Meaning::plain(table.array.dtype)),
        others: meanings.collect(),
        constants: spec.constants.into_iter().map(|(_, constant)| constant).collect(),
        selection: spec.selection,
        expr,
        reduction: spec.reduction,
    };
    let kernel = Arc::new(ArrayReduce::bind(request.clone())?);
    // A file may say that it has any number of chunks.
    let numbers: Vec<u64> = kernel.chunks().take(MAX_CHUNKS + 1).collect();
    let beside = order().skip(1).map(|at| {
        let other = cut_as(&table, &tables[at]);
        let grid: Grid = grid(&other.array).map_err(as_usage)?;
        let numbers: Vec<u64> = kernel.selected().chunks(&grid).take(MAX_CHUNKS + 1).collect();
        Ok::<Arc<ChunkTable>, ClientError>(Arc::new(other.only(&numbers)))
    });
    let beside = beside.collect::<Result<Vec<_>, _>>()?;
    let chunks = Chunks::with_others(Arc::new(table.only(&numbers)), beside, numbers)?;
    Ok(BoundReduction { table, chunks, kernel, array_request: request })
}

/// Replaces the variable's own name, without its groups, by `x` in an expression, unless another input has that name.
pub(super) fn with_lead_name(text: &str, variable: &Variable, others: &[(String, String)]) -> String {
    let name = variable.path.rsplit('/').next().unwrap_or(&variable.path);
    let taken = name == LEAD || name == "nan" || others.iter().any(|(other, _)| other == name);
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c: char| !in_word(c)).unwrap_or(rest.len());
        if end == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (word, behind) = rest.split_at(end);
        // The end of a number, as in 1.5e3, and the name of a function are not variables.
        let variable = !taken && word == name && !out.ends_with('.') && !behind.trim_start().starts_with('(');
        out.push_str(if variable { LEAD } else { word });
        rest = behind;
    }
    out
}

/// Returns a table with the chunks of the lead, if the variable is contiguous (so its own chunks are our choice) and
/// the lead's chunks are runs of its bytes. Otherwise returns the table as it is.
fn cut_as(lead: &ChunkTable, other: &ChunkTable) -> ChunkTable {
    if matches!(other.locations, ChunkLocations::Rows(_)) && other.array.chunk != lead.array.chunk {
        let mut cut = other.clone();
        cut.array.chunk.clone_from(&lead.array.chunk);
        let lengths: Vec<u64> = cut.files.iter().map(|file| file.length).collect();
        if cut.check(&lengths).is_ok() {
            return cut;
        }
    }
    other.clone()
}

/// Returns the dimensions of a variable as text for a message.
fn describe_shape(variable: &Variable) -> String {
    let axes = variable.shape.iter().enumerate().map(|(at, length)| {
        match variable.dimensions.get(at).filter(|name| !name.is_empty()) {
            Some(name) => format!("{name}: {length}"),
            None => length.to_string(),
        }
    });
    format!("({})", axes.collect::<Vec<_>>().join(", "))
}
