//! What `run --var` makes of a variable, and the words that reports use, explained for `gristmill kernels`.

use serde_json::{Value as Json, json};

/// An operation over a variable.
pub(super) struct Operation {
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What it gives, and what missing values and empty cells do.
    pub details: &'static str,
    /// Its own parameters.
    pub params: &'static [Param],
}

/// A parameter: its name, what it says, and an example.
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

const MIN_COUNT: Param = ("min_count", "fewer elements than this make no number; default 0", "10");
const DDOF: Param = ("ddof", "degrees of freedom taken from the count; default 0", "1");

/// All of them.
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
        details: "Of integers an i64 or u64, and an error beyond 64 bits; of floats in their type, rounded once: a sum of f32 is \
                  rounded to f32, and 'totals' gives it as f64. 0 of nothing. --weights weighs.",
        params: &[MIN_COUNT],
    },
    Operation {
        name: "mean",
        summary: "the mean",
        details: "f64 of integers, floats in their type; NaN of nothing. --weights weighs.",
        params: &[MIN_COUNT],
    },
    Operation {
        name: "min",
        summary: "the smallest element",
        details: "In the type of the elements. NaN where all are missing; an error for no elements.",
        params: &[MIN_COUNT],
    },
    Operation { name: "max", summary: "the largest element", details: "As min.", params: &[MIN_COUNT] },
    Operation {
        name: "var",
        summary: "the variance",
        details: "Over the count less ddof; types as the mean.",
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
        summary: "the place of the smallest element",
        details: "An i64, counted in C order within the dimensions that are reduced; of equal ones the first.",
        params: &[],
    },
    Operation {
        name: "argmax",
        summary: "the place of the largest element",
        details: "As argmin.",
        params: &[],
    },
    Operation { name: "any", summary: "whether any element is true", details: "NaN is true.", params: &[] },
    Operation {
        name: "all",
        summary: "whether all elements are true",
        details: "True of nothing.",
        params: &[],
    },
    Operation {
        name: "totals",
        summary: "what sums and means are made of: n and sum",
        details: "Two arrays at once: n, how many elements are not missing, i64, and sum, their sum, which is f64 for f32. With \
                  --weights weights instead of n: the sum of the weights of those elements. Means of parts of a file are put \
                  together of totals.",
        params: &[MIN_COUNT],
    },
    Operation {
        name: "moments",
        summary: "what means and variances are made of: n, sum, m2, min, max",
        details: "Five arrays at once: n, i64; sum; m2, the sum of squared distances from the mean, f64; min and max. Of f64 a sixth, sum_low: what the rounding of the sum left. m2 / n is the \
                  variance.",
        params: &[MIN_COUNT],
    },
    Operation {
        name: "comoments",
        summary: "what covariances are made of, of an expression that is a product",
        details: "Of --expr 'x * y', with --with y=OTHER: n, the pairs of which neither is missing; the sums x and y, and what \
                  their rounding left, x_low and y_low; xy, the sum of (x - mean of x) * (y - mean of y). xy / n is the \
                  covariance.",
        params: &[],
    },
    Operation { name: "median", summary: "the median", details: "f64. In a few passes.", params: &[] },
    Operation {
        name: "quantile",
        summary: "quantiles at given shares",
        details: "f64, linear between two elements; one dimension more, the first, where there are several. In a few passes.",
        params: &[("q", "shares from 0 to 1; also -q", "0.5,0.9")],
    },
    Operation {
        name: "histogram",
        summary: "how many elements are in each bin",
        details: "i64; one dimension more, the last. Bin i holds edges[i] <= x < edges[i+1], the last one also its upper edge. What \
                  is missing or outside is not counted. Without range= the ends are the smallest and the largest element, which \
                  takes a request of its own.",
        params: &[
            ("bins", "number of bins of one width; default 10; also --bins", "100"),
            ("range", "lower and upper edge, LOW:HIGH", "0:1"),
            ("edges", "all edges instead, in ascending order", "0,1,5"),
        ],
    },
];

/// What a report says of the numbers of an answer, in one word, and what that means.
const WORDS: [(&str, &str); 3] = [
    (
        "exact",
        "Exact: the number that is right, rounded once to its type, whatever the parts that the file was read in, on any \
         number of cores, stripes or nodes.",
    ),
    (
        "binned",
        "Binned: the same bits whatever the parts that the data was read in, and within a bound of the exact number that the \
         elements of the cell alone set. A sum of floats of a grid is kept in three bins for each cell, which are set by the \
         largest element of that cell: what an element has below 2^-80 of that one is left out. Variances have four bins, for \
         squares down to 2^-105 of the largest.",
    ),
    (
        "fixed",
        "Fixed: the same bits on every placement, because the order of operations is part of the kernel. They need not be those of \
         another program.",
    ),
];

/// The operation of a name.
pub(super) fn find(name: &str) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|operation| operation.name == name)
}

/// What a word of a report means.
pub(super) fn word(name: &str) -> Option<&'static str> {
    WORDS.iter().find(|(word, _)| *word == name).map(|(_, meaning)| *meaning)
}

impl Operation {
    /// Its parameters, those of all operations behind its own.
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
