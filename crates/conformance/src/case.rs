//! What is tested.

use std::sync::Arc;

use gristmill_kernel::{Input, Kernel, Record};

use crate::answer::Answer;

/// Makes the answer of all data at once.
type Naive = dyn Fn(&[u8]) -> Answer + Send + Sync;

/// What the whole input gives, and how far a float may lie from it, relative to the larger of the two.
#[derive(Clone)]
pub(crate) struct Reference {
    pub answer: Arc<Naive>,
    pub within: f64,
}

/// A kernel with data to fold.
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
    /// `data` are whole records of `input`, elements little-endian; empty for virtual records.
    pub fn new(kernel: Arc<dyn Kernel>, input: Input, data: Vec<u8>) -> Case {
        let input = input.for_kernel(&kernel.spec());
        Case { kernel, input, data, second: None, side: Vec::new(), reference: None }
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

    /// With a naive program for the same answer, which gets all of `data` at once. Without it a kernel that always
    /// answers 0 keeps every law. Values and rows must be the same in bits; errors must be of the same kind.
    pub fn with_reference<A: Into<Answer>>(
        self,
        reference: impl Fn(&[u8]) -> A + Send + Sync + 'static,
    ) -> Case {
        self.with_reference_within(0.0, reference)
    }

    /// As [`with_reference`](Case::with_reference), where a float of the value, or of rows that are elements of the
    /// input's type, may differ by this part of the larger of the two, for example 1e-12.
    pub fn with_reference_within<A: Into<Answer>>(
        mut self,
        within: f64,
        reference: impl Fn(&[u8]) -> A + Send + Sync + 'static,
    ) -> Case {
        self.reference = Some(Reference { answer: Arc::new(move |data| reference(data).into()), within });
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
