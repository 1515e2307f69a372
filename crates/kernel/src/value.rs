//! The answer of a kernel: named numbers, texts and lists.

/// A value in an answer.
///
/// Integers are exact; a sum of 2^62 values of 64 bits fits. Floats are f64: results about f32 data are widened
/// exactly, so that reading the printed number gives the very value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An exact integer.
    Int(i128),
    /// An f64; NaN is the one canonical NaN.
    Float(f64),
    /// UTF-8 text.
    Text(String),
    /// Bytes that need not be text.
    Bytes(Vec<u8>),
    /// Values in order.
    List(Vec<Value>),
    /// Named values, in the order in which they are shown.
    Map(Vec<(&'static str, Value)>),
}

impl Value {
    /// The value of this name in a map.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Map(entries) => entries.iter().find(|(key, _)| *key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// A float with every NaN made the canonical one.
    pub fn float(x: f64) -> Value {
        Value::Float(if x.is_nan() { f64::NAN } else { x })
    }

    /// Text where the bytes are UTF-8, else the bytes.
    pub fn text_or_bytes(bytes: &[u8]) -> Value {
        match std::str::from_utf8(bytes) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => Value::Bytes(bytes.to_vec()),
        }
    }
}

impl From<u64> for Value {
    fn from(n: u64) -> Value {
        Value::Int(i128::from(n))
    }
}
