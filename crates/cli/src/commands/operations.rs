//! Explanations for `gristmill kernels`: the operations of `run --var`, and the words that reports use.

use serde_json::{Value as Json, json};

/// An operation over a variable.
pub(super) struct Operation {
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// The result, and the effect of missing values and empty cells.
    pub details: &'static str,
    /// Parameters of this operation only.
    pub params: &'static [Param],
}

/// A parameter: its name, its meaning, and an example.
pub(super) type Param = (&'static str, &'static str, &'static str);

/// Parameters of all operations.
pub(super) const COMMON: &[Param] = &[
    ("keepdims", "whether reduced dimensions stay, with length 1; default false", "true"),
    ("skipna", "whether NaN counts as missing; default true for floats", "false"),
    (
        "valid",
        "whether values outside valid_min, valid_max and valid_range are missing; default false",
        "true",
    ),
];

const MIN_COUNT: Param =
    ("min_count", "with fewer elements than this the result is missing; default 0", "10");
const DDOF: Param = ("ddof", "degrees of freedom to subtract from the count; default 0", "1");

/// All operations.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        name: "count",
        summary: "how many elements are not missing",
        details: "An i64 for each cell.",
        params: &[],
    },
    Operation {
        name: "sum",
        summary: "the sum of the elements that are not missing",
        details: "For integers an i64 or u64, and an error beyond 64 bits. For floats their type, rounded once: a \
                  sum of f32 is rounded to f32; 'totals' gives it as f64. 0 if there are no elements. --weights \
                  gives weights.",
        params: &[MIN_COUNT],
    },
    Operation {
        name: "mean",
        summary: "the mean",
        details: "f64 for integers; floats keep their type. NaN if there are no elements. --weights gives weights.",
        params: &[MIN_COUNT],
    },
    Operation {
        name: "min",
        summary: "the smallest element",
        details: "In the type of the elements. NaN where all are missing; an error for no elements.",
        params: &[MIN_COUNT],
    },
    Operation { name: "max", summary: "the largest element", details: "As for min.", params: &[MIN_COUNT] },
    Operation {
        name: "var",
        summary: "the variance",
        details: "Divided by the count less ddof. Types as for mean.",
        params: &[DDOF, MIN_COUNT],
    },
    Operation {
        name: "std",
        summary: "the standard deviation",
        details: "The square root of var.",
        params: &[DDOF, MIN_COUNT],
    },
    Operation {
        name: "argmin",
        summary: "the index of the smallest element",
        details: "An i64, counted in C order within the reduced dimensions. The first of equal elements.",
        params: &[],
    },
    Operation {
        name: "argmax",
        summary: "the index of the largest element",
        details: "As for argmin.",
        params: &[],
    },
    Operation { name: "any", summary: "whether any element is true", details: "NaN is true.", params: &[] },
    Operation {
        name: "all",
        summary: "whether all elements are true",
        details: "True if there are no elements.",
        params: &[],
    },
    Operation {
        name: "totals",
        summary: "the parts of sums and means: n and sum",
        details: "Two arrays: n, the number of elements that are not missing, i64; and sum, their sum, which is f64 \
                  for f32. With --weights, 'weights' instead of n: the sum of the weights of these elements. Means \
                  of parts of a file are combined from totals.",
        params: &[MIN_COUNT],
    },
    Operation {
        name: "moments",
        summary: "the parts of means and variances: n, sum, m2, min, max",
        details: "Five arrays: n, i64; sum; m2, the sum of squared distances from the mean, f64; min and max. For \
                  f64 a sixth, sum_low: the rounding error of the sum. m2 / n is the variance.",
        params: &[MIN_COUNT],
    },
    Operation {
        name: "comoments",
        summary: "the parts of covariances, for an expression that is a product",
        details: "For --expr 'x * y' and --with y=OTHER: n, the number of pairs in which neither is missing; the \
                  sums x and y, and their rounding errors, x_low and y_low; xy, the sum of (x - mean of x) * (y - \
                  mean of y); x_m2 and y_m2, the sums of squared distances of x and y from their means. xy / n \
                  is the covariance, and xy / sqrt(x_m2 * y_m2) the correlation.",
        params: &[],
    },
    Operation { name: "median", summary: "the median", details: "f64. Takes a few passes.", params: &[] },
    Operation {
        name: "quantile",
        summary: "quantiles at given shares",
        details: "f64, linear between two elements. Several shares add a first dimension. Takes a few passes.",
        params: &[("q", "shares from 0 to 1; also -q", "0.5,0.9")],
    },
    Operation {
        name: "histogram",
        summary: "how many elements are in each bin",
        details: "i64, with the bins as an additional last dimension. Bin i holds edges[i] <= x < edges[i+1]; the \
                  last bin also holds its upper edge. Missing elements and elements outside are not counted. Without \
                  range= the ends are the smallest and the largest element, which takes another request.",
        params: &[
            ("bins", "number of bins of equal width; default 10; also --bins", "100"),
            ("range", "lower and upper edge, LOW:HIGH", "0:1"),
            ("edges", "all edges instead, in ascending order", "0,1,5"),
        ],
    },
];

/// The words of reports for the numerics of an answer, and their meanings.
const WORDS: [(&str, &str); 3] = [
    (
        "exact",
        "Exact: the mathematically exact result, rounded once to its type. It does not depend on how the file was \
         split, nor on the number of cores, stripes or nodes.",
    ),
    (
        "binned",
        "Binned: the same bits however the data was split. The error has a bound that depends on the elements of the \
         cell only. A sum of floats of a grid is kept in three bins for each cell. The largest element of the cell \
         sets the bins: the part of an element below 2^-80 of the largest is left out. Variances have four bins, for \
         squares down to 2^-105 of the largest.",
    ),
    (
        "fixed",
        "Fixed: the same bits on every placement, because the order of operations is part of the kernel. Another \
         program may give other bits.",
    ),
];

/// The operation of a name.
pub(super) fn find(name: &str) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|operation| operation.name == name)
}

/// The meaning of a word of a report.
pub(super) fn word_meaning(name: &str) -> Option<&'static str> {
    WORDS.iter().find(|(word, _)| *word == name).map(|(_, meaning)| *meaning)
}

impl Operation {
    /// The parameters of this operation, and then those of all operations.
    pub fn all_params(&self) -> impl Iterator<Item = &'static Param> {
        self.params.iter().chain(COMMON)
    }

    pub fn describe(&self) -> Json {
        let param = |(name, help, example): &Param| json!({ "name": name, "help": help, "example": example });
        json!({
            "name": self.name, "summary": self.summary, "details": self.details, "input": "a variable (--var)",
            "params": self.all_params().map(param).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn every_operation_is_explained() {
        for name in gristmill_array::Op::NAMES {
            assert!(find(name).is_some(), "{name}");
        }
    }
}
