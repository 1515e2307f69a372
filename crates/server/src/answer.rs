//! Answers as Arrow record batches, for clients without knowledge of kernels.
//!
//! A value is one row with a column for each of its names. Integers are Int64, or text if they do not fit; floats
//! Float64; texts Utf8; bytes Binary; lists List; maps in it JSON text. Rows are two columns: `index` (UInt64) and
//! `value` of the element's type, or `offset` (UInt64) and `line` (Binary).

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, UInt64Builder};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array,
    ListArray, RecordBatch, StringArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use gristmill_kernel::{DType, RowBatch, RowShape, RowValue, Value};

/// Converts a value to a batch of one row.
pub(crate) fn value_batch(value: &Value) -> Result<RecordBatch, ArrowError> {
    let whole = [("value", value.clone())];
    let entries: &[(&str, Value)] = match value {
        Value::Map(entries) => entries,
        _ => &whole,
    };
    let columns: Vec<(Field, ArrayRef)> = entries
        .iter()
        .map(|(name, value)| {
            let column = column(std::slice::from_ref(value))?;
            Ok((Field::new(*name, column.data_type().clone(), true), column))
        })
        .collect::<Result<_, ArrowError>>()?;
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// Converts values of one kind to a column; values of several kinds become text.
fn column(values: &[Value]) -> Result<ArrayRef, ArrowError> {
    let ints: Option<Vec<i64>> = values
        .iter()
        .map(|value| match value {
            Value::Int(n) => i64::try_from(*n).ok(),
            _ => None,
        })
        .collect();
    if let Some(ints) = ints.filter(|ints| !ints.is_empty()) {
        return Ok(Arc::new(Int64Array::from(ints)));
    }
    let floats: Option<Vec<f64>> = values
        .iter()
        .map(|value| match value {
            Value::Float(x) => Some(*x),
            _ => None,
        })
        .collect();
    if let Some(floats) = floats.filter(|floats| !floats.is_empty()) {
        return Ok(Arc::new(Float64Array::from(floats)));
    }
    if let [Value::Bytes(bytes)] = values {
        return Ok(Arc::new(BinaryArray::from_vec(vec![bytes])));
    }
    if let [Value::Array(array)] = values {
        return column(&[Value::List(array.values().collect())]);
    }
    if let [Value::List(items)] = values {
        let items = column(items)?;
        let field = Arc::new(Field::new("item", items.data_type().clone(), true));
        let offsets = arrow_buffer::OffsetBuffer::from_lengths([items.len()]);
        return Ok(Arc::new(ListArray::try_new(field, offsets, items, None)?));
    }
    let texts: Vec<String> = values.iter().map(text).collect();
    Ok(Arc::new(StringArray::from(texts)))
}

fn text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Int(n) => n.to_string(),
        Value::Float(x) => x.to_string(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::List(items) => format!("[{}]", items.iter().map(quoted).collect::<Vec<_>>().join(", ")),
        Value::Array(array) => text(&Value::List(array.values().collect())),
        Value::Map(entries) => {
            let each = entries.iter().map(|(key, value)| format!("\"{key}\": {}", quoted(value)));
            format!("{{{}}}", each.collect::<Vec<_>>().join(", "))
        }
    }
}

fn quoted(value: &Value) -> String {
    match value {
        Value::Text(_) | Value::Bytes(_) => {
            serde_json::to_string(&text(value)).unwrap_or_else(|_| "\"\"".to_owned())
        }
        other => text(other),
    }
}

/// Schema of rows.
pub(crate) fn row_schema(shape: &RowShape) -> SchemaRef {
    let (name, kind) = match shape.value {
        RowValue::Element(dtype) => ("value", arrow_type(dtype)),
        RowValue::Line => ("line", DataType::Binary),
    };
    let fields = vec![Field::new(shape.position, DataType::UInt64, false), Field::new(name, kind, false)];
    Arc::new(Schema::new(fields))
}

fn arrow_type(dtype: DType) -> DataType {
    match dtype {
        DType::I8 => DataType::Int8,
        DType::I16 => DataType::Int16,
        DType::I32 => DataType::Int32,
        DType::I64 => DataType::Int64,
        DType::U8 => DataType::UInt8,
        DType::U16 => DataType::UInt16,
        DType::U32 => DataType::UInt32,
        DType::U64 => DataType::UInt64,
        DType::F32 => DataType::Float32,
        DType::F64 => DataType::Float64,
    }
}

/// Converts rows to a batch.
pub(crate) fn row_batch(
    schema: &SchemaRef,
    shape: &RowShape,
    rows: &RowBatch,
) -> Result<RecordBatch, ArrowError> {
    let mut positions = UInt64Builder::with_capacity(rows.len());
    rows.positions().for_each(|at| positions.append_value(shape.display_number(at)));
    let values: ArrayRef = match shape.value {
        RowValue::Element(dtype) => elements(dtype, rows.bytes()),
        RowValue::Line => {
            let mut lines = BinaryBuilder::with_capacity(rows.len(), rows.bytes().len());
            rows.iter().for_each(|(_, line)| lines.append_value(line));
            Arc::new(lines.finish())
        }
    };
    RecordBatch::try_new(schema.clone(), vec![Arc::new(positions.finish()), values])
}

/// Decodes consecutive little-endian elements.
fn elements(dtype: DType, bytes: &[u8]) -> ArrayRef {
    macro_rules! column {
        ($array:ty, $native:ty) => {{
            let (chunks, _) = bytes.as_chunks::<{ size_of::<$native>() }>();
            Arc::new(<$array>::from_iter_values(chunks.iter().map(|chunk| <$native>::from_le_bytes(*chunk))))
        }};
    }
    match dtype {
        DType::I8 => column!(Int8Array, i8),
        DType::I16 => column!(Int16Array, i16),
        DType::I32 => column!(Int32Array, i32),
        DType::I64 => column!(Int64Array, i64),
        DType::U8 => column!(UInt8Array, u8),
        DType::U16 => column!(UInt16Array, u16),
        DType::U32 => column!(UInt32Array, u32),
        DType::U64 => column!(UInt64Array, u64),
        DType::F32 => column!(Float32Array, f32),
        DType::F64 => column!(Float64Array, f64),
    }
}
