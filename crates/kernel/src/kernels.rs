//! The built-in kernels, and the parts that several of them use.

pub(crate) mod accumulate;
pub(crate) mod bounds;
pub(crate) mod count;
pub(crate) mod edges;
pub(crate) mod extreme;
pub(crate) mod first;
pub(crate) mod gaussian;
pub(crate) mod grep;
pub(crate) mod histogram;
pub(crate) mod kmeans;
pub(crate) mod lookup;
pub(crate) mod mean;
pub(crate) mod minmax;
pub(crate) mod order;
pub(crate) mod quantile;
pub(crate) mod sum;
pub(crate) mod top;
pub(crate) mod unique;
pub(crate) mod var;
pub(crate) mod wc;
