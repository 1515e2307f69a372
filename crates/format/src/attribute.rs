//! The attributes of a file, without any conversion.

use gristmill_kernel::{DType, Value};

/// A named value of a variable, a group or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// The name of the attribute.
    pub name: String,
    /// The value of the attribute.
    pub value: AttributeValue,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// One text.
    Text(String),
    /// Several texts.
    Texts(Vec<String>),
    /// Numbers of one type.
    Numbers {
        /// The type of the numbers.
        dtype: DType,
        /// The numbers, little-endian, in C order.
        bytes: Vec<u8>,
        /// Whether the file has a single number instead of a list. In netCDF files a list of one number is the same.
        scalar: bool,
        /// Whether the file gives the type. Numbers of JSON have no type: in arithmetic they take that of the other
        /// operand.
        typed: bool,
    },
    /// A description of a value that is neither text nor numbers, or that has a shape.
    Other(String),
}

impl AttributeValue {
    /// Returns the exact numbers, or `None` if the value is not numbers.
    pub fn numbers(&self) -> Option<Vec<Value>> {
        let AttributeValue::Numbers { dtype, bytes, .. } = self else { return None };
        Some(bytes.chunks_exact(dtype.size()).map(|one| dtype.value(one)).collect())
    }

    /// Returns the text, or `None` if the value is not a single text.
    pub fn text(&self) -> Option<&str> {
        match self {
            AttributeValue::Text(text) => Some(text),
            AttributeValue::Texts(texts) => match texts.as_slice() {
                [text] => Some(text),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the value if it is a single signed integer.
    pub(crate) fn integer(&self) -> Option<i64> {
        match self.numbers()?.as_slice() {
            [Value::Int(n)] => i64::try_from(*n).ok(),
            _ => None,
        }
    }
}

impl Attribute {
    /// Converts the value to netCDF's view, in which a list of one number is a single number.
    pub(crate) fn as_netcdf(&mut self) {
        if let AttributeValue::Numbers { dtype, bytes, scalar, .. } = &mut self.value {
            *scalar = bytes.len() == dtype.size();
        }
    }
}
