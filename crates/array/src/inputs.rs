//! Further inputs of an expression: variables and constants.
//!
//! The inputs of an expression are, in this order: the elements of the *lead*, whose chunks are the records; the
//! elements of further variables of the same shape over the same box, which follow the lead's elements in each record;
//! and the constants, which come with the request.

use std::str::FromStr;

use gristmill_kernel::{ArrayType, DType};
use serde::{Deserialize, Serialize};

use crate::decode::Stored;
use crate::error::ArrayError;
use crate::selection::Selected;
use crate::values::{Number, Values, with_number, with_values};

/// Most inputs of an expression.
pub const MAX_INPUTS: usize = 16;

/// Most bytes of all constants of a request.
pub const MAX_CONSTANT_BYTES: usize = 4 << 20;

/// An array that comes with a request. It is repeated along the axes of the selection along which it has length 1.
///
/// ```
/// use gristmill_array::*;
/// use gristmill_kernel::{ArrayType, Block, Ctx, DType, Fold, Kernel, Next, NoRows, Value, saved};
///
/// // The mean over the first axis of the differences from a climate, which has a number for each of three places.
/// let request = Request {
///     grid: Grid::whole(vec![2, 3])?,
///     meaning: Meaning::plain(DType::I16),
///     others: Vec::new(),
///     constants: vec![Constant {
///         dtype: ArrayType::Number(DType::I16),
///         lengths: vec![1, 3],
///         bytes: [10i16, 20, 30].iter().flat_map(|x| x.to_le_bytes()).collect(),
///     }],
///     selection: Selection::default(),
///     expr: Some(Expr::parse("x - climate", &["x", "climate"])?),
///     reduction: Reduction::new(Op::Mean).over(&[0]),
/// };
/// let kernel = ArrayReduce::bind(request)?;
/// let ctx = Ctx::first(0..1);
/// let mut fold = kernel.begin(&ctx)?;
/// let chunk: Vec<u8> = [11i16, 20, 28, 12, 22, 29].iter().flat_map(|x| x.to_le_bytes()).collect();
/// fold.update(&Block::new(0, 1, &chunk), &mut NoRows)?;
/// let Next::Done(answer) = kernel.advance(&ctx, &saved(&*fold))? else { unreachable!() };
/// let Some(Value::Array(mean)) = answer.get("mean") else { unreachable!() };
/// assert_eq!(mean.values().collect::<Vec<_>>(), [1.5, 1.0, -1.5].map(Value::Float));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constant {
    /// Type of the elements.
    #[serde(with = "as_name")]
    pub dtype: ArrayType,
    /// Length along each axis of the selection that was not dropped: the length of the axis, or 1 if it is repeated.
    pub lengths: Vec<u64>,
    /// The elements in C order, little-endian. A bool is one byte.
    pub bytes: Vec<u8>,
}

/// A type as its name.
mod as_name {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{ArrayType, DType, FromStr};

    pub fn serialize<S: Serializer>(dtype: &ArrayType, to: S) -> Result<S::Ok, S::Error> {
        dtype.name().serialize(to)
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<ArrayType, D::Error> {
        match &*String::deserialize(from)? {
            "bool" => Ok(ArrayType::Bool),
            name => DType::from_str(name).map(ArrayType::Number).map_err(D::Error::custom),
        }
    }
}

/// A constant that is repeated over a selection.
#[derive(Clone, Debug)]
pub(crate) struct BroadcastConstant {
    values: Values,
    /// Distance from one selected element to the next, for each axis of the array; 0 where the constant is repeated.
    pub(crate) strides: Vec<usize>,
}

impl Constant {
    /// Repeats the constant over a selection. `number` is the number of the input, from 0, for errors.
    pub(crate) fn broadcast(
        &self,
        selected: &Selected,
        number: usize,
    ) -> Result<BroadcastConstant, ArrayError> {
        let wrong = |why: String| Err(ArrayError::Input { number, why });
        let shown: Vec<usize> =
            (0..selected.axes.len()).filter(|axis| !selected.axes[*axis].dropped).collect();
        if self.lengths.len() != shown.len() {
            let (given, axes) = (self.lengths.len(), shown.len());
            return wrong(format!("it has {given} axes and the selection has {axes}"));
        }
        let mut strides = vec![0; selected.axes.len()];
        let mut elements = 1usize;
        for (length, axis) in self.lengths.iter().zip(&shown).rev() {
            let count = selected.axes[*axis].count;
            if *length != 1 && *length != count {
                return wrong(format!(
                    "it has {length} elements along an axis of {count}; give as many, or 1"
                ));
            }
            if *length != 1 {
                strides[*axis] = elements;
            }
            elements =
                usize::try_from(*length).ok().and_then(|n| elements.checked_mul(n)).unwrap_or(usize::MAX);
        }
        if elements.checked_mul(self.dtype.size()) != Some(self.bytes.len()) {
            let (bytes, name) = (self.bytes.len(), self.dtype.name());
            return wrong(format!("its {bytes} bytes are not {elements} elements of {name}"));
        }
        let values = match self.dtype {
            ArrayType::Bool => Values::Bool(self.bytes.iter().map(|byte| *byte != 0).collect()),
            ArrayType::Number(dtype) => with_number!(dtype, T => {
                T::wrap(self.bytes.chunks_exact(dtype.size()).map(<T as Stored>::read).collect())
            }),
        };
        Ok(BroadcastConstant { values, strides })
    }
}

impl BroadcastConstant {
    /// Returns the elements of rows. A row is its first element and its length; `stride` is the distance between
    /// elements.
    pub(crate) fn column(&self, rows: impl Iterator<Item = (usize, usize)>, stride: usize) -> Values {
        fn taken<T: Number>(all: &[T], rows: impl Iterator<Item = (usize, usize)>, stride: usize) -> Values {
            let mut out = Vec::new();
            for (first, length) in rows {
                match stride {
                    0 => out.extend(std::iter::repeat_n(all.get(first).copied().unwrap_or_default(), length)),
                    1 => out.extend_from_slice(all.get(first..first + length).unwrap_or(&[])),
                    _ => out.extend(all.iter().skip(first).step_by(stride).take(length)),
                }
            }
            T::wrap(out)
        }
        with_values!(&self.values, values => taken(values, rows, stride))
    }
}
