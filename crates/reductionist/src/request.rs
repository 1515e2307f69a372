//! The body of a request.

use gristmill_format::MAX_CHUNK_BYTES;
use gristmill_kernel::DType;
use serde::Deserialize;

use crate::element::Element;
use crate::missing::{MissingNumbers, MissingValues};
use crate::selection::Positions;
use crate::{RequestError, Slice};

/// Most axes of a chunk.
pub const MAX_AXES: usize = 32;

/// Buffers of the size of a chunk while it is decoded.
const DECODING: u64 = 3;

/// Bytes of memory for a cell of the answer: its sum, its count, and both in the answer.
const CELL_BYTES: u64 = 128;

/// Most filters of a chunk.
const MAX_FILTERS: usize = 8;

/// An operation, the last part of the path of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// How many selected elements are not missing, as `int64`.
    Count,
    /// The largest element that is not missing.
    Max,
    /// The smallest element that is not missing.
    Min,
    /// The selected elements themselves.
    Select,
    /// The sum of the elements that are not missing.
    Sum,
}

impl Operation {
    /// The operation of a name.
    ///
    /// # Errors
    /// The error is [`RequestError::Operation`] if there is none.
    pub fn named(name: &str) -> Result<Operation, RequestError> {
        Ok(match name {
            "count" => Operation::Count,
            "max" => Operation::Max,
            "min" => Operation::Min,
            "select" => Operation::Select,
            "sum" => Operation::Sum,
            other => return Err(RequestError::Operation(other.chars().take(40).collect())),
        })
    }
}

/// The protocol of the server that has the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interface {
    /// The protocol of S3. The URL has the address of the server, the bucket and the key.
    S3,
    /// A web server.
    Http,
    /// A web server with encryption.
    Https,
}

/// The type of the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names of NumPy")]
pub enum DataType {
    Int32,
    Int64,
    Uint32,
    Uint64,
    Float32,
    Float64,
}

impl DataType {
    /// NumPy's name of the type.
    pub const fn name(self) -> &'static str {
        match self {
            DataType::Int32 => "int32",
            DataType::Int64 => "int64",
            DataType::Uint32 => "uint32",
            DataType::Uint64 => "uint64",
            DataType::Float32 => "float32",
            DataType::Float64 => "float64",
        }
    }

    pub(crate) const fn dtype(self) -> DType {
        match self {
            DataType::Int32 => DType::I32,
            DataType::Int64 => DType::I64,
            DataType::Uint32 => DType::U32,
            DataType::Uint64 => DType::U64,
            DataType::Float32 => DType::F32,
            DataType::Float64 => DType::F64,
        }
    }
}

/// The byte order of the stored elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Endian {
    Big,
    #[default]
    Little,
}

/// The order of the axes in the stored elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Order {
    /// The last axis varies fastest.
    #[default]
    C,
    /// The first axis varies fastest.
    F,
}

/// The axes to reduce.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum Axes {
    One(u64),
    Several(Vec<u64>),
}

/// The compression of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", tag = "id", deny_unknown_fields)]
pub enum Compression {
    /// A chunk of Blosc 2, as `blosc2_compress` writes it.
    Blosc2,
    /// A member of gzip (RFC 1952).
    Gzip,
    /// A stream of zlib (RFC 1950).
    Zlib,
}

/// A filter that the writer applied before the compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", tag = "id", deny_unknown_fields)]
pub enum Filter {
    /// The first bytes of all elements, then the second bytes, and so on.
    Shuffle {
        /// Bytes of an element.
        element_size: u32,
    },
    /// The same.
    ShuffleSimd {
        /// Bytes of an element.
        element_size: u32,
    },
}

impl Filter {
    pub(crate) const fn element_size(self) -> u32 {
        match self {
            Filter::Shuffle { element_size } | Filter::ShuffleSimd { element_size } => element_size,
        }
    }
}

/// The body of a request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    interface_type: Interface,
    url: String,
    dtype: DataType,
    #[serde(default)]
    pub(crate) byte_order: Option<Endian>,
    #[serde(default)]
    offset: Option<u64>,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default)]
    shape: Option<Vec<u64>>,
    #[serde(default)]
    axis: Option<Axes>,
    #[serde(default)]
    order: Option<Order>,
    #[serde(default)]
    selection: Option<Vec<Slice>>,
    #[serde(default)]
    pub(crate) compression: Option<Compression>,
    #[serde(default)]
    pub(crate) filters: Option<Vec<Filter>>,
    #[serde(default)]
    missing: Option<MissingNumbers>,
    /// There is no cache of chunks.
    #[serde(default, rename = "option_disable_chunk_cache")]
    _without_cache: Option<bool>,
    #[serde(default)]
    pub(crate) option_shape_as_bytes: Option<bool>,
    #[serde(default)]
    pub(crate) option_count_as_bytes: Option<bool>,
}

impl Request {
    /// Reads and checks a body.
    ///
    /// # Errors
    /// The error is [`RequestError::Json`] if the body is not JSON of a request, and [`RequestError::Invalid`] if its fields do not fit
    /// together.
    pub fn parse(body: &[u8]) -> Result<Request, RequestError> {
        let mut json = serde_json::Deserializer::from_slice(body);
        let request: Request = serde_path_to_error::deserialize(&mut json).map_err(RequestError::field)?;
        json.end().map_err(|error| RequestError::Json(error.to_string()))?;
        request.check()?;
        Ok(request)
    }

    fn check(&self) -> Result<(), RequestError> {
        let invalid = |why: &str| Err(RequestError::invalid(why));
        if self.size == Some(0) {
            return invalid("the size must be at least 1");
        }
        let element = self.dtype.dtype().size() as u64;
        match &self.shape {
            Some(shape) if shape.is_empty() || shape.len() > MAX_AXES => {
                return Err(RequestError::invalid(format!("the shape must have 1 to {MAX_AXES} axes")));
            }
            Some(shape) if shape.contains(&0) => return invalid("the axes of the shape must be at least 1"),
            Some(shape) => {
                let all = shape.iter().try_fold(element, |bytes, length| bytes.checked_mul(*length));
                let Some(bytes) = all.filter(|bytes| *bytes <= MAX_CHUNK_BYTES) else {
                    return Err(RequestError::invalid(format!(
                        "the chunk has more than {MAX_CHUNK_BYTES} bytes; ask for parts of it"
                    )));
                };
                if self.compression.is_none() && self.size.is_some_and(|size| size != bytes) {
                    return Err(RequestError::invalid(format!(
                        "the size must be that of the shape, {bytes}"
                    )));
                }
            }
            None if self.compression.is_some() => return invalid("compressed data needs a shape"),
            None if self.size.is_some_and(|size| size % element != 0) => {
                return Err(RequestError::invalid(format!("the size must be a multiple of {element}")));
            }
            None if self.selection.is_some() => return invalid("a selection needs a shape"),
            None if self.axis.is_some() => return invalid("an axis needs a shape"),
            None => {}
        }
        let axes = self.shape.as_ref().map_or(1, Vec::len);
        if let Some(selection) = &self.selection {
            if selection.len() != axes {
                return invalid("the selection must have a slice for each axis of the shape");
            }
            if selection.iter().any(|Slice(.., stride)| *stride == 0) {
                return invalid("the stride of a selection must not be 0");
            }
        }
        let reduced = match &self.axis {
            None => &[],
            Some(Axes::One(axis)) => std::slice::from_ref(axis),
            Some(Axes::Several(axes)) => axes.as_slice(),
        };
        if reduced.iter().any(|axis| *axis >= axes as u64) || !reduced.is_sorted_by(|one, next| one < next) {
            return invalid("the axes must be those of the shape, in ascending order, each once");
        }
        if self.filters.as_ref().is_some_and(|filters| filters.len() > MAX_FILTERS) {
            return Err(RequestError::invalid(format!("there may be at most {MAX_FILTERS} filters")));
        }
        if self.filters.iter().flatten().any(|filter| filter.element_size() == 0) {
            return invalid("the element size of a filter must be at least 1");
        }
        match self.dtype {
            DataType::Int32 => self.missing::<i32>().map(drop),
            DataType::Int64 => self.missing::<i64>().map(drop),
            DataType::Uint32 => self.missing::<u32>().map(drop),
            DataType::Uint64 => self.missing::<u64>().map(drop),
            DataType::Float32 => self.missing::<f32>().map(drop),
            DataType::Float64 => self.missing::<f64>().map(drop),
        }
    }

    /// The protocol of the server with the object.
    pub fn interface(&self) -> Interface {
        self.interface_type
    }

    /// The URL of the object.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DataType {
        self.dtype
    }

    /// Offset of the stored bytes in the object, and their number; `None` for all to the end of the object.
    pub fn stored_range(&self) -> (u64, Option<u64>) {
        let element = self.dtype.dtype().size() as u64;
        let of_shape = || {
            let shape = self.shape.as_ref().filter(|_| self.compression.is_none())?;
            Some(shape.iter().fold(element, |bytes, length| bytes.saturating_mul(*length)))
        };
        (self.offset.unwrap_or(0), self.size.or_else(of_shape))
    }

    /// Most bytes of memory that the reduction of so many stored bytes takes, with these bytes and the answer.
    pub fn memory(&self, operation: Operation, stored: u64) -> u64 {
        let element = self.dtype.dtype().size() as u64;
        let decoded = match &self.shape {
            Some(shape) => shape.iter().fold(element, |bytes, length| bytes.saturating_mul(*length)),
            None => stored,
        };
        let is_plain = self.compression.is_none() && self.filters.as_ref().is_none_or(Vec::is_empty);
        let decoding = decoded.saturating_mul(if is_plain { 1 } else { DECODING });
        let kept = match (&self.shape, self.reduced(), operation) {
            // The elements, and their copy in the answer.
            (.., Operation::Select) => {
                return stored.saturating_add(decoding).saturating_add(decoded.saturating_mul(2));
            }
            (Some(shape), Some(reduced), _) => {
                let kept = shape.iter().enumerate().filter(|(axis, _)| !reduced.contains(axis));
                kept.fold(1u64, |cells, (_, length)| cells.saturating_mul(*length))
            }
            _ => 1,
        };
        stored.saturating_add(decoding).saturating_add(kept.saturating_mul(CELL_BYTES))
    }

    /// The lengths of the axes, for so many stored bytes.
    pub(crate) fn shape(&self, stored: usize) -> Result<Vec<u64>, RequestError> {
        let element = self.dtype.dtype().size();
        match &self.shape {
            Some(shape) => Ok(shape.clone()),
            None if stored.is_multiple_of(element) => Ok(vec![(stored / element) as u64]),
            None => Err(RequestError::invalid(format!("{stored} bytes are not a multiple of {element}"))),
        }
    }

    pub(crate) fn order(&self) -> Order {
        self.order.unwrap_or_default()
    }

    /// The selected positions along each axis.
    pub(crate) fn positions(&self, shape: &[u64]) -> Vec<Positions> {
        match &self.selection {
            None => shape.iter().map(|length| Positions::all(*length)).collect(),
            Some(slices) => {
                slices.iter().zip(shape).map(|(slice, length)| slice.positions(*length)).collect()
            }
        }
    }

    /// The axes to reduce; `None` for all, to a single element without axes.
    pub(crate) fn reduced(&self) -> Option<Vec<usize>> {
        let place = |axis: &u64| usize::try_from(*axis).unwrap_or(usize::MAX);
        match &self.axis {
            None => None,
            Some(Axes::One(axis)) => Some(vec![place(axis)]),
            Some(Axes::Several(axes)) => Some(axes.iter().map(place).collect()),
        }
    }

    pub(crate) fn missing<T: Element>(&self) -> Result<MissingValues<T>, RequestError> {
        self.missing.as_ref().map_or(Ok(MissingValues::None), MissingNumbers::of_type)
    }
}
