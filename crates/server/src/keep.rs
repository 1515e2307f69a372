//! Output bytes of a fold that stay on this node: its object of a segments file.

use std::sync::Arc;

use gristmill_kernel::RowBatch;
use gristmill_layout::SegmentTable;
use gristmill_runtime::{Control, ErrorKind, RunError, ShardEnd, ShardJob, UnitEnd, UnitOutput};
use gristmill_store::{ObjectId, StoreError, WriteOptions};
use gristmill_wire::action::Receipt;
use gristmill_wire::{Grant, Rights};

use crate::error::{Answer, Refusal};
use crate::limits::KEEP_BYTES;
use crate::objects::elsewhere;
use crate::shared::Shared;
use crate::upload::{Creation, StoredObject, UnfinishedObject, create, receipt};

/// A segments file, and the index of this node's target in it.
pub(crate) struct Output {
    grant: Grant,
    id: ObjectId,
    number: u32,
    /// Index of this node's target in the layout.
    place: u32,
}

impl Output {
    /// Checks a grant to write the output of a fold over these targets. `reader`: grant of the fold.
    pub fn new(shared: &Shared, sealed: &str, reader: &Grant, targets: &[u32]) -> Answer<Output> {
        let grant = shared.grant(sealed, Rights::Write)?;
        if grant.principal != reader.principal {
            return Err(Refusal::new(ErrorKind::Denied, "the two grants have different principals; use one"));
        }
        if !grant.file.segments {
            let text = "the output of a fold needs a segments file; create the file as one";
            return Err(Refusal::new(ErrorKind::Usage, text));
        }
        if targets.len() != 1 {
            return Err(Refusal::new(ErrorKind::Usage, "a fold with output must name exactly one target"));
        }
        let number = shared.number()?;
        let place = (0..).zip(&grant.file.targets).find(|(_, place)| place.number == number);
        let (place, _) = place.ok_or_else(|| elsewhere(&shared.address))?;
        let id = ObjectId::new(&grant.file.object()).map_err(StoreError::from)?;
        Ok(Output { grant, id, number, place })
    }

    /// Creates the object. Returns an error if it exists already: a client may have its receipt.
    pub async fn begin(&self, shared: &Arc<Shared>) -> Result<UnfinishedObject, RunError> {
        match create(shared, &self.grant.file.path, &self.id).await.map_err(as_error)? {
            Creation::New(unfinished) => Ok(unfinished),
            Creation::Complete { .. } => {
                let text = "the output was written already, and the answer was lost; begin the request again";
                Err(as_error(Refusal::new(ErrorKind::Conflict, text)))
            }
        }
    }

    /// Waits until the object is removed. Returns the error of the fold.
    pub async fn removed(&self, shared: &Arc<Shared>) -> RunError {
        shared.active_uploads.begin(&self.id).ended().await;
        let text = "the put of the output was given up, or its lease expired; send the request again";
        as_error(Refusal::new(ErrorKind::Conflict, text))
    }

    /// Folds and writes the bytes. Returns the receipt when they are durable. Blocks.
    pub fn keep(
        &self,
        shared: &Arc<Shared>,
        job: &ShardJob,
        unfinished: UnfinishedObject,
        control: &Control,
    ) -> Result<(ShardEnd, (u32, Receipt)), RunError> {
        let (table, buffer) = (SegmentTable::default(), Vec::with_capacity(KEEP_BYTES));
        let mut object = KeptObject { shared, output: self, table, buffer, at: 0, made: 0 };
        let end = job.keep(&mut object, control)?;
        if control.stopped() {
            return Err(as_error(Refusal::new(ErrorKind::Failed, "the client is gone")));
        }
        let data = object.table.data();
        let table = object.table.encode();
        object.buffer.extend_from_slice(&table);
        object.write()?;
        let length = object.at;
        let version = shared.store.close(&self.id).map_err(|error| self.failed(shared, error))?;
        unfinished.finish();
        let receipt = receipt(
            shared,
            &self.grant.file.id,
            self.number,
            StoredObject { length, data: Some(data), version, sum: None },
        );
        Ok((end, (self.place, receipt)))
    }

    fn failed(&self, shared: &Shared, error: StoreError) -> RunError {
        as_error(shared.store_refusal(&self.grant.file.path, error))
    }
}

fn as_error(refusal: Refusal) -> RunError {
    refusal.0.into_error()
}

/// The object while it is written.
struct KeptObject<'a> {
    shared: &'a Shared,
    output: &'a Output,
    table: SegmentTable,
    /// Bytes that are not written yet: at most [`KEEP_BYTES`] and one batch.
    buffer: Vec<u8>,
    /// Bytes written.
    at: u64,
    /// Bytes of the current unit.
    made: u64,
}

impl KeptObject<'_> {
    fn write(&mut self) -> Result<(), RunError> {
        self.shared.has_room().map_err(as_error)?;
        let (store, id) = (&self.shared.store, &self.output.id);
        let written = store.write_at(id, self.at, &self.buffer, WriteOptions::default());
        written.map_err(|error| self.output.failed(self.shared, error))?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl UnitOutput for KeptObject<'_> {
    fn begin(&mut self, _: u64) -> Result<(), RunError> {
        self.made = 0;
        Ok(())
    }

    fn rows(&mut self, batch: RowBatch) -> Result<(), RunError> {
        self.made += batch.bytes().len() as u64;
        self.buffer.extend_from_slice(batch.bytes());
        if self.buffer.len() >= KEEP_BYTES { self.write() } else { Ok(()) }
    }

    fn end(&mut self, end: UnitEnd) -> Result<(), RunError> {
        match end.piece {
            Some((records, _)) if !records.is_empty() => Ok(self.table.push(records, self.made)?),
            _ if self.made == 0 => Ok(()),
            _ => Err(RunError::BadPartial { why: "there are bytes without a record".into() }),
        }
    }
}
