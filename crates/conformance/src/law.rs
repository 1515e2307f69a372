//! The laws, and how a broken one is told: in a sentence that says what was done and what came out.

use std::fmt;

/// The laws, as in `gristmill_kernel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// The answer is that of the reference.
    Reference,
    /// Any split into blocks gives the same result.
    Blocks,
    /// Saving and restoring between any two records changes nothing.
    Save,
    /// Merging is associative on adjacent extents.
    Merge,
    /// Merging is free of order, where the kernel declares it.
    Order,
    /// The identity changes nothing.
    Identity,
    /// The same bits on any number of targets and lanes, interrupted or not.
    Place,
    /// A state that makes no sense is an error, not a panic.
    State,
    /// What is promised of each call: progress, positions, states that can be read again.
    Contract,
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Law::Reference => "the answer is that of the reference",
            Law::Blocks => "any split into blocks gives the same result",
            Law::Save => "save and restore between any two records change nothing",
            Law::Merge => "merge is associative on adjacent extents",
            Law::Order => "merge is free of order, as the kernel declares with Order::Any",
            Law::Identity => "a fold over nothing is the identity of merge",
            Law::Place => "every place gives the same bits",
            Law::Contract => "each call keeps what the contract says of it",
            Law::State => "a state that makes no sense is an error and never a panic",
        })
    }
}

/// A law that a kernel broke. `Debug` is the same sentence as `Display`, so that `?` in a `main` and `unwrap` in a test
/// say it too.
#[derive(Clone, thiserror::Error)]
pub struct Broken {
    /// The kernel.
    pub kernel: &'static str,
    /// The law.
    pub law: Law,
    /// How the data was cut, saved, merged or placed; empty for the law of the reference.
    pub world: String,
    /// What should come out: what the reference gives, or one fold over one block.
    pub expected: String,
    /// What came out in this world.
    pub got: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Broken { kernel, law, world, expected, got } = self;
        match law {
            Law::Reference => write!(
                f,
                "kernel '{kernel}' gives a wrong answer: the reference gives {expected}, and one fold over the whole \
                 input gives {got}"
            ),
            Law::State | Law::Contract => {
                write!(f, "kernel '{kernel}' breaks the law that {law}: {world} gives {got}, not {expected}")
            }
            _ => write!(
                f,
                "kernel '{kernel}' breaks the law that {law}: one fold over the whole input gives {expected}, but it \
                 gives {got} where {world}"
            ),
        }
    }
}

impl fmt::Debug for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
