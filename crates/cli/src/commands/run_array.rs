//! `gristmill run` of a variable of a scientific file.

use std::process::ExitCode;
use std::sync::Arc;

use gristmill_array::Op;
use gristmill_client::{
    ArrayFile, ArrayPlan, ArrayQuestion, Location, folder_parts, nowhere, open, plan_array, plan_dataset,
};
use gristmill_format::open_path;
use gristmill_kernel::Value;
use gristmill_runtime::{Control, Options, Outcome, Request};
use gristmill_store::write_atomic;
use gristmill_wire::Place;

use crate::args::RunArgs;
use crate::commands::connect;
use crate::commands::run::Job;
use crate::commands::run_output::Printer;
use crate::commands::variables::{failed, is_zarr};
use crate::error::{CliError, INTERRUPTED};
use crate::interrupt::stop_on_signal;
use crate::progress::Watch;
use crate::size::readable;

/// The quantile that has a name.
const MEDIAN: &str = "median";

/// Operations on variables, for messages.
const OPERATIONS: &str =
    "count, sum, mean, min, max, var, std, argmin, argmax, any, all, moments, median, quantile, histogram";

/// Runs an operation on a variable and prints, or writes, its answer.
pub(super) fn run(args: &RunArgs, variable: &str, options: Options) -> Result<ExitCode, CliError> {
    let usage = |text: String| Err(CliError::Usage(text));
    let selection = &args.selection;
    if selection.dtype.is_some()
        || selection.record.is_some()
        || selection.range.is_some()
        || selection.skip.0 > 0
    {
        return usage(
            "--var takes types and places from the file; leave --type, --record, --skip and --range out"
                .into(),
        );
    }
    if args.checkpoint.is_some() {
        return usage("a request about a variable keeps no checkpoint; leave --checkpoint out".into());
    }
    let to = match &args.output {
        None => None,
        Some(Location::Local(path)) => match ArrayFile::of(path) {
            Some(format) => Some((path, format)),
            None => {
                return usage(format!(
                    "{}: an answer is written as .nc or .npy; name such a file",
                    path.display()
                ));
            }
        },
        Some(Location::Remote(_)) => {
            return usage("an answer is written to a file of this machine; name one with --output".into());
        }
    };
    let question = question(args, variable)?;
    let (plan, job) = match &args.path {
        Location::Local(path) => {
            if args.place == Place::Storage {
                let text = "is a file of this machine and is folded here; leave --place out";
                return usage(format!("{} {text}", path.display()));
            }
            let (plan, file) = if is_zarr(path) {
                let plan = plan_dataset(Arc::new(open_path(path).map_err(failed(path))?), &question)?;
                let file = folder_parts(path, plan.files())?;
                (plan, file)
            } else {
                let file = open(path)?;
                (plan_array(&file, &question)?, file)
            };
            let request = Request { options, ..plan.request(file) };
            (plan, Job::Here(Box::new(request)))
        }
        Location::Remote(url) => {
            let cluster = connect(url)?;
            let remote = cluster.dataset(&url.path)?;
            let plan = remote.plan(&question)?;
            let job = match remote.files(plan.files())? {
                Some(files) => {
                    let planned = cluster.plan_files(files, plan.question()?, args.place, &options)?;
                    let (planned, options) = (Box::new(planned), Box::new(options));
                    Job::Cluster { cluster, planned, options, identity: String::new() }
                }
                None => Job::Here(Box::new(Request { options, ..plan.request(nowhere(&url.path)?) })),
            };
            (plan, job)
        }
    };
    if args.explain {
        eprintln!("{}\n{}", explanation(&plan), job.explanation(false));
    }
    let control = Arc::new(Control::new());
    stop_on_signal(&control)?;
    let watch = Watch::start(control.clone(), args.tuning.no_progress);
    let mut printer = Printer::new(&*plan.kernel, args.json, job.folds_here());
    printer.kernel = if args.kernel == MEDIAN { MEDIAN } else { question.op.name() };
    let outcome = job.run(&mut printer, &control).map_err(|error| CliError::of_request(&args.path, error));
    drop(watch);
    let Outcome::Done(mut answer) = outcome? else { return Ok(ExitCode::from(INTERRUPTED)) };
    if args.kernel == MEDIAN {
        answer.value = median(answer.value);
    }
    if let Some((path, format)) = to {
        let bytes = plan.file(&answer.value, format, &args.kernel)?;
        write_atomic(path, &bytes)?;
        eprintln!("{}: {} of {variable}, {}", path.display(), args.kernel, shape(&plan));
    }
    if to.is_none() || args.json {
        answer.value = with_dimensions(answer.value, &plan, args.json);
        printer.finish(&answer)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What is asked, from the operation's name, its parameters, and the options.
fn question(args: &RunArgs, variable: &str) -> Result<ArrayQuestion, CliError> {
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
        "count" => Op::Count,
        "sum" => Op::Sum,
        "mean" => Op::Mean,
        "var" => Op::Var,
        "std" => Op::Std,
        "min" => Op::Min,
        "max" => Op::Max,
        "argmin" => Op::ArgMin,
        "argmax" => Op::ArgMax,
        "any" => Op::Any,
        "all" => Op::All,
        "moments" => Op::Moments,
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
        other => {
            return Err(usage(format!("'{other}' is no operation on a variable; there are {OPERATIONS}")));
        }
    };
    question.axes = args.array.axes.clone();
    question.parts = args.array.select.iter().chain(&args.array.isel).cloned().collect();
    question.expr = args.array.expr.clone();
    Ok(question)
}

fn explanation(plan: &ArrayPlan) -> String {
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

/// Whether an operation on a variable takes a parameter.
fn takes(operation: &str, parameter: &str) -> bool {
    match parameter {
        "keepdims" | "skipna" | "valid" => true,
        "ddof" => matches!(operation, "var" | "std"),
        "min_count" => matches!(operation, "sum" | "mean" | "var" | "std" | "min" | "max" | "moments"),
        "q" => operation == "quantile",
        "bins" | "low" | "high" | "edges" => operation == "histogram",
        _ => false,
    }
}

/// A median as an answer of its own: without the axis that several quantiles have.
fn median(answer: Value) -> Value {
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

/// The answer with the names of its axes, which the kernel does not know.
fn with_dimensions(answer: Value, plan: &ArrayPlan, always: bool) -> Value {
    let Value::Map(mut entries) = answer else { return answer };
    entries.retain(|(name, _)| *name != "axes");
    let mut names: Vec<Value> = plan.axes.iter().map(|axis| Value::Text(axis.name.clone())).collect();
    match &plan.question.op {
        Op::Quantile(_) if entries.iter().any(|(name, _)| *name == "quantile") => {
            names.insert(0, Value::Text("quantile".into()));
        }
        Op::Histogram(_) => names.push(Value::Text("bin".into())),
        _ => {}
    }
    if always || !names.is_empty() {
        entries.push(("dimensions", Value::List(names)));
    }
    Value::Map(entries)
}

/// The axes of the answer.
fn shape(plan: &ArrayPlan) -> String {
    match &plan.axes[..] {
        [] => "one number".into(),
        axes => {
            axes.iter().map(|axis| format!("{} {}", axis.name, axis.length)).collect::<Vec<_>>().join(", ")
        }
    }
}
