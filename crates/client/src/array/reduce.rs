//! A reduction of a variable as programs ask for it: axes by number; groups, windows and weights by their values.

use std::sync::Arc;

use gristmill_array::{ArrayReduce, Constant, Meaning, Reduction, Request as ArrayRequest, Selection};
use gristmill_format::{ChunkTable, Dataset, FileRef, Variable};
use gristmill_kernel::Input as Elements;
use gristmill_peers::{ArrayWork, Question};
use gristmill_runtime::{Chunks, FileParts, Request};

use super::inputs::{Asked, Bound, Input, bound};
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

/// What a reduction is of.
#[derive(Clone, Debug, PartialEq)]
pub struct Operands {
    /// The variables, all of one shape: what the expression calls each, its path, and whether its elements are what the
    /// attributes say, or what is stored.
    pub variables: Vec<(String, String, bool)>,
    /// What is taken of each.
    pub selection: Selection,
    /// Constants, and what the expression calls them.
    pub constants: Vec<(String, Constant)>,
    /// What is computed first. Without it there is one variable and nothing else.
    pub expr: Option<String>,
}

/// Works out a reduction over variables of a file that was opened. Axes of `reduction` are those that the selection leaves.
///
/// # Errors
/// A variable that is not there, and what does not fit together.
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
    let asked = Asked { selection, expr: expr.as_deref(), constants, reduction };
    let Bound { table: _, chunks, kernel, asked } = bound(dataset, inputs, asked)?;
    Ok(ReductionPlan { chunks, kernel, asked })
}

impl ReductionPlan {
    fn table(&self) -> &ChunkTable {
        self.chunks.table()
    }

    /// The files that the needed chunks lie in; see [`ArrayPlan::files`](super::ArrayPlan::files).
    pub fn files(&self) -> &[FileRef] {
        self.chunks.files()
    }

    /// The request, over `file`, which has the bytes of all [`files`](ReductionPlan::files), one behind the other.
    pub fn request(&self, file: FileParts) -> Request {
        let mut request =
            Request::new(self.kernel.clone(), Elements::elements(self.table().array.dtype), file);
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
