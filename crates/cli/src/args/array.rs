//! The arguments of `run` about a variable of a scientific file.

use std::path::PathBuf;

use clap::Args;
use gristmill_array::Boundary;
use gristmill_client::{AxisSelection, Frequency};

/// A variable of a scientific file, the part of it that is read, and how its dimensions are reduced.
#[derive(Debug, Args)]
#[command(next_help_heading = "Variables of netCDF, HDF5, Zarr, .npy and .csv files")]
pub struct ArrayArgs {
    /// The variable, with its groups: GROUP/NAME; 'gristmill stat FILE' lists them [default: the only one that is not a
    /// coordinate]
    #[arg(long, value_name = "NAME")]
    pub var: Option<String>,
    /// The dimensions to reduce, by name or by number
    /// [default: all; with --groupby, --coarsen or --resample none]
    #[arg(long, value_name = "DIM,...", value_delimiter = ',', allow_hyphen_values = true)]
    pub axes: Option<Vec<String>>,
    /// Elements by coordinate: DIM=LOW:HIGH, both included, or DIM=VALUE; may be given several times. Times may be
    /// dates, which may be partial: time=2001-01, time=2001-01:2001-06, time=2001-01-15T06
    #[arg(long, value_name = "DIM=LOW:HIGH", value_parser = parse_select)]
    pub select: Vec<(String, AxisSelection)>,
    /// Elements by index: DIM=START:STOP:STEP as in Python, but STEP at least 1, or DIM=INDEX; may be given several
    /// times
    #[arg(long, value_name = "DIM=START:STOP", value_parser = parse_isel)]
    pub isel: Vec<(String, AxisSelection)>,
    /// Compute this for each element first. The element is x or the name of its variable: 'where(tos > 273.15, tos -
    /// 273.15, nan)'
    #[arg(long, value_name = "EXPRESSION", allow_hyphen_values = true)]
    pub expr: Option<String>,
    /// A further variable with the same dimensions, for the expression: NAME=VARIABLE, as in --with b=pr --expr 'x *
    /// b'; may be given several times
    #[arg(long, value_name = "NAME=VARIABLE", value_parser = parse_with, requires = "expr")]
    pub with: Vec<(String, String)>,
    /// Read all chunks: use no statistics of chunks on storage nodes, and keep none
    #[arg(long)]
    pub no_statistics: bool,
    /// One answer for each group: DIM=VARIABLE by the values of a variable along DIM, or TIME.PART by a part of its
    /// dates: year, season, quarter, month, day, dayofyear, hour. Several dimensions may be grouped
    #[arg(long, value_name = "DIM=VARIABLE|TIME.PART", value_parser = parse_groupby)]
    pub groupby: Vec<(String, String)>,
    /// One answer for every LENGTH elements of a dimension. 'trim' drops a shorter rest at its end, 'pad' makes it a
    /// shorter group; without either, a rest is an error
    #[arg(long, value_name = "DIM=LENGTH[,trim|pad]", value_parser = parse_coarsen)]
    pub coarsen: Vec<(String, u64, Boundary)>,
    /// One answer for every LENGTH of time, labelled by its beginning: a number of hours (6h) or days (5D), months
    /// (MS), quarters (QS, QS-DEC) or years (YS)
    #[arg(long, value_name = "TIME=LENGTH", value_parser = parse_resample)]
    pub resample: Vec<(String, Frequency)>,
    /// Weights for sum and mean: DIM=VARIABLE along DIM, or LAT=coslat, the cosine of latitudes in degrees
    #[arg(long, value_name = "DIM=VARIABLE|LAT=coslat", value_parser = parse_weights)]
    pub weights: Vec<(String, String)>,
    /// Draw the answer: one dimension as a line, a histogram as bars, two dimensions as a map
    #[arg(long, value_name = "FILE.png")]
    pub plot: Option<PathBuf>,
}

impl ArrayArgs {
    /// The first of these options, other than `--var`, that is given.
    pub fn first_given(&self) -> Option<&'static str> {
        let given = [
            ("--axes", self.axes.is_some()),
            ("--select", !self.select.is_empty()),
            ("--isel", !self.isel.is_empty()),
            ("--expr", self.expr.is_some()),
            ("--no-statistics", self.no_statistics),
            ("--groupby", !self.groupby.is_empty()),
            ("--coarsen", !self.coarsen.is_empty()),
            ("--resample", !self.resample.is_empty()),
            ("--weights", !self.weights.is_empty()),
            ("--plot", self.plot.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }
}

fn parse_select(text: &str) -> Result<(String, AxisSelection), String> {
    let (name, part) = split_name(text, "lat=-30:30")?;
    Ok((name, AxisSelection::values(part)?))
}

fn parse_isel(text: &str) -> Result<(String, AxisSelection), String> {
    let (name, part) = split_name(text, "time=0:12")?;
    Ok((name, AxisSelection::index(part)?))
}

fn parse_with(text: &str) -> Result<(String, String), String> {
    let (name, variable) = split_texts(text, "b=pr")?;
    let word = |c: char| c.is_alphanumeric() || c == '_';
    if name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(word) {
        return Err(format!(
            "'{name}' is not a name in an expression; use letters, digits and _, as in b=pr"
        ));
    }
    Ok((name, variable))
}

/// `time.month` is short for `time=time.month`.
fn parse_groupby(text: &str) -> Result<(String, String), String> {
    match text.rsplit_once('.') {
        Some((time, part)) if !text.contains('=') && !time.is_empty() && !part.is_empty() => {
            Ok((time.to_owned(), text.to_owned()))
        }
        _ => split_texts(text, "time.month, or time=season_index"),
    }
}

fn parse_coarsen(text: &str) -> Result<(String, u64, Boundary), String> {
    let (name, window) = split_name(text, "lat=4,trim")?;
    let (length, boundary) = match window.split_once(',') {
        None => (window, Boundary::Exact),
        Some((length, "exact")) => (length, Boundary::Exact),
        Some((length, "trim")) => (length, Boundary::Trim),
        Some((length, "pad")) => (length, Boundary::Pad),
        Some((_, other)) => {
            return Err(format!("'{other}' is not exact, trim or pad; write for example lat=4,trim"));
        }
    };
    match length.trim().parse() {
        Ok(length) if length > 0 => Ok((name, length, boundary)),
        _ => Err(format!("'{length}' is not a number of elements; write for example lat=4,trim")),
    }
}

fn parse_resample(text: &str) -> Result<(String, Frequency), String> {
    let (name, length) = split_name(text, "time=MS")?;
    Ok((name, length.parse()?))
}

fn parse_weights(text: &str) -> Result<(String, String), String> {
    split_texts(text, "lat=coslat")
}

fn split_texts(text: &str, example: &str) -> Result<(String, String), String> {
    let (name, value) = split_name(text, example)?;
    if value.is_empty() {
        return Err(format!("the value after '=' is missing; write for example {example}"));
    }
    Ok((name, value.to_owned()))
}

/// Splits `NAME=VALUE` into its name and its value.
fn split_name<'a>(text: &'a str, example: &str) -> Result<(String, &'a str), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value)),
        _ => Err(format!("'{text}' has no NAME=; write for example {example}")),
    }
}
