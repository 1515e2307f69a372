//! Record batches of messages.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_schema_from_flatbuffer_bytes;
use arrow_ipc::reader::RecordBatchDecoder;
use arrow_ipc::{MessageHeader, root_as_message};
use arrow_schema::SchemaRef;

use crate::{FlightData, FlightError};

/// Alignment of the columns' buffers that Arrow recommends, in bytes.
const ALIGNMENT: usize = 64;

/// Decodes the messages of one stream in their order.
#[derive(Debug, Default)]
pub struct BatchDecoder {
    schema: Option<SchemaRef>,
}

impl BatchDecoder {
    /// Decodes the next message; see [`decode`](Self::decode). It may panic if the message is malformed.
    fn read(&mut self, data: &FlightData) -> Result<Option<RecordBatch>, FlightError> {
        if data.data_header.is_empty() {
            return Ok(None);
        }
        let malformed = |why: String| FlightError::Header { why };
        let message = root_as_message(&data.data_header).map_err(|error| malformed(error.to_string()))?;
        match message.header_type() {
            MessageHeader::NONE => Ok(None),
            MessageHeader::Schema if self.schema.is_some() => Err(FlightError::SecondSchema),
            MessageHeader::Schema => {
                self.schema = Some(Arc::new(try_schema_from_flatbuffer_bytes(&data.data_header)?));
                Ok(None)
            }
            MessageHeader::RecordBatch => {
                let schema = self.schema.clone().ok_or(FlightError::NoSchema)?;
                let header = message.header_as_record_batch();
                let header = header.ok_or_else(|| malformed("it has no record batch".into()))?;
                let length = data.data_body.len() as u64;
                let fits = |buffer: &arrow_ipc::Buffer| {
                    let (offset, bytes) = (u64::try_from(buffer.offset()), u64::try_from(buffer.length()));
                    matches!((offset, bytes), (Ok(offset), Ok(bytes)) if offset.saturating_add(bytes) <= length)
                };
                if !header.buffers().is_none_or(|buffers| buffers.iter().all(fits)) {
                    return Err(malformed("its buffers do not lie in its body".into()));
                }
                let aligned = data.data_body.as_ptr().addr().is_multiple_of(ALIGNMENT);
                let buffer = match aligned {
                    true => Buffer::from(data.data_body.clone()),
                    false => Buffer::from(&*data.data_body),
                };
                let (dictionaries, version) = (HashMap::new(), message.version());
                let decoder = RecordBatchDecoder::try_new(&buffer, header, schema, &dictionaries, &version)?;
                Ok(Some(decoder.read_record_batch()?))
            }
            other => {
                let kind = other.variant_name().unwrap_or("UNKNOWN").to_owned();
                Err(FlightError::Unsupported { kind })
            }
        }
    }

    /// Decodes the next message. `None` if it has no record batch: it has the schema, or data of the application only.
    ///
    /// # Errors
    /// Returns an error if the message is malformed, is out of order, or is a dictionary.
    pub fn decode(&mut self, data: FlightData) -> Result<Option<RecordBatch>, FlightError> {
        // Arrow's reader panics on some malformed messages.
        let read = catch_unwind(AssertUnwindSafe(|| self.read(&data)));
        read.unwrap_or_else(|_| Err(FlightError::Header { why: "its parts do not fit together".into() }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use arrow_array::{ArrayRef, Int64Array, StringArray};
    use futures_util::{TryStreamExt, stream};
    use proptest::prelude::*;

    use super::*;
    use crate::encode_batches;

    async fn messages() -> Vec<FlightData> {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let text: ArrayRef = Arc::new(StringArray::from(vec!["flour", "bran"]));
        let batch = RecordBatch::try_from_iter([("numbers", numbers), ("text", text)]).unwrap();
        encode_batches(None, stream::iter([Ok(batch)])).try_collect().await.unwrap()
    }

    #[tokio::test]
    async fn messages_out_of_order_are_refused() {
        let [schema, batch] = messages().await.try_into().unwrap();
        let mut decoder = BatchDecoder::default();
        assert!(matches!(decoder.decode(batch.clone()), Err(FlightError::NoSchema)));
        assert!(decoder.decode(FlightData::of_metadata("note")).unwrap().is_none());
        assert!(decoder.decode(schema.clone()).unwrap().is_none());
        assert!(matches!(decoder.decode(schema), Err(FlightError::SecondSchema)));
        assert_eq!(decoder.decode(batch).unwrap().unwrap().num_rows(), 2);
    }

    proptest! {
        /// A changed byte or a cut of a message is an error or gives other values. It is never a panic.
        #[test]
        fn damaged_messages_never_panic(
            which in 0..2_usize, at in any::<prop::sample::Index>(), byte: u8, in_body: bool, cut: bool,
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let mut messages = runtime.block_on(messages());
            let message = &mut messages[which];
            let part = if in_body { &mut message.data_body } else { &mut message.data_header };
            let mut bytes = part.to_vec();
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
                bytes.truncate(if cut { at } else { bytes.len() });
            }
            *part = bytes.into();
            let mut decoder = BatchDecoder::default();
            for message in messages {
                let _ = decoder.decode(message);
            }
        }
    }
}
