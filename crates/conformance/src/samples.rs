//! Small kernels: one for each feature of the contract, and some that break a law on purpose.

mod broken;
mod centred;
mod dot;
mod echo;
mod ends;
mod generator;
mod multiples;
mod prefix;
mod stencil;
mod table;
mod total;
mod welford;

pub use broken::{BlockCounter, FirstWins, Forgetful, Idler, LeftHeavy, Panicky, Zero};
pub use centred::CentredVariance;
pub use dot::Dot;
pub use echo::Echo;
pub use ends::Ends;
pub use generator::Triangle;
pub use multiples::Multiples;
pub use prefix::Prefix;
pub use stencil::Stencil;
pub use table::Table;
pub use total::Total;
pub use welford::Welford;

use gristmill_kernel::Block;

/// The f64 values of a block.
pub(crate) fn floats<'a>(block: &Block<'a>) -> impl Iterator<Item = f64> + use<'a> {
    as_floats(block.data())
}

pub(crate) fn as_floats(bytes: &[u8]) -> impl Iterator<Item = f64> + use<'_> {
    bytes.as_chunks::<8>().0.iter().map(|x| f64::from_le_bytes(*x))
}
