//! Plain numbers, whose type and shape the user gives.

use std::sync::Arc;

use gristmill_kernel::{ByteOrder, DType};

use crate::FormatError;
use crate::array::{Array, Edges, bytes_of};
use crate::attribute::Attribute;
use crate::dataset::{Dataset, Dimension, Format, Kind, Storage, Tables, Variable};
use crate::filter::Filter;
use crate::rows::Rows;
use crate::source::Source;
use crate::table::{ChunkLocations, ChunkTable, FileRef};

/// The location of a variable whose elements are stored one after the other in the only file.
#[derive(Clone, Debug)]
pub(crate) struct ElementRun {
    /// Offset of the first element, in bytes.
    pub begin: u64,
    /// Bytes from one index of the first stored axis to the next; `None` without gaps.
    pub stride: Option<u64>,
    /// The order in which the axes are stored; `None` for C order.
    pub axes: Option<Vec<u8>>,
}

impl ElementRun {
    /// Makes the chunk table of the variable.
    pub fn table(&self, variable: &Variable, length: u64) -> Result<ChunkTable, FormatError> {
        let dtype = variable.dtype()?;
        let axes = self.axes.as_deref();
        let filters: Vec<Filter> = self.axes.clone().map(Filter::Transpose).into_iter().collect();
        let first = match axes {
            Some(axes) => axes.first().map(|axis| usize::from(*axis)),
            None => Some(0),
        };
        let others = variable.shape.iter().enumerate().filter(|(axis, _)| Some(*axis) != first);
        let others: Vec<u64> = others.map(|(_, length)| *length).collect();
        let too_long = || FormatError::damaged("netCDF", "a row of a variable is longer than a file can be");
        let row = bytes_of(&others, dtype).ok_or_else(too_long)?;
        let stride = self.stride.unwrap_or(row);
        let array = Array {
            dtype,
            order: variable.order,
            chunk: Rows::chunk_shape(&variable.shape, dtype.size() as u64, Some(stride), axes),
            stored: variable.shape.clone(),
            shape: variable.shape.clone(),
            edges: Edges::Clipped,
            filters,
            fill: variable.fill.clone().unwrap_or_else(|| vec![0; dtype.size()]),
        };
        let files = vec![FileRef { name: String::new(), length }];
        Ok(ChunkTable { array, files, locations: ChunkLocations::Rows(Rows { begin: self.begin, stride }) })
    }
}

/// The chunk tables of a file in which all variables are runs of elements: `.npy`, plain numbers, classic netCDF.
pub(crate) struct ElementRuns {
    pub source: Arc<dyn Source>,
    /// The run of each variable.
    pub runs: Vec<ElementRun>,
}

impl Tables for ElementRuns {
    fn table(&self, index: usize, variable: &Variable) -> Result<ChunkTable, FormatError> {
        let run = self.runs.get(index).ok_or_else(|| FormatError::table("there is no such variable"))?;
        run.table(variable, self.source.len())
    }

    fn source(&self, _: &ChunkTable, _: u32) -> Result<Arc<dyn Source>, FormatError> {
        Ok(Arc::clone(&self.source))
    }
}

/// Makes a dataset of one variable whose dimensions have no names.
pub(crate) fn one_variable(
    format: Format,
    source: Arc<dyn Source>,
    kind: Kind,
    order: ByteOrder,
    shape: &[u64],
    run: ElementRun,
) -> Dataset {
    let fill = match &kind {
        Kind::Number(dtype) => Some(vec![0; dtype.size()]),
        Kind::Other(_) => None,
    };
    let variable = Variable {
        path: "data".to_owned(),
        dimensions: vec![String::new(); shape.len()],
        kind,
        order,
        shape: shape.to_vec(),
        chunk: None,
        storage: Storage::Contiguous,
        filters: Vec::new(),
        fill,
        attributes: Vec::<Attribute>::new(),
    };
    Dataset {
        format,
        groups: Vec::new(),
        dimensions: Vec::<Dimension>::new(),
        attributes: Vec::new(),
        variables: vec![variable],
        tables: Box::new(ElementRuns { source, runs: vec![run] }),
    }
}

/// Opens plain numbers of one type, in C order, after a header of `skip` bytes. The dataset has one variable, `data`.
///
/// # Errors
/// Returns no error. [`Dataset::table`] refuses a file that is too short.
pub fn open_raw(
    source: Arc<dyn Source>,
    dtype: DType,
    order: ByteOrder,
    shape: &[u64],
    skip: u64,
) -> Result<Dataset, FormatError> {
    let run = ElementRun { begin: skip, stride: None, axes: None };
    Ok(one_variable(Format::Raw, source, Kind::Number(dtype), order, shape, run))
}
