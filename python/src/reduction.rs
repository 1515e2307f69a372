//! Reductions as the Python side puts them.

use std::time::Duration;

use gristmill_array::{Boundary, Groups, Op, Reduction, Selection, Weights, Windows};
use gristmill_wire::Place;
use pyo3::prelude::*;

use crate::dataset::{Taken, selection};
use crate::errors::Failure;

/// A reduction of a variable.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Reduce {
    pub decoded: bool,
    taken: Vec<Taken>,
    expr: Option<String>,
    op: String,
    /// Shares of quantiles, or edges of bins.
    numbers: Vec<f64>,
    axes: Option<Vec<i64>>,
    skipna: bool,
    ddof: u64,
    /// Axes with a number for each element.
    weights: Vec<(i64, Vec<f64>)>,
    /// Axes with the group of each element, and how many groups there are.
    groups: Vec<(i64, Vec<i64>, u64)>,
    /// Axes with the length of a window.
    windows: Vec<(i64, u64)>,
    place: String,
    pub lanes: Option<usize>,
    timeout: Option<f64>,
}

impl Reduce {
    pub fn place(&self) -> Result<Place, Failure> {
        crate::run::place(&self.place)
    }

    pub fn limit(&self) -> Result<Option<Duration>, Failure> {
        crate::run::limit(self.timeout)
    }

    /// What is taken, what is computed of it, and what is made of that.
    pub fn reduction(self) -> Result<(Selection, Option<String>, Reduction), Failure> {
        let op = match self.op.as_str() {
            "quantile" => Op::Quantile(self.numbers),
            "histogram" => Op::Histogram(self.numbers),
            other => Op::named(other)
                .ok_or_else(|| Failure::usage(format!("'{other}' is no operation on a variable")))?,
        };
        let reduction = Reduction {
            axes: self.axes,
            keepdims: false,
            skipna: Some(self.skipna),
            ddof: self.ddof,
            weights: self.weights.into_iter().map(|(axis, values)| Weights { axis, values }).collect(),
            groups: self
                .groups
                .into_iter()
                .map(|(axis, labels, count)| Groups { axis, labels, count })
                .collect(),
            windows: self
                .windows
                .into_iter()
                .map(|(axis, length)| Windows { axis, length, boundary: Boundary::Exact })
                .collect(),
            ..Reduction::new(op)
        };
        Ok((selection(self.taken), self.expr, reduction))
    }
}
