//! Requests about a variable of a scientific file: from names, as users say them, to a kernel over chunks.
//!
//! The file is parsed here, by whoever asks; what runs gets the chunk table. Axes are named by their dimensions, or numbered;
//! what is taken of them is given by index or by the values of a coordinate, the one-dimensional variable that has
//! the name of the dimension.

mod calendar;
mod coordinate;
mod dates;
mod folder;
mod group;
mod inputs;
mod labels;
mod mapped;
mod meaning;
mod netcdf;
mod npy;
mod output;
mod partial_date;
mod reduce;
mod resample;
mod select;
mod shares;
mod slab;
mod source;
mod spread;
mod time;
mod weight;
mod whole;

use std::sync::Arc;

use gristmill_array::{ArrayReduce, Op, Reduction, Request as ArrayRequest, Selected};
use gristmill_format::{ChunkTable, Dataset, FileRef, FormatError, Variable};
use gristmill_kernel::Input as Elements;
use gristmill_peers::{ArrayWork, Question};
use gristmill_runtime::{Chunks, FileParts, Request};
use gristmill_wire::grid;

use crate::ClientError;
use inputs::{Asked, Bound, Input, bound};

pub use calendar::{Calendar, Date};
pub use folder::{Folder, nowhere};
pub use labels::{AxisCoordinate, Labels};
pub use mapped::Mapping;
pub use output::ArrayFile;
pub use partial_date::PartialDate;
pub use reduce::{Operands, ReductionPlan, meaning_of, plan_reduction};
pub use resample::Frequency;
pub use select::Part;
pub use shares::{Share, shares};
pub use slab::{MAX_SLAB_BYTES, Slab, read_slab};
pub(crate) use source::PartsSource;
pub use time::{Instant, TimeUnits};
pub use weight::COSINE_OF_LATITUDE;
pub use whole::{VariableError, write_variable};

/// What an expression calls the variable that is asked about.
const LEAD: &str = "x";

/// What is asked of a variable.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayQuestion {
    /// The variable, with its groups: `group/name`.
    pub variable: String,
    /// What is made of its elements.
    pub op: Op,
    /// The axes that are reduced, by the names of their dimensions or their numbers. Where nothing is said all, but none
    /// beside axes that are mapped.
    pub axes: Option<Vec<String>>,
    /// What is taken of axes that are not taken whole.
    pub parts: Vec<(String, Part)>,
    /// Groups, windows and bins of axes, and weights.
    pub mapping: Mapping,
    /// Computed of each element first; see [`gristmill_array::Expr`]. The variable is `x`, or has its own name.
    pub expr: Option<String>,
    /// Further variables with the same dimensions, and what the expression calls them.
    pub others: Vec<(String, String)>,
    /// Whether reduced axes stay, with length 1.
    pub keepdims: bool,
    /// Whether NaN counts as missing; of floats it does where nothing is said.
    pub skipna: Option<bool>,
    /// Degrees of freedom taken from the count in variances.
    pub ddof: u64,
    /// Fewer elements than this make no number.
    pub min_count: u64,
    /// Whether values outside `valid_min`, `valid_max`, `valid_range` are missing.
    pub valid: bool,
}

impl ArrayQuestion {
    /// This of all elements of a variable.
    pub fn new(variable: &str, op: Op) -> ArrayQuestion {
        ArrayQuestion {
            variable: variable.to_owned(),
            op,
            axes: None,
            parts: Vec::new(),
            mapping: Mapping::default(),
            expr: None,
            others: Vec::new(),
            keepdims: false,
            skipna: None,
            ddof: 0,
            min_count: 0,
            valid: false,
        }
    }
}

/// An axis of the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerAxis {
    /// The name of its dimension; `dim_0` and so on where it has none.
    pub name: String,
    /// Its length.
    pub length: u64,
    /// Whether it was reduced, and stays with length 1.
    pub reduced: bool,
    /// What its elements stand for, where they were made of several of the file.
    pub coordinate: Option<AxisCoordinate>,
    /// Its elements that something was asked about, where not all are: the others are bins of time without any times.
    pub asked: Option<Vec<usize>>,
}

/// A question worked out.
pub struct ArrayPlan {
    /// The file.
    pub dataset: Arc<Dataset>,
    /// The variable.
    pub variable: Variable,
    /// Its chunks, or those of another variable that is read beside it and leads.
    pub table: Arc<ChunkTable>,
    /// Those that are needed, with a table of those and their files alone.
    pub chunks: Chunks,
    /// The kernel.
    pub kernel: Arc<ArrayReduce>,
    /// What it was bound to.
    pub asked: ArrayRequest,
    /// The elements that are taken.
    pub selected: Selected,
    /// What was asked.
    pub question: ArrayQuestion,
    /// Axes of the answer, in its order, before those that a quantile or a histogram adds.
    pub axes: Vec<AnswerAxis>,
}

/// What is in a file of a format that is known, wherever its bytes lie; only what the file says about itself is read.
/// `name`: by its end delimited text is known, all of which is read.
///
/// # Errors
/// [`FormatError::Unrecognised`], and what cannot be read.
pub fn read_dataset(file: &FileParts, name: &str) -> Result<Dataset, FormatError> {
    gristmill_format::open(Arc::new(PartsSource::new(file.clone())), name)
}

/// Works out what is asked of a variable of a file.
///
/// # Errors
/// A file that is none, and what [`plan_dataset`] refuses.
pub fn plan_array(file: &FileParts, question: &ArrayQuestion) -> Result<ArrayPlan, ClientError> {
    let dataset = read_dataset(file, &file.name)?;
    plan_dataset(Arc::new(dataset), question)
}

/// Works out what is asked of a variable of a file, or of a folder, that was opened.
///
/// # Errors
/// A variable, axis or coordinate that is not there, and what does not fit together.
pub fn plan_dataset(dataset: Arc<Dataset>, question: &ArrayQuestion) -> Result<ArrayPlan, ClientError> {
    let variable = dataset.variable(&question.variable)?.clone();
    let table = dataset.table(&variable.path)?;
    let selection = select::selection(&dataset, &variable, &question.parts)?;
    let grid = grid(&table.array).map_err(|error| ClientError::Usage(error.to_string()))?;
    let selected = selection.resolve(&grid)?;
    let left: Vec<usize> = (0..selected.axes.len()).filter(|axis| !selected.axes[*axis].dropped).collect();
    let mapped = mapped::of(&dataset, &variable, &selected, &question.mapping)?;
    let reduced: Option<Vec<i64>> = match &question.axes {
        None => mapped.any().then(Vec::new),
        Some(names) => {
            let at = |name: &String| {
                let axis = select::axis(&variable, name)?;
                let place = left.iter().position(|left| *left == axis);
                place.map(|place| place as i64).ok_or_else(|| {
                    ClientError::Usage(format!(
                        "axis {name} is taken at one index, and so there is nothing to reduce"
                    ))
                })
            };
            let mut places: Vec<i64> = names.iter().map(at).collect::<Result<_, _>>()?;
            // To reduce what is grouped is to reduce it within its groups.
            places.retain(|place| !mapped.has(*place as usize));
            Some(places)
        }
    };
    let is_reduced = |place: usize| reduced.as_ref().is_none_or(|axes| axes.contains(&(place as i64)));
    let axes = left.iter().enumerate().filter(|(place, _)| question.keepdims || !is_reduced(*place));
    let axes = axes
        .map(|(place, axis)| {
            mapped.axis(place).cloned().unwrap_or_else(|| AnswerAxis {
                name: select::name(&variable, *axis),
                length: if is_reduced(place) { 1 } else { selected.axes[*axis].count },
                reduced: is_reduced(place),
                coordinate: None,
                asked: None,
            })
        })
        .collect();
    let input = |name: &str, variable: &Variable| {
        let meaning = meaning::of(variable, question.valid)?;
        Ok::<Input, ClientError>(Input { name: name.to_owned(), variable: variable.clone(), meaning })
    };
    let mut inputs = vec![input(LEAD, &variable)?];
    for (name, path) in &question.others {
        inputs.push(input(name, dataset.variable(path)?)?);
    }
    let spoken = question.expr.as_deref().map(|text| inputs::by_its_name(text, &variable, &question.others));
    let asked = Asked {
        selection,
        expr: spoken.as_deref(),
        constants: Vec::new(),
        reduction: mapped.reduction(Reduction {
            axes: reduced,
            keepdims: question.keepdims,
            skipna: question.skipna,
            ddof: question.ddof,
            min_count: question.min_count,
            ..Reduction::new(question.op.clone())
        }),
    };
    let Bound { table, chunks, kernel, asked } = bound(&dataset, inputs, asked)?;
    let question = question.clone();
    Ok(ArrayPlan { dataset, variable, table, chunks, kernel, asked, selected, question, axes })
}

impl ArrayPlan {
    /// The files that the needed chunks lie in, by their names in a folder; one without a name where the format has one.
    pub fn files(&self) -> &[FileRef] {
        self.chunks.files()
    }

    /// The request, over the chunks that are needed. `file` has the bytes of all [`files`](ArrayPlan::files), one behind the
    /// other.
    pub fn request(&self, file: FileParts) -> Request {
        let input = Elements::elements(self.table.array.dtype);
        let mut request = Request::new(self.kernel.clone(), input, file);
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

    /// The coordinate of an axis of the answer as far as it is taken, where there is one.
    ///
    /// # Errors
    /// A coordinate that cannot be read.
    pub fn coordinate(&self, axis: &AnswerAxis) -> Result<Option<AxisCoordinate>, ClientError> {
        if axis.coordinate.is_some() {
            return Ok(axis.coordinate.clone());
        }
        let at = (0..self.variable.shape.len()).find(|at| select::name(&self.variable, *at) == axis.name);
        let Some((at, false)) = at.map(|at| (at, axis.reduced)) else { return Ok(None) };
        let Some(variable) = coordinate::of(&self.dataset, &self.variable, at) else { return Ok(None) };
        let all = coordinate::values(&self.dataset, variable)?.values;
        let range = self.selected.axes[at];
        let taken =
            (0..range.count).filter_map(|i| all.get((range.first + i * range.step) as usize).copied());
        Ok(Some(AxisCoordinate::of(variable, &axis.name, taken.collect())))
    }
}
