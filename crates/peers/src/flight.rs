//! Frames as Arrow record batches with one binary column and a row for each frame. Any Flight client can read them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BinaryArray, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use gristmill_wire::{Frame, WireError};

/// Name of the column.
pub const FRAME_COLUMN: &str = "frame";

/// Schema of a stream of frames.
pub fn frame_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new(FRAME_COLUMN, DataType::Binary, false)]))
}

/// Encoded frames as a record batch.
///
/// # Errors
/// Returns the errors of Arrow.
pub fn frame_batch(schema: &SchemaRef, frames: &[Vec<u8>]) -> Result<RecordBatch, ArrowError> {
    let column: ArrayRef = Arc::new(BinaryArray::from_iter_values(frames));
    RecordBatch::try_new(schema.clone(), vec![column])
}

/// The frames of a record batch, and their lengths in bytes.
pub(crate) fn frames_of(batch: &RecordBatch) -> Result<Vec<(Frame, usize)>, WireError> {
    let malformed =
        || WireError::Malformed { what: "stream of frames", why: "it has no column of frames".into() };
    let column = batch.column_by_name(FRAME_COLUMN).ok_or_else(malformed)?;
    let column = column.as_binary_opt::<i32>().ok_or_else(malformed)?;
    column.iter().flatten().map(|bytes| Ok((Frame::decode(bytes)?, bytes.len()))).collect()
}
