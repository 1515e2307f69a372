//! What a request makes of the elements: an operation, and what becomes of each axis.

use serde::{Deserialize, Serialize};

use crate::error::ArrayError;

/// Most quantiles of a request.
pub const MAX_QUANTILES: usize = 16;
/// Most bins of a histogram.
pub const MAX_BINS: usize = 1 << 16;
/// Most labels of all axes together.
pub const MAX_LABELS: u64 = 1 << 24;
/// Most vectors of weights: of two the product is the same in either order.
pub const MAX_WEIGHTS: usize = 2;

/// An operation. Results are those of xarray 2024.9 and later with NumPy 2, but correctly rounded; where they differ in
/// kind it is said here. "Missing" is NaN, and counts only with `skipna`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// How many elements are not missing; i64. NaNs never count.
    Count,
    /// The sum: i64 or u64 of integers (an error beyond 64 bits, where others wrap), floats in their type; 0 of nothing.
    Sum,
    /// The mean: f64 of integers, floats in their type; NaN of nothing.
    Mean,
    /// The variance over `n - ddof`, types as the mean.
    Var,
    /// Its square root.
    Std,
    /// The smallest, in the type of the elements; of zeros -0.0. NaN where all are missing; an error for no elements, or for a
    /// group of integers without any.
    Min,
    /// The largest; of zeros +0.0. As `Min` otherwise.
    Max,
    /// The place of the smallest, i64: of equal ones the first; zeros are equal; counted in C order within the axes that
    /// are reduced. With `skipna` an error where all are missing, without it the place of the first NaN if there is one.
    ArgMin,
    /// The place of the largest, as `ArgMin`.
    ArgMax,
    /// Whether any is true. NaN is.
    Any,
    /// Whether all are true; true of nothing.
    All,
    /// Five arrays at once: `n`, `sum`, `m2` (the sum of squared distances from the mean, f64), `min`, `max`. Of f64 a sixth,
    /// `sum_low`: what the rounding of the sum left, so that `sum + sum_low` is the sum to twice as many digits.
    Moments,
    /// Quantiles at these shares, f64, linear between two elements. One axis more, the first.
    Quantile(Vec<f64>),
    /// How many elements are in each bin between these edges, i64; the last bin has both its edges, as NumPy has it. One
    /// axis more, the last. What is missing or outside is not counted.
    Histogram(Vec<f64>),
    /// What sums and means are made of, at once: `n`, i64, and `sum`, which is f64 for f32. With weights `weights` instead of
    /// `n`: the sum of those of the elements that are not missing, f64.
    Totals,
    /// Sums over pairs of f64, which are the two factors of an expression that is a product, `x * y`. `n` counts the pairs without
    /// a missing element. `x` and `y` are the sums of the factors, and `x_low` and `y_low` what their rounding left. `xy` is the
    /// sum of `(x - mean of x) * (y - mean of y)`.
    Comoments,
}

impl Op {
    /// The operations that take no numbers of their own.
    #[rustfmt::skip]
    pub const NAMES: [&str; 14] = [
        "count", "sum", "mean", "min", "max", "var", "std", "argmin", "argmax", "any", "all", "totals", "moments",
        "comoments",
    ];

    /// The operation of a name in [`NAMES`](Op::NAMES).
    pub fn named(name: &str) -> Option<Op> {
        Some(match name {
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
            "totals" => Op::Totals,
            "moments" => Op::Moments,
            "comoments" => Op::Comoments,
            _ => return None,
        })
    }

    /// Whether the answer has several arrays.
    pub const fn several(&self) -> bool {
        matches!(self, Op::Totals | Op::Moments | Op::Comoments)
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Op::Count => "count",
            Op::Sum => "sum",
            Op::Mean => "mean",
            Op::Var => "var",
            Op::Std => "std",
            Op::Min => "min",
            Op::Max => "max",
            Op::ArgMin => "argmin",
            Op::ArgMax => "argmax",
            Op::Any => "any",
            Op::All => "all",
            Op::Totals => "totals",
            Op::Moments => "moments",
            Op::Comoments => "comoments",
            Op::Quantile(_) => "quantile",
            Op::Histogram(_) => "histogram",
        }
    }

    /// A histogram of so many bins of one width from `low` to `high`, edges as `numpy.linspace` has them.
    ///
    /// # Errors
    /// No bins, too many, or ends that are not finite numbers in order.
    pub fn histogram(bins: usize, low: f64, high: f64) -> Result<Op, ArrayError> {
        if bins == 0 || bins > MAX_BINS || !(low.is_finite() && high.is_finite() && low < high) {
            let why = format!("give 1 to {MAX_BINS} bins between two numbers, the lower first");
            return Err(ArrayError::Reduction { op: "histogram", why });
        }
        let step = (high - low) / bins as f64;
        let edges = (0..bins).map(|i| i as f64 * step + low).chain([high]);
        Ok(Op::Histogram(edges.collect()))
    }

    pub(crate) fn check(&self) -> Result<(), ArrayError> {
        let wrong = |why: String| Err(ArrayError::Reduction { op: self.name(), why });
        match self {
            Op::Quantile(shares) if shares.is_empty() || shares.len() > MAX_QUANTILES => {
                wrong(format!("give 1 to {MAX_QUANTILES} shares"))
            }
            Op::Quantile(shares) if !shares.iter().all(|q| (0.0..=1.0).contains(q)) => {
                wrong("shares are numbers from 0 to 1".into())
            }
            Op::Histogram(edges) if edges.len() < 2 || edges.len() > MAX_BINS + 1 => {
                wrong(format!("give 2 to {} edges", MAX_BINS + 1))
            }
            Op::Histogram(edges) if edges.iter().any(|edge| edge.is_nan()) || !edges.is_sorted() => {
                wrong("edges must not decrease".into())
            }
            _ => Ok(()),
        }
    }
}

/// Weights along one axis of the selection: one number for each of its elements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Weights {
    /// The axis; negative from the end.
    pub axis: i64,
    /// Finite numbers.
    pub values: Vec<f64>,
}

/// Groups along one axis of the selection: its place is taken by an axis of groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Groups {
    /// The axis; negative from the end.
    pub axis: i64,
    /// The group of each element, from 0; -1 for none.
    pub labels: Vec<i64>,
    /// How many groups there are.
    pub count: u64,
}

/// Windows of one length along one axis of the selection (coarsen): its place is taken by an axis of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// The axis; negative from the end.
    pub axis: i64,
    /// Elements of a window, at least 1.
    pub length: u64,
    /// What becomes of elements that do not fill a window.
    pub boundary: Boundary,
}

/// What becomes of the elements at the end of an axis that do not fill a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Boundary {
    /// There must be none.
    Exact,
    /// They are left out.
    Trim,
    /// They are a window of their own, as if filled up with what is missing.
    Pad,
}

/// An operation and the axes it goes over. Axes are those of the selection, without the ones that it dropped.
///
/// Each axis is kept, reduced, or mapped: by groups or windows to an axis of its own length in the same place. Resampling
/// is groups whose labels the caller made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reduction {
    /// The operation.
    pub op: Op,
    /// Axes that are reduced; negative from the end. Where nothing is said all, but none beside groups or windows.
    pub axes: Option<Vec<i64>>,
    /// Whether reduced axes stay, with length 1.
    pub keepdims: bool,
    /// Whether NaNs count as missing; as in xarray they do where nothing is said.
    pub skipna: Option<bool>,
    /// Degrees of freedom taken from the count in variances.
    pub ddof: u64,
    /// Fewer elements than this make a sum, mean, variance, smallest or largest of floats NaN.
    pub min_count: u64,
    /// Weights, for `Sum` and `Mean`.
    pub weights: Vec<Weights>,
    /// Groups.
    pub groups: Vec<Groups>,
    /// Windows.
    pub windows: Vec<Windows>,
}

impl Reduction {
    /// Over all axes, with everything else as it is where nothing is said.
    pub const fn new(op: Op) -> Reduction {
        Reduction {
            op,
            axes: None,
            keepdims: false,
            skipna: None,
            ddof: 0,
            min_count: 0,
            weights: Vec::new(),
            groups: Vec::new(),
            windows: Vec::new(),
        }
    }

    /// The same over these axes.
    pub fn over(self, axes: &[i64]) -> Reduction {
        Reduction { axes: Some(axes.to_vec()), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_found_by_their_names() {
        for name in Op::NAMES {
            assert_eq!(Op::named(name).map(|op| op.name()), Some(name));
        }
        assert_eq!(Op::named("quantile"), None);
    }
}
