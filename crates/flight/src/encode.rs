//! Record batches as messages.

use arrow_array::{Array, RecordBatch};
use arrow_ipc::writer::{DictionaryTracker, EncodedData, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow_schema::SchemaRef;
use futures_util::stream::{self, Stream, StreamExt};
use tonic::Status;

use crate::FlightData;

/// Bytes of columns from which a record batch is sent as several messages. Other implementations refuse messages of more than 4
/// MiB if they are not told otherwise, and the size of a message is known only roughly before it is encoded. A row is never split.
pub const MAX_BATCH_BYTES: usize = 2 << 20;

/// Encodes record batches: first their schema, then each batch as one or more messages. All batches must have the same
/// schema. If it is given it is sent at once, otherwise with the first batch. The stream ends after an error.
///
/// # Errors
/// An item is an error if the batch is one, or if Arrow cannot encode it, for example because it has a dictionary.
pub fn encode_batches(
    schema: Option<SchemaRef>,
    batches: impl Stream<Item = Result<RecordBatch, Status>> + Send + 'static,
) -> impl Stream<Item = Result<FlightData, Status>> + Send + 'static {
    let mut encoder = Encoder::default();
    let first = schema.map(|schema| encoder.schema(&schema));
    let rest = batches.flat_map(move |batch| {
        let messages = batch.and_then(|batch| encoder.batch(&batch));
        let items = match messages {
            Ok(messages) => messages.into_iter().map(Ok).collect(),
            Err(status) => vec![Err(status)],
        };
        stream::iter(items)
    });
    let all = stream::iter(first.map(Ok)).chain(rest);
    // Nothing follows an error.
    all.scan(false, |failed, item| {
        let next = (!*failed).then(|| {
            *failed = item.is_err();
            item
        });
        std::future::ready(next)
    })
}

/// State of a stream of batches.
struct Encoder {
    /// The schema that was sent.
    schema: Option<SchemaRef>,
    generator: IpcDataGenerator,
    dictionaries: DictionaryTracker,
    options: IpcWriteOptions,
    context: IpcWriteContext,
}

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder {
            schema: None,
            generator: IpcDataGenerator::default(),
            dictionaries: DictionaryTracker::new(true),
            options: IpcWriteOptions::default(),
            context: IpcWriteContext::default(),
        }
    }
}

impl Encoder {
    fn schema(&mut self, schema: &SchemaRef) -> FlightData {
        self.schema = Some(schema.clone());
        let Encoder { generator, dictionaries, options, .. } = self;
        message(generator.schema_to_bytes_with_dictionary_tracker(schema, dictionaries, options))
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<Vec<FlightData>, Status> {
        let mut messages = Vec::new();
        match &self.schema {
            None => messages.push(self.schema(batch.schema_ref())),
            Some(sent) if sent == batch.schema_ref() => {}
            Some(_) => return Err(Status::internal("a batch has another schema than the stream")),
        }
        for piece in pieces(batch) {
            let Encoder { generator, dictionaries, options, context, .. } = self;
            let encoded = generator.encode(&piece, dictionaries, options, context);
            let (of_dictionaries, of_batch) = encoded.map_err(|error| Status::internal(error.to_string()))?;
            if !of_dictionaries.is_empty() {
                return Err(Status::internal("columns with dictionaries are not supported"));
            }
            messages.push(message(of_batch));
        }
        Ok(messages)
    }
}

fn message(encoded: EncodedData) -> FlightData {
    FlightData {
        data_header: encoded.ipc_message.into(),
        data_body: encoded.arrow_data.into(),
        ..FlightData::default()
    }
}

/// Cuts a batch into pieces of about [`MAX_BATCH_BYTES`]. All but the last have the same number of rows.
fn pieces(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> {
    let bytes: usize = batch.columns().iter().map(|column| column.get_buffer_memory_size()).sum();
    let rows = batch.num_rows();
    let each = rows.div_ceil(bytes.div_ceil(MAX_BATCH_BYTES).max(1)).max(1);
    (0..rows).step_by(each).map(move |row| batch.slice(row, each.min(rows - row)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use arrow_array::types::Int8Type;
    use arrow_array::{ArrayRef, BinaryArray, DictionaryArray, Int64Array, StringArray};
    use futures_util::TryStreamExt;

    use super::*;
    use crate::BatchDecoder;

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter(columns).unwrap()
    }

    async fn messages(batches: Vec<Result<RecordBatch, Status>>) -> Vec<Result<FlightData, Status>> {
        encode_batches(None, stream::iter(batches)).collect().await
    }

    fn decoded(messages: Vec<FlightData>) -> Vec<RecordBatch> {
        let mut decoder = BatchDecoder::default();
        messages.into_iter().filter_map(|message| decoder.decode(message).unwrap()).collect()
    }

    #[tokio::test]
    async fn columns_of_several_types_come_back() {
        let text: ArrayRef = Arc::new(StringArray::from(vec![Some("flour"), None, Some("")]));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(-1), Some(i64::MAX), None]));
        let bytes: ArrayRef = Arc::new(BinaryArray::from_iter_values([b"\0\xff".as_slice(), b"", b"a"]));
        let sent = batch(vec![("text", text), ("numbers", numbers), ("bytes", bytes)]);
        let slice = sent.slice(1, 2);
        let answers = messages(vec![Ok(sent.clone()), Ok(slice.clone())]).await;
        let answers: Vec<_> = answers.into_iter().collect::<Result<_, _>>().unwrap();
        assert_eq!(answers.len(), 3);
        assert_eq!(decoded(answers), [sent, slice]);
    }

    #[tokio::test]
    async fn a_large_batch_is_several_messages_with_all_rows_in_order() {
        let rows = 1_000_003;
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
        let sent = batch(vec![("numbers", numbers)]);
        let answers = messages(vec![Ok(sent.clone())]).await;
        let answers: Vec<_> = answers.into_iter().collect::<Result<_, _>>().unwrap();
        assert!(answers.iter().all(|message| message.data_body.len() < 2 * MAX_BATCH_BYTES));
        let batches = decoded(answers);
        assert_eq!(batches.len(), 4);
        let mut first = 0;
        for each in &batches {
            assert_eq!(*each, sent.slice(first, each.num_rows()));
            first += each.num_rows();
        }
        assert_eq!(first, sent.num_rows());
    }

    #[tokio::test]
    async fn a_row_is_never_split() {
        let value = vec![7; 3 * MAX_BATCH_BYTES];
        let bytes: ArrayRef = Arc::new(BinaryArray::from_iter_values([&value, &value]));
        let answers = messages(vec![Ok(batch(vec![("bytes", bytes)]))]).await;
        let answers: Vec<_> = answers.into_iter().collect::<Result<_, _>>().unwrap();
        let rows: Vec<_> = decoded(answers).iter().map(RecordBatch::num_rows).collect();
        assert_eq!(rows, [1, 1]);
    }

    #[tokio::test]
    async fn a_known_schema_is_sent_without_a_batch() {
        let schema = batch(vec![("numbers", Arc::new(Int64Array::from(vec![1])))]).schema();
        let answers = encode_batches(Some(schema), stream::iter([]));
        let answers: Vec<_> = answers.try_collect().await.unwrap();
        assert_eq!((answers.len(), decoded(answers).len()), (1, 0));
    }

    #[tokio::test]
    async fn nothing_follows_an_error() {
        let one = || Ok(batch(vec![("numbers", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]));
        let answers = messages(vec![one(), Err(Status::aborted("enough")), one()]).await;
        let codes: Vec<_> = answers.iter().map(|answer| answer.as_ref().err().map(Status::code)).collect();
        assert_eq!(codes, [None, None, Some(tonic::Code::Aborted)]);
        let other = batch(vec![("others", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]);
        let refused = messages(vec![one(), Ok(other)]).await;
        let last = refused.last().and_then(|last| last.as_ref().err()).map(Status::code);
        assert_eq!(last, Some(tonic::Code::Internal));
        let dictionary: DictionaryArray<Int8Type> = ["a", "b", "a"].into_iter().collect();
        let refused = messages(vec![Ok(batch(vec![("words", Arc::new(dictionary))]))]).await;
        assert!(refused.iter().any(Result::is_err));
    }
}
