//! The operation of a request and its axes.

use serde::{Deserialize, Serialize};

use crate::error::ArrayError;

/// The name of the kernel in errors.
pub(crate) const NAME: &str = "reduction";

/// Most quantiles of a request.
pub const MAX_QUANTILES: usize = 16;
/// Most bins of a histogram.
pub const MAX_BINS: usize = 1 << 16;
/// Most labels of all axes together.
pub const MAX_LABELS: u64 = 1 << 24;
/// Most vectors of weights. The product of two is the same in either order; that of more may not be.
pub const MAX_WEIGHTS: usize = 2;

/// An operation. Results are those of xarray 2024.9 and later with NumPy 2, but correctly rounded; other differences
/// are listed here. NaN counts as missing only with `skipna`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Number of elements that are not NaN, as i64.
    Count,
    /// The sum: i64 or u64 for integers, the same type for floats; 0 without elements. A sum of integers beyond 64 bits
    /// is an error (NumPy wraps).
    Sum,
    /// The mean: f64 for integers, the same type for floats; NaN without elements.
    Mean,
    /// The variance, divided by `n - ddof`. Types are those of the mean.
    Var,
    /// The square root of the variance.
    Std,
    /// The smallest element, in its type; -0.0 is below +0.0. NaN if all are missing. An error without elements, or for
    /// a group of integers without elements.
    Min,
    /// The largest element, with the rules of `Min`.
    Max,
    /// Position of the first smallest element, as i64, counted in C order within the reduced axes. -0.0 and +0.0 are
    /// equal. With `skipna` an error if all are missing; without it the position of the first NaN, if there is one.
    ArgMin,
    /// Position of the first largest element, with the rules of `ArgMin`.
    ArgMax,
    /// Whether any element is true. NaN is true.
    Any,
    /// Whether all elements are true; true without elements.
    All,
    /// Five arrays: `n`, `sum`, `m2` (the sum of squared distances from the mean, f64), `min`, `max`. For f64 there is
    /// a sixth, `sum_low`: the rounding error of the sum, so that `sum + sum_low` is the sum to twice as many digits.
    Moments,
    /// Quantiles at these shares (0 to 1) as f64, linear between two elements. They are an additional first axis.
    Quantile(Vec<f64>),
    /// Number of elements in each bin between these edges, as i64. The last bin includes both its edges, as in NumPy.
    /// Missing elements and elements outside are not counted. The bins are an additional last axis.
    Histogram(Vec<f64>),
    /// The parts of a mean: `n`, i64, and `sum`, which is f64 for f32. With weights there is `weights` instead of `n`:
    /// the sum of the weights of the elements that are not missing, f64.
    Totals,
    /// Sums over pairs of f64: the two factors of an expression that is a product, `x * y`. `n` counts the pairs
    /// without a missing element. `x` and `y` are the sums of the factors, and `x_low` and `y_low` their rounding
    /// errors. `xy` is the sum of `(x - mean of x) * (y - mean of y)`, and `x_m2` and `y_m2` are the sums of the squares of
    /// these distances.
    Comoments,
}

impl Op {
    /// Names of the operations without parameters.
    #[rustfmt::skip]
    pub const NAMES: [&str; 14] = [
        "count", "sum", "mean", "min", "max", "var", "std", "argmin", "argmax", "any", "all", "totals", "moments",
        "comoments",
    ];

    /// Returns the operation of a name in [`NAMES`](Op::NAMES).
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

    /// The name of the operation.
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

    /// A histogram of `bins` bins of one width from `low` to `high`, with the edges of `numpy.linspace`.
    ///
    /// # Errors
    /// Returns [`ArrayError::Reduction`] unless there are 1 to [`MAX_BINS`] bins and `low` and `high` are finite
    /// numbers with `low < high`.
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

/// Groups along one axis of the selection. An axis of groups takes its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Groups {
    /// The axis; negative from the end.
    pub axis: i64,
    /// The group of each element, from 0; -1 for an element without a group.
    pub labels: Vec<i64>,
    /// Number of groups.
    pub count: u64,
}

/// Windows of one length along one axis of the selection (coarsen). An axis of windows takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// The axis; negative from the end.
    pub axis: i64,
    /// Elements of a window, at least 1.
    pub length: u64,
    /// Treatment of elements that do not fill a window.
    pub boundary: Boundary,
}

/// Treatment of the elements at the end of an axis that do not fill a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Boundary {
    /// Such elements are an error.
    Exact,
    /// Such elements are left out.
    Trim,
    /// Such elements form a shorter window.
    Pad,
}

/// An operation and its axes. Axes are counted in the selection, without the axes that it dropped.
///
/// Each axis is kept, reduced, or replaced by an axis of groups or of windows. Resampling is groups whose labels the
/// caller made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reduction {
    /// The operation.
    pub op: Op,
    /// Axes to reduce; negative from the end. `None` means all axes, or no axis if there are groups or windows.
    pub axes: Option<Vec<i64>>,
    /// Whether reduced axes stay in the answer, with length 1.
    pub keepdims: bool,
    /// Whether NaN counts as missing. `None` means true, as in xarray.
    pub skipna: Option<bool>,
    /// Number subtracted from the count in variances.
    pub ddof: u64,
    /// A sum, mean, variance, smallest or largest of fewer floats than this is NaN.
    pub min_count: u64,
    /// Weights, for `Sum`, `Mean` and `Totals`.
    pub weights: Vec<Weights>,
    /// Groups, at most once along an axis.
    pub groups: Vec<Groups>,
    /// Windows, at most once along an axis.
    pub windows: Vec<Windows>,
}

impl Reduction {
    /// A reduction over all axes, with the defaults for everything else.
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

    /// Sets the axes to reduce.
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
