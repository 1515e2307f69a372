//! The explanation of a plan, and the final form of its answer.

use gristmill_array::Op;
use gristmill_client::{ArrayPlan, AxisCoordinate, Labels};
use gristmill_kernel::{ArrayType, DType, Value};

use crate::commands::run::variable::MEDIAN;
use crate::size::readable;

/// The explanation of a plan: what it reads and the memory that it needs.
pub(super) fn explanation(plan: &ArrayPlan) -> String {
    let memory = plan.kernel.memory();
    let (needed, all) = (plan.chunks.len(), plan.table.array.chunks());
    format!(
        "{} {}: {needed} of {all} chunks are read; {} cells, at most {} of state, in at most {} passes",
        plan.dataset.format,
        plan.variable.path,
        memory.cells,
        readable(memory.state_bytes),
        memory.passes
    )
}

/// Turns a quantile of one share into a median: without the axis of quantiles.
pub(super) fn median(answer: Value) -> Value {
    let Value::Map(mut entries) = answer else { return answer };
    for (name, value) in &mut entries {
        if let Value::Array(array) = value
            && array.shape.first() == Some(&1)
        {
            array.shape.remove(0);
            *name = MEDIAN;
        }
    }
    Value::Map(entries)
}

/// The type that sums, means and variances were rounded to at their end, if it is narrower than f64.
pub(super) fn rounded(answer: &Value, op: &Op) -> Option<&'static str> {
    let Value::Map(entries) = answer else { return None };
    let single =
        |value: &Value| matches!(value, Value::Array(array) if array.dtype == ArrayType::Number(DType::F32));
    let sum = |name: &str| match op {
        Op::Sum | Op::Mean | Op::Var | Op::Std => true,
        Op::Moments => name == "sum",
        _ => false,
    };
    entries.iter().any(|(name, value)| sum(name) && single(value)).then_some("f32")
}

/// Adds the names and labels of the axes to the answer. The kernel does not know them.
pub(super) fn with_dimensions(answer: Value, plan: &ArrayPlan, json: bool) -> Value {
    let Value::Map(mut entries) = answer else { return answer };
    entries.retain(|(name, _)| *name != "axes");
    let mut names: Vec<Value> = plan.axes.iter().map(|axis| Value::Text(axis.name.clone())).collect();
    match &plan.question.op {
        Op::Quantile(_) if entries.iter().any(|(name, _)| *name == "quantile") => {
            names.insert(0, Value::Text("quantile".into()));
        }
        Op::Histogram(edges) => {
            names.push(Value::Text("bin".into()));
            entries.push(("edges", Value::List(edges.iter().map(|edge| Value::float(*edge)).collect())));
        }
        _ => {}
    }
    if json || !names.is_empty() {
        entries.push(("dimensions", Value::List(names)));
    }
    let labels: Vec<Value> =
        plan.axes.iter().filter_map(|axis| Some(labels(axis.coordinate.as_ref()?, json))).collect();
    match labels.is_empty() {
        true => {}
        false if json => entries.push(("labels", Value::List(labels))),
        false => entries.extend(labels.into_iter().map(|one| ("labels", one))),
    }
    Value::Map(entries)
}

/// The labels of an axis that the file does not have.
fn labels(coordinate: &AxisCoordinate, json: bool) -> Value {
    let texts = coordinate.texts();
    if !json {
        return Value::Text(format!("{}: {}", coordinate.name, texts.join(" ")));
    }
    let values = match (&coordinate.labels, coordinate.time) {
        (Labels::Floats(all), None) => all.iter().map(|x| Value::float(*x)).collect(),
        (Labels::Whole(all), _) => all.iter().map(|n| Value::Int((*n).into())).collect(),
        _ => texts.into_iter().map(Value::Text).collect(),
    };
    let name = Value::Text(coordinate.name.clone());
    Value::Map(vec![("dimension", name), ("values", Value::List(values))])
}

/// The names and lengths of the axes of the answer.
pub(super) fn shape(plan: &ArrayPlan) -> String {
    let mut axes: Vec<String> =
        plan.axes.iter().map(|axis| format!("{} {}", axis.name, axis.length)).collect();
    match &plan.question.op {
        Op::Histogram(edges) => axes.push(format!("bin {}", edges.len() - 1)),
        Op::Quantile(shares) if shares.len() > 1 => axes.insert(0, format!("quantile {}", shares.len())),
        _ => {}
    }
    if axes.is_empty() { "one number".into() } else { axes.join(", ") }
}
