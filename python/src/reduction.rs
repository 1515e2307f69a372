//! Reductions, as the Python side passes them.

use std::time::Duration;

use gristmill_array::{Boundary, Constant, Groups, Op, Reduction, Weights, Windows};
use gristmill_client::Operands;
use gristmill_kernel::{ArrayType, DType};
use gristmill_wire::FoldPlace;
use pyo3::prelude::*;

use crate::dataset::{Taken, selection};
use crate::errors::Failure;

/// A constant of an expression: its name, its type, its lengths along the axes that are taken, and its elements,
/// little-endian in C order.
type SentConstant = (String, String, Vec<u64>, Vec<u8>);

/// A reduction over variables.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Reduce {
    /// What the expression calls each variable, its name in the file, and whether it is decoded.
    variables: Vec<(String, String, bool)>,
    constants: Vec<SentConstant>,
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
    pub fn place(&self) -> Result<FoldPlace, Failure> {
        crate::run::place(&self.place)
    }

    pub fn limit(&self) -> Result<Option<Duration>, Failure> {
        crate::run::limit(self.timeout)
    }

    /// What is taken and computed, and what is made of that.
    pub fn reduction(self) -> Result<(Operands, Reduction), Failure> {
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
        let operands = Operands {
            variables: self.variables,
            selection: selection(self.taken),
            constants: self.constants.into_iter().map(constant).collect::<Result<_, _>>()?,
            expr: self.expr,
        };
        Ok((operands, reduction))
    }
}

fn constant((name, dtype, lengths, bytes): SentConstant) -> Result<(String, Constant), Failure> {
    let dtype = match &*dtype {
        "bool" => ArrayType::Bool,
        other => ArrayType::Number(
            other
                .parse::<DType>()
                .map_err(|_| Failure::usage(format!("'{other}' is no type of constants")))?,
        ),
    };
    Ok((name, Constant { dtype, lengths, bytes }))
}
