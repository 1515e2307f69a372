//! A reduction of a variable as programs ask for it: axes by number; groups, windows and weights by their values.

use std::sync::Arc;

use gristmill_array::{ArrayReduce, Meaning, Reduction, Request as ArrayRequest, Selection};
use gristmill_format::{ChunkTable, Dataset, FileRef, MAX_CHUNKS, Variable};
use gristmill_kernel::Input;
use gristmill_peers::{ArrayWork, Question};
use gristmill_runtime::{Chunks, FileParts, Request};
use gristmill_wire::grid;

use super::meaning;
use crate::ClientError;

/// What the numbers of a variable mean by its attributes; `decoded`: whether those are to be heard at all.
///
/// # Errors
/// A variable that is no number; a scale or an offset that is none.
pub fn meaning_of(variable: &Variable, decoded: bool) -> Result<Meaning, ClientError> {
    if decoded { meaning::of(variable, false) } else { Ok(Meaning::of(variable.dtype()?)) }
}

/// A reduction of a variable, worked out.
pub struct ReductionPlan {
    /// The chunks that are needed, with a table of those and their files alone.
    pub chunks: Chunks,
    /// The kernel.
    pub kernel: Arc<ArrayReduce>,
    /// What it was bound to.
    pub asked: ArrayRequest,
}

/// Works out a reduction of a variable of a file that was opened. Axes of `reduction` are those that `selection` leaves. With
/// `decoded` elements are what the attributes say, else what is stored.
///
/// # Errors
/// A variable that is not there, and what does not fit together.
pub fn plan_reduction(
    dataset: &Dataset,
    variable: &str,
    decoded: bool,
    selection: Selection,
    expr: Option<&str>,
    reduction: Reduction,
) -> Result<ReductionPlan, ClientError> {
    let variable = dataset.variable(variable)?;
    let table = dataset.table(&variable.path)?;
    let asked = ArrayRequest {
        grid: grid(&table.array).map_err(|error| ClientError::Usage(error.to_string()))?,
        meaning: meaning_of(variable, decoded)?,
        selection,
        expr: expr.map(str::parse).transpose()?,
        reduction,
    };
    let kernel = Arc::new(ArrayReduce::bind(asked.clone())?);
    // A file may say that it has any number of chunks.
    let numbers: Vec<u64> = kernel.chunks().take(MAX_CHUNKS + 1).collect();
    let needed = Arc::new(table.only(&numbers));
    Ok(ReductionPlan { chunks: Chunks::new(needed, numbers)?, kernel, asked })
}

impl ReductionPlan {
    fn table(&self) -> &ChunkTable {
        self.chunks.table()
    }

    /// The files that the needed chunks lie in; see [`ArrayPlan::files`](super::ArrayPlan::files).
    pub fn files(&self) -> &[FileRef] {
        &self.table().files
    }

    /// The request, over `file`, which has the bytes of all [`files`](ReductionPlan::files), one behind the other.
    pub fn request(&self, file: FileParts) -> Request {
        let mut request = Request::new(self.kernel.clone(), Input::elements(self.table().array.dtype), file);
        request.chunks = Some(self.chunks.clone());
        request
    }

    /// The request as storage nodes are asked.
    ///
    /// # Errors
    /// More chunks than a request can name.
    pub fn question(&self) -> Result<Question, ClientError> {
        Ok(Question::of_array(Arc::new(ArrayWork::new(self.chunks.clone(), self.asked.clone())?)))
    }
}
