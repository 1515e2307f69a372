//! A reduction of a variable as programs request it: axes by number; groups, windows and weights by their values.

use std::sync::Arc;

use gristmill_array::{ArrayReduce, Constant, Meaning, Reduction, Request as ArrayRequest, Selection};
use gristmill_format::{ChunkTable, Dataset, FileRef, Variable};
use gristmill_kernel::Input as Elements;
use gristmill_peers::{ArrayWork, Question};
use gristmill_runtime::{Chunks, FileParts, Request};

use super::inputs::{BoundReduction, Input, ReductionSpec, bind};
use super::meaning;
use crate::ClientError;

/// Returns the decoding of a variable: by its attributes if `decoded`, else the stored numbers.
///
/// # Errors
/// Returns an error if the variable does not hold numbers, or if its scale or offset is not a number.
pub fn meaning_of(variable: &Variable, decoded: bool) -> Result<Meaning, ClientError> {
    if decoded { meaning::from_attributes(variable, false) } else { Ok(Meaning::plain(variable.dtype()?)) }
}

/// A reduction that is bound to its variables.
pub struct ReductionPlan {
    /// The needed chunks, with a table that has only these chunks and their files.
    pub chunks: Chunks,
    /// The kernel, whose records are chunks.
    pub kernel: Arc<ArrayReduce>,
    /// The request to which the kernel was bound.
    pub array_request: ArrayRequest,
}

/// The inputs of a reduction.
#[derive(Clone, Debug, PartialEq)]
pub struct Operands {
    /// The variables, all of one shape: the name in the expression, the path, and whether its attributes decode its
    /// elements.
    pub variables: Vec<(String, String, bool)>,
    /// The selection, which is the same in each variable.
    pub selection: Selection,
    /// The constants, with their names in the expression.
    pub constants: Vec<(String, Constant)>,
    /// The expression that is reduced. `None` needs a single variable and no constants.
    pub expr: Option<String>,
}

/// Plans a reduction over variables of an opened file. `reduction` counts axes without those that the selection drops.
///
/// # Errors
/// Returns an error if a variable does not exist, or if the inputs, the expression and the operation do not fit
/// together.
pub fn plan_reduction(
    dataset: &Dataset,
    operands: Operands,
    reduction: Reduction,
) -> Result<ReductionPlan, ClientError> {
    let Operands { variables, selection, constants, expr } = operands;
    let input = |(name, path, decoded): (String, String, bool)| {
        let variable = dataset.variable(&path)?.clone();
        let meaning = meaning_of(&variable, decoded)?;
        Ok::<Input, ClientError>(Input { name, variable, meaning })
    };
    let inputs = variables.into_iter().map(input).collect::<Result<Vec<Input>, _>>()?;
    let spec = ReductionSpec { selection, expr: expr.as_deref(), constants, reduction };
    let BoundReduction { table: _, chunks, kernel, array_request } = bind(dataset, inputs, spec)?;
    Ok(ReductionPlan { chunks, kernel, array_request })
}

impl ReductionPlan {
    fn table(&self) -> &ChunkTable {
        self.chunks.table()
    }

    /// The files of the needed chunks; see [`ArrayPlan::files`](super::ArrayPlan::files).
    pub fn files(&self) -> &[FileRef] {
        self.chunks.files()
    }

    /// Returns the request for the runtime. `file` has the bytes of all [`files`](ReductionPlan::files), one after the
    /// other.
    pub fn request(&self, file: FileParts) -> Request {
        let mut request =
            Request::new(self.kernel.clone(), Elements::elements(self.table().array.dtype), file);
        request.chunks = Some(self.chunks.clone());
        request
    }

    /// Returns the request for storage nodes.
    ///
    /// # Errors
    /// Returns an error if there are more chunks than a request can name.
    pub fn question(&self) -> Result<Question, ClientError> {
        Ok(Question::for_array(Arc::new(ArrayWork::new(self.chunks.clone(), self.array_request.clone())?)))
    }
}
