//! The answer as a picture.

use std::path::Path;

use gristmill_array::Op;
use gristmill_client::{ArrayPlan, Labels};
use gristmill_kernel::{Array, Value};

use crate::error::CliError;
use crate::plot::{Dimension, Picture};

/// The dimensions of the picture of a plan's answer, without dimensions of one element.
///
/// # Errors
/// Returns an error if the answer cannot be drawn. The message says what to reduce.
pub(super) fn dimensions(plan: &ArrayPlan, path: &Path) -> Result<Vec<Dimension>, CliError> {
    let refused = |why: String| Err(CliError::Usage(format!("--plot {}: {why}", path.display())));
    if path.extension().is_none_or(|end| end != "png") {
        return refused("a picture is a .png file; end its name with .png".into());
    }
    if plan.question.op.several() {
        let op = plan.question.op.name();
        return refused(format!("{op} are several arrays; ask for one of them: mean, var, min or max"));
    }
    let mut all = Vec::new();
    for axis in &plan.axes {
        let coordinate = plan.coordinate(axis)?;
        let (units, time) = coordinate.as_ref().map_or((None, None), |one| (one.units.clone(), one.time));
        let labels = coordinate.map(|one| one.labels);
        let length = usize::try_from(axis.length).unwrap_or(usize::MAX);
        all.push(Dimension { name: axis.name.clone(), length, labels, units, time });
    }
    let made = |name: &str, values: Vec<f64>| Dimension {
        name: name.to_owned(),
        length: values.len(),
        labels: Some(Labels::Floats(values)),
        units: None,
        time: None,
    };
    match &plan.question.op {
        Op::Quantile(shares) => all.insert(0, made("quantile", shares.clone())),
        Op::Histogram(edges) => {
            all.push(made("bin", edges.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect()));
        }
        _ => {}
    }
    if let Some(empty) = all.iter().find(|one| one.length == 0) {
        return refused(format!("nothing of {} is selected, so there is nothing to draw", empty.name));
    }
    all.retain(|one| one.length > 1);
    match all.len() {
        1 | 2 => Ok(all),
        0 => refused("the answer is one number, which is printed without --plot".into()),
        _ => {
            let names: Vec<String> = all.iter().map(|one| format!("{} {}", one.name, one.length)).collect();
            refused(format!(
                "the answer has {} dimensions ({}), and one or two can be drawn; reduce some with --axes, or take one \
                 index of them, as in --isel {}=0",
                all.len(),
                names.join(", "),
                all[0].name
            ))
        }
    }
}

/// The bytes of a PNG of the answer. `op` is the name of the operation.
pub(super) fn png(
    plan: &ArrayPlan,
    dimensions: Vec<Dimension>,
    answer: &Value,
    op: &str,
) -> Result<Vec<u8>, CliError> {
    let Some((name, array)) = array(answer) else {
        return Err(CliError::Usage("there is no array in the answer to draw".into()));
    };
    let path = &plan.variable.path;
    let units = plan.units(name);
    let title = match &plan.question.expr {
        None => format!("{op} of {path}"),
        Some(expr) => format!("{op} of {expr}, {}", plan.inputs()),
    };
    // Bins beside another dimension are a map.
    let edges = match &plan.question.op {
        Op::Histogram(edges)
            if dimensions.len() == 1
                && array.values().count() + 1 == edges.len()
                && edges.iter().all(|edge| edge.is_finite()) =>
        {
            edges.clone()
        }
        _ => Vec::new(),
    };
    let attribute = |name| plan.variable.attribute(name).and_then(|attribute| attribute.value.text());
    let picture = Picture {
        title: match units {
            Some(units) => format!("{title} [{units}]"),
            None => title,
        },
        subtitle: attribute("long_name").or(attribute("standard_name")).unwrap_or_default().to_owned(),
        quantity: units.map_or_else(|| op.to_owned(), |units| format!("{op} [{units}]")),
        dimensions,
        values: array.values().map(|one| float(&one)).collect(),
        edges,
    };
    picture.png()
}

fn array(answer: &Value) -> Option<(&'static str, &Array)> {
    let Value::Map(entries) = answer else { return None };
    entries.iter().find_map(|(name, value)| match value {
        Value::Array(array) => Some((*name, array)),
        _ => None,
    })
}

fn float(value: &Value) -> f64 {
    match value {
        Value::Int(n) => *n as f64,
        Value::Float(x) => *x,
        _ => f64::NAN,
    }
}
