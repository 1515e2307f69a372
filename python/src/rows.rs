//! Rows of an answer, collected for arrays.

use std::io;

use gristmill_kernel::{DType, Output, RowBatch, RowShape, RowValue};
use gristmill_runtime::RowOutput;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList};

/// Takes the rows of a request as they come. Whoever asks for rows gets all of them, so memory is theirs to choose.
pub struct Collected {
    shape: Option<RowShape>,
    /// The kernel gives bytes, and no rows.
    plain: bool,
    /// Positions as they are shown, u64 in native byte order.
    positions: Vec<u8>,
    bytes: Vec<u8>,
    /// Where each line ends in `bytes`; nothing for elements.
    ends: Vec<usize>,
}

impl Collected {
    /// For a kernel with this output.
    pub fn new(output: Output) -> Collected {
        let shape = match output {
            Output::Rows(shape) => Some(shape),
            Output::Bytes | Output::Value => None,
        };
        Collected {
            shape,
            plain: output == Output::Bytes,
            positions: Vec::new(),
            bytes: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// `(name of the positions, their bytes, element type or None, bytes of the elements or list of lines)`, or the
    /// bytes of a kernel that gives such.
    pub fn into_python(self, py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
        if self.plain {
            return Ok(Some(PyByteArray::new(py, &self.bytes).into_any()));
        }
        let Some(shape) = self.shape else { return Ok(None) };
        let positions = PyByteArray::new(py, &self.positions);
        let rows = match shape.value {
            RowValue::Element(dtype) => {
                let values = PyByteArray::new(py, &self.bytes);
                (shape.position, positions, Some(DType::name(dtype)), values).into_bound_py_any(py)
            }
            RowValue::Line => {
                let lines = PyList::empty(py);
                let mut start = 0;
                for end in self.ends {
                    lines.append(PyBytes::new(py, self.bytes.get(start..end).unwrap_or_default()))?;
                    start = end;
                }
                (shape.position, positions, None::<&str>, lines).into_bound_py_any(py)
            }
        };
        rows.map(Some)
    }
}

impl RowOutput for Collected {
    fn rows(&mut self, batch: &RowBatch) -> io::Result<()> {
        let room = self
            .bytes
            .try_reserve(batch.bytes().len())
            .and_then(|()| self.positions.try_reserve(batch.len() * size_of::<u64>()));
        room.map_err(|_| {
            io::Error::other("the rows do not fit into memory; narrow the request or ask for count_only")
        })?;
        let Some(shape) = self.shape else {
            self.bytes.extend_from_slice(batch.bytes());
            return Ok(());
        };
        for at in batch.positions() {
            self.positions.extend_from_slice(&shape.display_number(at).to_ne_bytes());
        }
        if shape.value == RowValue::Line {
            let before = self.bytes.len();
            self.ends.extend(batch.ends().map(|end| before + end));
        }
        self.bytes.extend_from_slice(batch.bytes());
        Ok(())
    }
}
