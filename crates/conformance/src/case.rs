//! What is tested, and how a broken law is told.

use std::fmt;
use std::sync::Arc;

use gristmill_kernel::{Input, Kernel, KernelError, Position, Record, Value};

/// A kernel with data to fold.
#[derive(Clone)]
pub struct Case {
    pub(crate) kernel: Arc<dyn Kernel>,
    pub(crate) input: Input,
    pub(crate) data: Vec<u8>,
    pub(crate) second: Option<Vec<u8>>,
    pub(crate) side: Vec<Arc<[u8]>>,
}

impl Case {
    /// `data` are whole records of `input`, elements little-endian; empty for virtual records.
    pub fn new(kernel: Arc<dyn Kernel>, input: Input, data: Vec<u8>) -> Case {
        let input = input.for_kernel(&kernel.spec());
        Case { kernel, input, data, second: None, side: Vec::new() }
    }

    /// With a second input of as many records.
    pub fn with_second(mut self, second: Vec<u8>) -> Case {
        self.second = Some(second);
        self
    }

    /// With a side input that every fold gets whole.
    pub fn with_side(mut self, side: Vec<u8>) -> Case {
        self.side.push(side.into());
        self
    }

    /// Positions of the whole input.
    pub(crate) fn positions(&self) -> u64 {
        match self.kernel.spec().record {
            Record::Fixed(bytes) => self.data.len() as u64 / bytes.max(1),
            Record::Line => self.data.len() as u64,
            Record::Index(count) => count,
        }
    }
}

/// The laws, as in `gristmill_kernel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
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
            Law::Blocks => "any split into blocks gives the same result",
            Law::Save => "save and restore between any two records change nothing",
            Law::Merge => "merge is associative on adjacent extents",
            Law::Order => "merge is free of order (the kernel declares Order::Any)",
            Law::Identity => "a fold over nothing is the identity of merge",
            Law::Place => "the same bits on every place",
            Law::Contract => "each call keeps what the contract says of it",
            Law::State => "a state that makes no sense is an error and never a panic",
        })
    }
}

/// A law that a kernel broke.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "kernel '{kernel}' breaks the law \"{law}\"\n  in the world: {world}\n  expected: {expected}\n  got:      {got}"
)]
pub struct Broken {
    /// The kernel.
    pub kernel: &'static str,
    /// The law.
    pub law: Law,
    /// How the data was cut, saved, merged or placed.
    pub world: String,
    /// What one fold over one block gives.
    pub expected: String,
    /// What came out in this world.
    pub got: String,
}

/// What a request gives: a value and rows, or an error.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The value, or why there is none.
    pub value: Result<Value, KernelError>,
    /// Rows in order of position, each once.
    pub rows: Vec<(Position, Vec<u8>)>,
}

impl Answer {
    /// Whether two answers are the same in bits. Errors are the same if they are of one kind: which of several
    /// bad records is named may depend on the split. Rows that came before an error do not count.
    pub fn same(&self, other: &Answer) -> bool {
        match (&self.value, &other.value) {
            (Ok(a), Ok(b)) => same_value(a, b) && self.rows == other.rows,
            (Err(a), Err(b)) => std::mem::discriminant(a) == std::mem::discriminant(b),
            _ => false,
        }
    }

    pub(crate) fn show(&self) -> String {
        let rows = match self.rows.len() {
            0..=12 => format!("{:?}", self.rows),
            n => format!("{n} rows, {:?} ...", &self.rows[..12]),
        };
        let mut text = match &self.value {
            Ok(value) => format!("{value:?}"),
            Err(error) => format!("error: {error}"),
        };
        text.truncate(text.floor_char_boundary(600));
        format!("{text}; rows {rows}")
    }
}

fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b))
        }
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && same_value(&a.1, &b.1))
        }
        (a, b) => a == b,
    }
}
