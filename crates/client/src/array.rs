//! Requests about a variable of a scientific file: from the names that users write to a kernel over chunks.
//!
//! The client parses the file; the nodes get the chunk table. An axis is given by the name of its dimension or by its
//! number. Its elements are selected by index or by the values of its coordinate, the one-dimensional variable that has
//! the name of the dimension.

mod axis_names;
mod calendar;
mod coordinate;
mod dates;
mod folder;
mod group;
mod inputs;
mod joined;
mod labels;
mod mapped;
mod meaning;
mod missing_bins;
mod netcdf;
mod netcdf_attributes;
mod netcdf_content;
mod npy;
mod output;
mod partial_date;
mod reduce;
mod resample;
mod select;
mod shares;
mod slab;
mod source;
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
use inputs::{BoundReduction, Input, ReductionSpec, bind};

pub use calendar::{Calendar, Date};
pub use folder::{Folder, empty_file};
pub use joined::{joined_files, joined_parts};
pub use labels::{AxisCoordinate, Labels};
pub use mapped::Mapping;
pub use output::ArrayFile;
pub use partial_date::PartialDate;
pub use reduce::{Operands, ReductionPlan, meaning_of, plan_reduction};
pub use resample::Frequency;
pub use select::AxisSelection;
pub use shares::{Share, shares};
pub use slab::{MAX_SLAB_BYTES, Slab, read_slab};
pub(crate) use source::PartsSource;
pub use time::{Instant, TimeUnits};
pub use weight::COSINE_OF_LATITUDE;
pub use whole::{VariableError, write_variable};

/// Name of the reduced variable in an expression.
const LEAD: &str = "x";

/// A request about a variable.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayQuestion {
    /// The variable, with its groups: `group/name`.
    pub variable: String,
    /// The operation.
    pub op: Op,
    /// The axes to reduce, by the names of their dimensions or by their numbers. `None` means all axes, or no axis if
    /// some are mapped.
    pub axes: Option<Vec<String>>,
    /// Axes that are not taken whole, with their selections.
    pub parts: Vec<(String, AxisSelection)>,
    /// Groups, windows and bins of axes, and weights of elements.
    pub mapping: Mapping,
    /// Expression that is computed of each element first; see [`gristmill_array::Expr`]. It names the variable `x`, or
    /// by the variable's own name.
    pub expr: Option<String>,
    /// Further variables with the same dimensions: the name in the expression, and the path.
    pub others: Vec<(String, String)>,
    /// Whether reduced axes stay in the answer, with length 1.
    pub keepdims: bool,
    /// Whether NaN counts as missing. `None` means true.
    pub skipna: Option<bool>,
    /// Number subtracted from the count in variances.
    pub ddof: u64,
    /// The result of fewer elements than this is NaN.
    pub min_count: u64,
    /// Whether values outside `valid_min`, `valid_max`, `valid_range` are missing.
    pub valid: bool,
}

impl ArrayQuestion {
    /// An operation over all elements of a variable.
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
    /// The name of the dimension, or `dim_0` and so on if it has no name.
    pub name: String,
    /// Number of elements.
    pub length: u64,
    /// Whether the axis was reduced, and stays with length 1.
    pub reduced: bool,
    /// Coordinate of an axis of groups, windows or bins.
    pub coordinate: Option<AxisCoordinate>,
    /// Indices of the bins that have any times, ascending; `None` if no bin is empty.
    pub present: Option<Vec<usize>>,
}

/// A request that is bound to a file.
pub struct ArrayPlan {
    /// The opened file.
    pub dataset: Arc<Dataset>,
    /// The variable that the request is about.
    pub variable: Variable,
    /// All chunks of the leading variable, which may be one of the further variables.
    pub table: Arc<ChunkTable>,
    /// The needed chunks, with a table that has only these chunks and their files.
    pub chunks: Chunks,
    /// The kernel, whose records are chunks.
    pub kernel: Arc<ArrayReduce>,
    /// The request to which the kernel was bound.
    pub array_request: ArrayRequest,
    /// The selected elements.
    pub selected: Selected,
    /// The request that was planned.
    pub question: ArrayQuestion,
    /// Axes of the answer, in order, without an axis that a quantile or a histogram adds.
    pub axes: Vec<AnswerAxis>,
}

/// Opens a file of a known format and reads its metadata. The ending of `name` tells delimited text, which is read
/// whole.
///
/// # Errors
/// Returns [`FormatError::Unrecognised`] if the format is unknown, and another [`FormatError`] if the file cannot be
/// read or parsed.
pub fn read_dataset(file: &FileParts, name: &str) -> Result<Dataset, FormatError> {
    gristmill_format::open(Arc::new(PartsSource::new(file.clone())), name)
}

/// Plans a request about a variable of a file.
///
/// # Errors
/// Returns the errors of [`read_dataset`] and of [`plan_dataset`].
pub fn plan_array(file: &FileParts, question: &ArrayQuestion) -> Result<ArrayPlan, ClientError> {
    let dataset = read_dataset(file, &file.name)?;
    plan_dataset(Arc::new(dataset), question)
}

/// Plans a request about a variable of an opened file or folder.
///
/// # Errors
/// Returns an error if the variable, an axis or a coordinate does not exist, if a coordinate cannot be read, or if the
/// selection, the expression and the operation do not fit the variable.
pub fn plan_dataset(dataset: Arc<Dataset>, question: &ArrayQuestion) -> Result<ArrayPlan, ClientError> {
    let variable = dataset.variable(&question.variable)?.clone();
    let table = dataset.table(&variable.path)?;
    let selection = select::selection(&dataset, &variable, &question.parts)?;
    let grid = grid(&table.array).map_err(|error| ClientError::Usage(error.to_string()))?;
    let selected = selection.resolve(&grid).map_err(|error| axis_names::with_dimension(&variable, error))?;
    let left: Vec<usize> = (0..selected.axes.len()).filter(|axis| !selected.axes[*axis].dropped).collect();
    let mapped = mapped::map_axes(&dataset, &variable, &selected, &question.mapping)?;
    let reduced: Option<Vec<i64>> = match &question.axes {
        None => mapped.any().then(Vec::new),
        Some(names) => {
            let at = |name: &String| {
                let axis = axis_names::find(&variable, name)?;
                let place = left.iter().position(|left| *left == axis);
                place.map(|place| place as i64).ok_or_else(|| {
                    ClientError::Usage(format!(
                        "axis {name} is selected at one index, so there is nothing to reduce"
                    ))
                })
            };
            let mut places: Vec<i64> = names.iter().map(at).collect::<Result<_, _>>()?;
            // A grouped axis is reduced within its groups.
            places.retain(|place| !mapped.has(*place as usize));
            Some(places)
        }
    };
    let is_reduced = |place: usize| reduced.as_ref().is_none_or(|axes| axes.contains(&(place as i64)));
    let axes = left.iter().enumerate().filter(|(place, _)| question.keepdims || !is_reduced(*place));
    let axes = axes
        .map(|(place, axis)| {
            mapped.axis(place).cloned().unwrap_or_else(|| AnswerAxis {
                name: axis_names::name(&variable, *axis),
                length: if is_reduced(place) { 1 } else { selected.axes[*axis].count },
                reduced: is_reduced(place),
                coordinate: None,
                present: None,
            })
        })
        .collect();
    let input = |name: &str, variable: &Variable| {
        let meaning = meaning::from_attributes(variable, question.valid)?;
        Ok::<Input, ClientError>(Input { name: name.to_owned(), variable: variable.clone(), meaning })
    };
    let mut inputs = vec![input(LEAD, &variable)?];
    for (name, path) in &question.others {
        inputs.push(input(name, dataset.variable(path)?)?);
    }
    let expr = question.expr.as_deref().map(|text| inputs::with_lead_name(text, &variable, &question.others));
    let spec = ReductionSpec {
        selection,
        expr: expr.as_deref(),
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
    let BoundReduction { table, chunks, kernel, array_request } = bind(&dataset, inputs, spec)?;
    let question = question.clone();
    Ok(ArrayPlan { dataset, variable, table, chunks, kernel, array_request, selected, question, axes })
}

impl ArrayPlan {
    /// The files of the needed chunks, by their names in the folder. A format of a single file has one without a name.
    pub fn files(&self) -> &[FileRef] {
        self.chunks.files()
    }

    /// Returns the request over the needed chunks, for the runtime. `file` has the bytes of all
    /// [`files`](ArrayPlan::files), one after the other.
    pub fn request(&self, file: FileParts) -> Request {
        let input = Elements::elements(self.table.array.dtype);
        let mut request = Request::new(self.kernel.clone(), input, file);
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

    /// Returns the selected part of the coordinate of an axis of the answer, or `None` if the axis has no coordinate.
    ///
    /// # Errors
    /// Returns an error if the coordinate cannot be read.
    pub fn coordinate(&self, axis: &AnswerAxis) -> Result<Option<AxisCoordinate>, ClientError> {
        if axis.coordinate.is_some() {
            return Ok(axis.coordinate.clone());
        }
        let at = (0..self.variable.shape.len()).find(|at| axis_names::name(&self.variable, *at) == axis.name);
        let Some((at, false)) = at.map(|at| (at, axis.reduced)) else { return Ok(None) };
        let Some(variable) = coordinate::find(&self.dataset, &self.variable, at) else { return Ok(None) };
        let all = coordinate::values(&self.dataset, variable)?.values;
        let range = self.selected.axes[at];
        let taken =
            (0..range.count).filter_map(|i| all.get((range.first + i * range.step) as usize).copied());
        Ok(Some(AxisCoordinate::new(variable, &axis.name, taken.collect())))
    }
}
