//! The answer of a kernel: named numbers, texts, lists and arrays.

use crate::DType;

/// A value in an answer.
///
/// Integers are exact; a sum of 2^62 values of 64 bits fits. Floats are f64. Results of f32 data are widened
/// exactly, so the printed number is the exact value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An exact integer.
    Int(i128),
    /// An f64; a NaN is the canonical NaN.
    Float(f64),
    /// UTF-8 text.
    Text(String),
    /// Bytes that need not be text.
    Bytes(Vec<u8>),
    /// Values in order.
    List(Vec<Value>),
    /// Named values, in the order in which they are shown.
    Map(Vec<(&'static str, Value)>),
    /// An array of elements.
    Array(Array),
}

impl Value {
    /// The value of this name in a map.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Map(entries) => entries.iter().find(|(key, _)| *key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// A float. Every NaN becomes the canonical NaN.
    pub fn float(x: f64) -> Value {
        Value::Float(if x.is_nan() { f64::NAN } else { x })
    }

    /// Text if the bytes are UTF-8, else the bytes.
    pub fn text_or_bytes(bytes: &[u8]) -> Value {
        match std::str::from_utf8(bytes) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => Value::Bytes(bytes.to_vec()),
        }
    }
}

/// An array in an answer. Two arrays are equal if their bits are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Type of the elements.
    pub dtype: ArrayType,
    /// Length of each axis, the slowest first; empty for a single element.
    pub shape: Vec<u64>,
    /// The elements, little-endian, in the order of the axes (C order).
    pub data: Vec<u8>,
}

impl Array {
    /// The elements as numbers. Booleans are 0 and 1.
    pub fn values(&self) -> impl Iterator<Item = Value> {
        let dtype = self.dtype;
        self.data.chunks_exact(dtype.size()).map(move |bytes| match dtype {
            ArrayType::Bool => Value::Int(i128::from(bytes != [0])),
            ArrayType::Number(dtype) => dtype.value(bytes),
        })
    }
}

/// The type of an element of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArrayType {
    /// True or false: a byte of 1 or 0.
    Bool,
    /// A number of a type that files can hold.
    Number(DType),
}

impl ArrayType {
    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            ArrayType::Bool => 1,
            ArrayType::Number(dtype) => dtype.size(),
        }
    }

    /// `bool`, or the name of the type of the number.
    pub const fn name(self) -> &'static str {
        match self {
            ArrayType::Bool => "bool",
            ArrayType::Number(dtype) => dtype.name(),
        }
    }
}

impl From<u64> for Value {
    fn from(n: u64) -> Value {
        Value::Int(i128::from(n))
    }
}
