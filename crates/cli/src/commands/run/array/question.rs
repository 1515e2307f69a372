//! Makes a question about a variable from the arguments.

use gristmill_array::Op;
use gristmill_client::{ArrayQuestion, Mapping};
use gristmill_kernel::Value;

use crate::args::RunArgs;
use crate::commands::operations;
use crate::commands::run::variable::{HISTOGRAM, MEDIAN, QUANTILE};
use crate::error::CliError;

/// Default number of bins of a histogram, as of the kernel for plain files.
const BINS: usize = 10;

/// Makes the question from the operation's name, its parameters, and the options. For a histogram without a range it
/// also returns the number of bins: the smallest and the largest element must be asked for first.
///
/// # Errors
/// Returns an error if the operation or a parameter is unknown or wrong.
pub(super) fn question(args: &RunArgs, variable: &str) -> Result<(ArrayQuestion, Option<usize>), CliError> {
    let usage = |text: String| CliError::Usage(text);
    let mut question = ArrayQuestion::new(variable, Op::Count);
    let (mut shares, mut edges, mut bins, mut ends) = (None, None, None, (None, None));
    let mut pending = None;
    for (name, value) in &args.named.merged(&args.params)? {
        let wrong = |what: &str| usage(format!("--param {name}={value}: {what}"));
        let number = || value.parse::<f64>().map_err(|_| wrong("it is not a number"));
        let count = || value.parse::<u64>().map_err(|_| wrong("it is not a whole number"));
        let truth = || value.parse::<bool>().map_err(|_| wrong("write true or false"));
        let numbers = || value.split(',').map(|one| one.trim().parse::<f64>()).collect::<Result<Vec<_>, _>>();
        match name.as_str() {
            _ if !takes_parameter(&args.kernel, name) => {
                let (kernel, known) = (&args.kernel, parameter_names(&args.kernel).join(", "));
                return Err(wrong(&format!(
                    "'{kernel}' of a variable takes no such parameter; it takes {known}"
                )));
            }
            "keepdims" => question.keepdims = truth()?,
            "skipna" => question.skipna = Some(truth()?),
            "valid" => question.valid = truth()?,
            "ddof" => question.ddof = count()?,
            "min_count" => question.min_count = count()?,
            "q" => shares = Some(numbers().map_err(|_| wrong("write shares from 0 to 1, as in 0.5,0.9"))?),
            "edges" => edges = Some(numbers().map_err(|_| wrong("write numbers in order, as in 0,10,20"))?),
            "bins" => bins = Some(count()?),
            "range" => {
                let parted =
                    value.split_once(':').map(|(low, high)| (low.trim().parse(), high.trim().parse()));
                let Some((Ok(low), Ok(high))) = parted else {
                    return Err(wrong("write LOW:HIGH, for example 0:1"));
                };
                ends = (Some(low), Some(high));
            }
            "low" => ends.0 = Some(number()?),
            "high" => ends.1 = Some(number()?),
            _ => return Err(wrong("there is no such parameter")),
        }
    }
    question.op = match args.kernel.as_str() {
        MEDIAN => Op::Quantile(vec![0.5]),
        QUANTILE => Op::Quantile(
            shares.ok_or_else(|| usage("quantile needs shares: -q 0.5,0.9, or --param q=0.5,0.9".into()))?,
        ),
        HISTOGRAM => {
            let count =
                |bins: Option<u64>| bins.map_or(BINS, |bins| usize::try_from(bins).unwrap_or(usize::MAX));
            match (edges, bins, ends) {
                (Some(edges), None, (None, None)) => Op::Histogram(edges),
                (None, bins, (Some(low), Some(high))) => Op::histogram(count(bins), low, high)?,
                (None, bins, (None, None)) => {
                    pending = Some(count(bins));
                    // Refuses too many bins now. The true ends replace 0 and 1 later.
                    Op::histogram(count(bins), 0.0, 1.0)?
                }
                _ => {
                    return Err(usage(
                        "histogram takes --bins 10 and --param range=0:1, or --param edges=0,1,5 alone"
                            .into(),
                    ));
                }
            }
        }
        name => Op::named(name).ok_or_else(|| {
            let plain = Op::NAMES.join(", ");
            usage(format!(
                "'{name}' is not an operation on a variable; there are {plain}, {MEDIAN}, quantile, histogram"
            ))
        })?,
    };
    question.axes = args.array.axes.clone();
    question.parts = args.array.select.iter().chain(&args.array.isel).cloned().collect();
    question.expr = args.array.expr.clone();
    question.others = args.array.with.clone();
    question.mapping = Mapping {
        groups: args.array.groupby.clone(),
        windows: args.array.coarsen.clone(),
        bins: args.array.resample.clone(),
        weights: args.array.weights.clone(),
    };
    Ok((question, pending))
}

/// The questions for the smallest and the largest of all elements that a histogram counts.
pub(super) fn range_questions(question: &ArrayQuestion) -> [ArrayQuestion; 2] {
    let all = |op| {
        let mapping = Mapping::default();
        ArrayQuestion { op, axes: None, mapping, keepdims: false, skipna: None, ..question.clone() }
    };
    [all(Op::Min), all(Op::Max)]
}

/// The histogram between the smallest and the largest element, from the answers to [`range_questions`].
///
/// # Errors
/// Returns an error if all elements are missing, or if one is infinite.
pub(super) fn histogram_between(bins: usize, answers: &[Value]) -> Result<Op, CliError> {
    let number = |name: &str| {
        let entries = answers.iter().filter_map(|answer| match answer {
            Value::Map(entries) => entries.iter().find(|(key, _)| *key == name),
            _ => None,
        });
        entries
            .filter_map(
                |(_, value)| if let Value::Array(array) = value { array.values().next() } else { None },
            )
            .next()
    };
    // 64-bit integers may round to the wrong side.
    let low = match number("min") {
        Some(Value::Int(n)) if (n as f64) as i128 > n => (n as f64).next_down(),
        Some(Value::Int(n)) => n as f64,
        Some(Value::Float(x)) => x,
        _ => f64::NAN,
    };
    let high = match number("max") {
        Some(Value::Int(n)) if ((n as f64) as i128) < n => (n as f64).next_up(),
        Some(Value::Int(n)) => n as f64,
        Some(Value::Float(x)) => x,
        _ => f64::NAN,
    };
    if low.is_nan() || high.is_nan() {
        let text = "all elements are missing, so the range is unknown; give --param range=LOW:HIGH";
        return Err(CliError::Usage(text.into()));
    }
    if !(high - low).is_finite() {
        let text = format!("the elements reach from {low} to {high}; give --param range=LOW:HIGH");
        return Err(CliError::Usage(text));
    }
    // As NumPy does if all elements are equal.
    let (low, high) = if low == high { (low - 0.5, high + 0.5) } else { (low, high) };
    Ok(Op::histogram(bins, low, high)?)
}

/// The names of the parameters that an operation on a variable takes.
fn parameter_names(operation: &str) -> Vec<&'static str> {
    let found = operations::find(operation).into_iter();
    found.flat_map(|operation| operation.all_params()).map(|(name, _, _)| *name).collect()
}

/// Whether an operation on a variable takes a parameter. The two edges of a histogram's `range` may be given one by one.
fn takes_parameter(operation: &str, parameter: &str) -> bool {
    parameter_names(operation).contains(&parameter)
        || operation == HISTOGRAM && matches!(parameter, "low" | "high")
}
