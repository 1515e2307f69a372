//! Attributes, exactly as a file has them.

use gristmill_kernel::{DType, Value};

/// A named value of a variable, a group or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its value.
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
        /// Their type.
        dtype: DType,
        /// The numbers, little-endian, in C order.
        bytes: Vec<u8>,
        /// Whether the file has one number and no list of one. In netCDF files both are the same.
        scalar: bool,
        /// Whether the file says their type. Numbers of JSON have none: what is computed with them keeps the type of the other.
        typed: bool,
    },
    /// Something that is neither text nor numbers, or that has a shape: what it is.
    Other(String),
}

impl AttributeValue {
    /// The numbers, exactly; `None` for what is none.
    pub fn numbers(&self) -> Option<Vec<Value>> {
        let AttributeValue::Numbers { dtype, bytes, .. } = self else { return None };
        Some(bytes.chunks_exact(dtype.size()).map(|one| dtype.value(one)).collect())
    }

    /// The text, where there is one.
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

    /// One signed integer, where there is one.
    pub(crate) fn integer(&self) -> Option<i64> {
        match self.numbers()?.as_slice() {
            [Value::Int(n)] => i64::try_from(*n).ok(),
            _ => None,
        }
    }
}

impl Attribute {
    /// As netCDF has it, where one number and a list of one are the same.
    pub(crate) fn as_netcdf(&mut self) {
        if let AttributeValue::Numbers { dtype, bytes, scalar, .. } = &mut self.value {
            *scalar = bytes.len() == dtype.size();
        }
    }
}
