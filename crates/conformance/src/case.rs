//! Test cases: a kernel with its input.

use std::sync::Arc;

use gristmill_kernel::{Input, Kernel, Record};

use crate::answer::Answer;

/// Program that computes the answer from all data at once.
type Naive = dyn Fn(&[u8]) -> Answer + Send + Sync;

/// Program for the expected answer, and the largest relative difference of a float. The difference is relative to the
/// larger of the two floats.
#[derive(Clone)]
pub(crate) struct Reference {
    pub answer: Arc<Naive>,
    pub tolerance: f64,
}

/// A kernel with the data that it folds.
#[derive(Clone)]
pub struct Case {
    pub(crate) kernel: Arc<dyn Kernel>,
    pub(crate) input: Input,
    pub(crate) data: Vec<u8>,
    pub(crate) second: Option<Vec<u8>>,
    pub(crate) side: Vec<Arc<[u8]>>,
    pub(crate) reference: Option<Reference>,
}

impl Case {
    /// Creates a case. `data` has whole records of `input`, with little-endian elements. Virtual records have no data.
    pub fn new(kernel: Arc<dyn Kernel>, input: Input, data: Vec<u8>) -> Case {
        let input = input.for_kernel(&kernel.spec());
        Case { kernel, input, data, second: None, side: Vec::new(), reference: None }
    }

    /// Adds a second input with the same number of records.
    pub fn with_second(mut self, second: Vec<u8>) -> Case {
        self.second = Some(second);
        self
    }

    /// Adds a side input. Every fold gets the whole of it.
    pub fn with_side(mut self, side: Vec<u8>) -> Case {
        self.side.push(side.into());
        self
    }

    /// Adds a naive program for the same answer. It gets all of `data` at once. Without a reference, a kernel that
    /// always answers 0 keeps every law. Values and rows must have the same bits. Errors must be of the same kind.
    pub fn with_reference<A: Into<Answer>>(
        self,
        reference: impl Fn(&[u8]) -> A + Send + Sync + 'static,
    ) -> Case {
        self.with_reference_within(0.0, reference)
    }

    /// Adds a reference with a tolerance. It is [`with_reference`](Case::with_reference), but a float may differ by
    /// this part of the larger of the two, for example 1e-12. This applies to floats of the value, and to rows that are
    /// elements of the input's type.
    pub fn with_reference_within<A: Into<Answer>>(
        mut self,
        tolerance: f64,
        reference: impl Fn(&[u8]) -> A + Send + Sync + 'static,
    ) -> Case {
        self.reference = Some(Reference { answer: Arc::new(move |data| reference(data).into()), tolerance });
        self
    }

    /// Number of positions of the whole input.
    pub(crate) fn positions(&self) -> u64 {
        match self.kernel.spec().record {
            Record::Fixed(bytes) => self.data.len() as u64 / bytes.max(1),
            Record::Line => self.data.len() as u64,
            Record::Index(count) => count,
        }
    }
}
