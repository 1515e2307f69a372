//! The variable of a scientific file that `run` reduces, if none is named.

use std::ffi::OsStr;
use std::path::Path;

use gristmill_array::Op;
use gristmill_client::{Location, is_zarr};
use gristmill_format::{Dataset, Variable, is_self_describing};
use gristmill_kernel::catalog::{self, Accepts};

use crate::args::{Element, RunArgs};
use crate::commands::connect_to_read;
use crate::commands::variables::{failed, open_here};
use crate::error::CliError;

/// Operations on variables that are built from parameters of the command.
pub(super) const MEDIAN: &str = "median";
pub(super) const QUANTILE: &str = "quantile";
pub(super) const HISTOGRAM: &str = "histogram";

/// Attributes whose values name auxiliary variables.
const AUXILIARY: [&str; 9] = [
    "bounds",
    "climatology",
    "coordinates",
    "grid_mapping",
    "cell_measures",
    "ancillary_variables",
    "formula_terms",
    "nodes",
    "node_coordinates",
];

/// Most variables that a message lists.
const MAX_LISTED: usize = 20;

/// The variable of `--var`. Without it, for a file whose name has a scientific extension, the only variable that is
/// neither a coordinate nor an auxiliary variable of another. `None` for a request about plain records.
///
/// # Errors
/// Returns an error if the file has no such variable or several; the message lists them.
pub(super) fn find(args: &RunArgs) -> Result<Option<String>, CliError> {
    if args.array.var.is_some() {
        return Ok(args.array.var.clone());
    }
    let selection = &args.selection;
    let plain = selection.dtype.is_some()
        || selection.record.is_some()
        || selection.range.is_some()
        || selection.skip.0 > 0;
    let option = args.array.first_given();
    if plain || !is_operation(&args.kernel) || !is_scientific(&args.path) {
        return match option {
            Some(option) => Err(CliError::Usage(format!(
                "{option} is about a variable of a netCDF, HDF5, Zarr, .npy or .csv file; name it with --var"
            ))),
            None => Ok(None),
        };
    }
    let dataset = match args.path.cluster() {
        Some(url) => connect_to_read(url, args.reach, args.check.verify)?.dataset(&url.path)?.dataset,
        None => open_here(&args.path, args.check.verify)?.dataset().map_err(failed(&args.path))?,
    };
    only_variable(&dataset).map(Some).map_err(|why| CliError::Usage(format!("{}: {why}", args.path)))
}

/// Says that all bytes of a scientific file are read as plain numbers, because the answer is hardly ever what was meant. A
/// request that gives an offset knows where the numbers are.
pub(super) fn note_plain(args: &RunArgs) {
    let selection = &args.selection;
    if let Some(element) = selection.dtype
        && selection.range.is_none()
        && selection.skip.0 == 0
        && is_scientific(&args.path)
    {
        crate::notice(format_args!(
            "note: {} is a scientific file, and its bytes are read as plain {}; for a variable leave --type out and give --var",
            args.path,
            element.dtype.name()
        ));
    }
}

/// Says that a file is read as lines of text, if its name ends with a type of numbers (`.f64`) and the kernel takes numbers
/// too.
pub(super) fn note_lines(args: &RunArgs) {
    let lines = args.selection.dtype.is_none() && args.selection.record.is_none();
    let takes_numbers =
        || catalog::find(&args.kernel).is_ok_and(|kernel| kernel.accepts.contains(&Accepts::Elements));
    let ending = args.path.path().extension().and_then(OsStr::to_str);
    if lines
        && let Some(element) = ending.and_then(|ending| ending.parse::<Element>().ok())
        && takes_numbers()
    {
        crate::notice(format_args!(
            "note: {} is read as lines of text, because no type is given; --type {} reads its numbers",
            args.path,
            element.dtype.name()
        ));
    }
}

/// Whether this is an operation on variables.
pub(super) fn is_operation(name: &str) -> bool {
    Op::named(name).is_some() || [MEDIAN, QUANTILE, HISTOGRAM].contains(&name)
}

fn is_scientific(location: &Location) -> bool {
    let path = location.path();
    let path = path.to_str().map_or(path, |text| Path::new(text.trim_end_matches('/')));
    is_self_describing(path) || location.local().is_some_and(is_zarr)
}

/// The only variable with data of its own.
fn only_variable(dataset: &Dataset) -> Result<String, String> {
    let numbers = || dataset.variables.iter().filter(|variable| variable.dtype().is_ok());
    let known = dataset.variables.iter().flat_map(|variable| AUXILIARY.map(|name| variable.attribute(name)));
    let referred: Vec<String> = known
        .flatten()
        .filter_map(|attribute| attribute.value.text())
        .flat_map(|text| text.split_whitespace().map(str::to_owned))
        .collect();
    let own_name =
        |variable: &Variable| variable.path.rsplit('/').next().unwrap_or(&variable.path).to_owned();
    let is_data = |variable: &&Variable| {
        !variable.shape.is_empty()
            && !variable.dimensions.contains(&variable.path)
            && !referred.contains(&own_name(variable))
    };
    let data: Vec<&Variable> = numbers().filter(is_data).collect();
    let (data, several) = match &data[..] {
        [one] => return Ok(one.path.clone()),
        [] => (numbers().collect(), "has no variable with data of its own"),
        _ => (data, "has several variables"),
    };
    let mut listed: Vec<&str> = data.iter().take(MAX_LISTED).map(|variable| &*variable.path).collect();
    if data.len() > MAX_LISTED {
        listed.push("and more");
    }
    match listed.is_empty() {
        true => Err("it has no variable that is made of numbers".to_owned()),
        false => Err(format!("it {several}; name one with --var: {}", listed.join(", "))),
    }
}
