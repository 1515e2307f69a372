//! Answers of requests: their comparison, and their text in messages.

use gristmill_kernel::{DType, KernelError, Position, Value};

/// Most bytes of a value that a message shows.
const MAX_SHOWN: usize = 600;

/// A row and its position.
type Row = (Position, Vec<u8>);

/// A value and rows, or an error.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The value, or the error.
    pub value: Result<Value, KernelError>,
    /// Rows in order of position, each once. For a kernel that gives bytes, one row at position 0 has all bytes, and
    /// there is no row if there are no bytes.
    pub rows: Vec<Row>,
}

impl From<Value> for Answer {
    fn from(value: Value) -> Answer {
        Answer { value: Ok(value), rows: Vec::new() }
    }
}

impl From<Result<Value, KernelError>> for Answer {
    fn from(value: Result<Value, KernelError>) -> Answer {
        Answer { value, rows: Vec::new() }
    }
}

impl Answer {
    /// Whether two answers have the same bits. Errors are the same if they are of one kind, because the bad record that
    /// an error names may depend on the split. Rows that came before an error do not count.
    pub fn same(&self, other: &Answer) -> bool {
        self.near(other, 0.0, None)
    }

    /// Whether two answers are the same within a tolerance. It is [`same`](Answer::same), but a float of the value, or
    /// of rows that are elements of this type, may differ by this part of the larger of the two.
    pub fn near(&self, other: &Answer, tolerance: f64, element: Option<DType>) -> bool {
        match (&self.value, &other.value) {
            (Ok(a), Ok(b)) => {
                near_value(a, b, tolerance) && near_rows(&self.rows, &other.rows, tolerance, element)
            }
            (Err(a), Err(b)) => std::mem::discriminant(a) == std::mem::discriminant(b),
            _ => false,
        }
    }

    /// Text of this answer for a comparison with another one: the value, and rows if these differ.
    pub(crate) fn show(&self, other: &Answer) -> String {
        let value = match &self.value {
            Ok(value) => shortened(show_value(value)),
            Err(error) => return format!("the error \"{error}\""),
        };
        if self.rows == other.rows || other.value.is_err() {
            return value;
        }
        let differs = (0..).zip(&self.rows).find(|(n, row)| other.rows.get(*n) != Some(row));
        let row = match differs {
            Some((n, (at, bytes))) => {
                let part = if at.part == 0 { String::new() } else { format!(", part {}", at.part) };
                format!("row {n} is {} of record {}{part}", shortened(show_bytes(bytes)), at.record)
            }
            None => "the other answer has all of them".into(),
        };
        format!("{value} with {} rows ({row})", self.rows.len())
    }
}

/// Text of a value for people.
fn show_value(value: &Value) -> String {
    let listed = |values: Vec<String>| values.join(", ");
    match value {
        Value::Int(n) => n.to_string(),
        Value::Float(x) => format!("{x:?}"),
        Value::Text(text) => format!("{text:?}"),
        Value::Bytes(bytes) => show_bytes(bytes),
        Value::List(values) => format!("[{}]", listed(values.iter().map(show_value).collect())),
        Value::Map(entries) => {
            listed(entries.iter().map(|(name, value)| format!("{name} {}", show_value(value))).collect())
        }
        Value::Array(array) => {
            let values = listed(array.values().map(|value| show_value(&value)).collect());
            format!("{} of shape {:?}: [{values}]", array.dtype.name(), array.shape)
        }
    }
}

fn show_bytes(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.chars().all(|c| !c.is_control() || c == '\n' || c == '\t') => format!("{text:?}"),
        _ => format!("the bytes {}", hexadecimal(bytes)),
    }
}

/// Text of bytes, with two hexadecimal digits each.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

fn shortened(mut text: String) -> String {
    if text.len() > MAX_SHOWN {
        text.truncate(text.floor_char_boundary(MAX_SHOWN));
        text.push_str(" ...");
    }
    text
}

fn near_rows(a: &[Row], b: &[Row], tolerance: f64, element: Option<DType>) -> bool {
    let Some(dtype) = element.filter(|dtype| tolerance > 0.0 && dtype.is_float()) else { return a == b };
    let elements =
        |bytes: &[u8]| Value::List(bytes.chunks(dtype.size()).map(|element| dtype.value(element)).collect());
    let near = |(a, b): (&Row, &Row)| a.0 == b.0 && near_value(&elements(&a.1), &elements(&b.1), tolerance);
    a.len() == b.len() && a.iter().zip(b).all(near)
}

fn near_value(a: &Value, b: &Value, tolerance: f64) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => {
            a.to_bits() == b.to_bits()
                // Zeros of both signs differ only in bits, and a tolerance of 0 means the same bits.
                || (tolerance > 0.0 && a.is_finite() && b.is_finite() && (a - b).abs() <= tolerance * a.abs().max(b.abs()))
        }
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| near_value(a, b, tolerance))
        }
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && near_value(&a.1, &b.1, tolerance))
        }
        (a, b) => a == b,
    }
}
