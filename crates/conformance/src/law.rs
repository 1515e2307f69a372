//! The laws, and the sentence for a broken law. It states the setup and the result.

use std::fmt;

/// The laws, as in `gristmill_kernel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// The answer is the one of the reference.
    Reference,
    /// Any split into blocks gives the same result.
    Blocks,
    /// Saving and restoring between any two records changes nothing.
    Save,
    /// Merging is associative on adjacent extents.
    Merge,
    /// Merging gives the same result in any order, if the kernel declares so.
    Order,
    /// The identity changes nothing.
    Identity,
    /// The same bits on any number of targets and lanes, interrupted or not.
    Place,
    /// An invalid state is an error, not a panic.
    State,
    /// Each call keeps the contract: progress, positions, states that can be read again.
    Contract,
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Law::Reference => "the answer is the one of the reference",
            Law::Blocks => "any split into blocks gives the same result",
            Law::Save => "save and restore between any two records change nothing",
            Law::Merge => "merge is associative on adjacent extents",
            Law::Order => "merge gives the same result in any order, as the kernel declares with Order::Any",
            Law::Identity => "a fold over nothing is the identity of merge",
            Law::Place => "every place gives the same bits",
            Law::Contract => "each call keeps the contract",
            Law::State => "an invalid state is an error and never a panic",
        })
    }
}

/// A law that a kernel broke. `Debug` gives the same sentence as `Display`, because `?` in a `main` and `unwrap` in a
/// test print it.
#[derive(Clone, thiserror::Error)]
pub struct BrokenLaw {
    /// The kernel.
    pub kernel: &'static str,
    /// The law.
    pub law: Law,
    /// Description of how the data was cut, saved, merged or placed. Empty for the law of the reference.
    pub setup: String,
    /// Expected answer: the one of the reference, or of one fold over one block.
    pub expected: String,
    /// Answer with this setup.
    pub got: String,
}

impl fmt::Display for BrokenLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BrokenLaw { kernel, law, setup, expected, got } = self;
        match law {
            Law::Reference => write!(
                f,
                "kernel '{kernel}' gives a wrong answer: the reference gives {expected}, and one fold over the whole \
                 input gives {got}"
            ),
            Law::State | Law::Contract => {
                write!(f, "kernel '{kernel}' breaks the law that {law}: {setup} gives {got}, not {expected}")
            }
            _ => write!(
                f,
                "kernel '{kernel}' breaks the law that {law}: one fold over the whole input gives {expected}, but it \
                 gives {got} where {setup}"
            ),
        }
    }
}

impl fmt::Debug for BrokenLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
