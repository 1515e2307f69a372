//! From the words of a command line to a question about a variable.

use gristmill_array::Op;
use gristmill_client::{ArrayQuestion, Mapping};

use crate::args::RunArgs;
use crate::error::CliError;

/// The quantile that has a name.
pub(super) const MEDIAN: &str = "median";

/// What is asked, from the operation's name, its parameters, and the options.
pub(super) fn question(args: &RunArgs, variable: &str) -> Result<ArrayQuestion, CliError> {
    let usage = |text: String| CliError::Usage(text);
    let mut question = ArrayQuestion::new(variable, Op::Count);
    let (mut shares, mut edges, mut bins, mut ends) = (None, None, None, (None, None));
    for (name, value) in &args.params {
        let wrong = |what: &str| usage(format!("--param {name}={value}: {what}"));
        let number = || value.parse::<f64>().map_err(|_| wrong("it is no number"));
        let count = || value.parse::<u64>().map_err(|_| wrong("it is no whole number"));
        let truth = || value.parse::<bool>().map_err(|_| wrong("write true or false"));
        let numbers = || value.split(',').map(|one| one.trim().parse::<f64>()).collect::<Result<Vec<_>, _>>();
        match name.as_str() {
            _ if !takes(&args.kernel, name) => {
                return Err(wrong(&format!("'{}' takes no such parameter of a variable", args.kernel)));
            }
            "keepdims" => question.keepdims = truth()?,
            "skipna" => question.skipna = Some(truth()?),
            "valid" => question.valid = truth()?,
            "ddof" => question.ddof = count()?,
            "min_count" => question.min_count = count()?,
            "q" => shares = Some(numbers().map_err(|_| wrong("write shares from 0 to 1, as in 0.5,0.9"))?),
            "edges" => edges = Some(numbers().map_err(|_| wrong("write numbers in order, as in 0,10,20"))?),
            "bins" => bins = Some(count()?),
            "low" => ends.0 = Some(number()?),
            "high" => ends.1 = Some(number()?),
            _ => return Err(wrong("there is no such parameter")),
        }
    }
    question.op = match args.kernel.as_str() {
        MEDIAN => Op::Quantile(vec![0.5]),
        "quantile" => Op::Quantile(shares.ok_or_else(|| usage("quantile needs --param q=0.5,0.9".into()))?),
        "histogram" => {
            match (edges, bins, ends) {
                (Some(edges), None, (None, None)) => Op::Histogram(edges),
                (None, Some(bins), (Some(low), Some(high))) => {
                    Op::histogram(usize::try_from(bins).unwrap_or(usize::MAX), low, high)?
                }
                _ => return Err(usage(
                    "histogram needs --param bins=10 --param low=0 --param high=1, or --param edges=0,1,5"
                        .into(),
                )),
            }
        }
        name => Op::named(name).ok_or_else(|| {
            let plain = Op::NAMES.join(", ");
            usage(format!(
                "'{name}' is no operation on a variable; there are {plain}, {MEDIAN}, quantile, histogram"
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
    Ok(question)
}

/// Whether an operation on a variable takes a parameter.
fn takes(operation: &str, parameter: &str) -> bool {
    match parameter {
        "keepdims" | "skipna" | "valid" => true,
        "ddof" => matches!(operation, "var" | "std"),
        "min_count" => {
            matches!(operation, "sum" | "mean" | "totals" | "var" | "std" | "min" | "max" | "moments")
        }
        "q" => operation == "quantile",
        "bins" | "low" | "high" | "edges" => operation == "histogram",
        _ => false,
    }
}
