//! Comparisons of the accumulators with exact rationals, Python and closed forms.

mod integers;
mod long_sums;
mod moments;
mod oracle;
mod python;
mod ratio;
mod rounding_mode;
mod states;
mod sums;
mod values;
