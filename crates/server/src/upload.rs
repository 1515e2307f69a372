//! Taking an object in: chunks are written as they come, and the receipt is given when all is durable.
//!
//! A client whose connection breaks cannot tell whether its object arrived and may send it once more. So an object that
//! is complete may be sent again: it is compared, never changed, and the same receipt is given.

use std::sync::Arc;

use axum::body::{Body, BodyDataStream, Bytes};
use futures_util::StreamExt;
use gristmill_runtime::ErrorKind;
use gristmill_store::{
    ArrivalState, CreateOptions, ObjectId, ObjectStore, ReadOptions, StoreError, Version, WriteOptions,
};
use gristmill_wire::action::Receipt;

use crate::error::{Answer, Refusal};
use crate::limits::{CUT_SEEN, OBJECT_STALL, PUT_LEASE};
use crate::node::{Shared, blocking};
use crate::objects::Object;
use crate::target;

/// Writes a body as an object. Without the client's word that this was all, nothing stays; nor where the object is
/// removed meanwhile, as the entry node does with those of a put that is over.
pub(crate) async fn receive(shared: &Arc<Shared>, object: Object, body: Body) -> Answer<Receipt> {
    // Before there is anything that could be removed.
    let arrival = shared.active_uploads.begin(&object.id);
    tokio::select! {
        biased;
        () = arrival.ended() => {
            Err(over())
        }
        received = take_in(shared, object, body) => received,
    }
}

fn over() -> Refusal {
    let text = "the put is over: it was given up, or its lease ran out; begin it again";
    Refusal::new(ErrorKind::Conflict, text)
}

async fn take_in(shared: &Arc<Shared>, object: Object, body: Body) -> Answer<Receipt> {
    let Object { id, grant, number, .. } = object;
    let path = &grant.file.path;
    let (length, version, sum) = match create(shared, path, &id).await? {
        Creation::New(unfinished) => {
            let (length, sum) = write(shared, path, &id, body).await?;
            let (state, name) = (shared.clone(), path.clone());
            // Where the connection ends meanwhile, the complete object stays: its receipt may have been given to who
            // sent it again. The entry node has it removed if its put is over.
            let close = move || {
                let closed = state.store.close(&id).map_err(|error| state.of_store(&name, error))?;
                unfinished.finish();
                Ok::<_, Refusal>(closed)
            };
            (length, blocking(close).await?, sum)
        }
        Creation::Complete { length, version } => {
            let sum = compare(shared, &id, (length, version), body).await?;
            // Complete is said before all is durable.
            let (state, name) = (shared.clone(), path.clone());
            blocking(move || state.store.flush(&id).map_err(|error| state.of_store(&name, error))).await?;
            (length, version, sum)
        }
    };
    Ok(receipt(shared, &grant.file.id, number, StoredObject { length, data: None, version, sum: Some(sum) }))
}

/// The object that a node has of a file: its length, how many of its bytes are the file's where not all are (`data`), and the
/// CRC-32C of the bytes as they came (`sum`).
pub(crate) struct StoredObject {
    pub length: u64,
    pub data: Option<u64>,
    pub version: Version,
    pub sum: Option<u32>,
}

/// Creates the sealed receipt for an object of a file.
pub(crate) fn receipt(shared: &Shared, file: &str, number: u32, held: StoredObject) -> Receipt {
    let StoredObject { length, data, version, sum } = held;
    let unsigned = Receipt { length, data, version: version.0, sum, seal: String::new() };
    let seal = shared.key.sign(unsigned.signed_text(file, number).as_bytes());
    Receipt { seal, ..unsigned }
}

pub(crate) enum Creation {
    New(UnfinishedObject),
    Complete { length: u64, version: Version },
}

/// Makes the object, or finds it complete. One that is on its way over another connection may be so because that is
/// broken and this node has not seen it yet.
pub(crate) async fn create(shared: &Arc<Shared>, path: &str, id: &ObjectId) -> Answer<Creation> {
    let patience = tokio::time::Instant::now() + CUT_SEEN;
    loop {
        let (state, name, new) = (shared.clone(), path.to_owned(), id.clone());
        let begun = blocking(move || {
            state.has_room()?;
            if state.removed.has(&new) {
                return Err(over());
            }
            let open = CreateOptions { open: Some(PUT_LEASE), ..CreateOptions::default() };
            match state.store.create(&new, &open) {
                Ok(_) => {
                    let unfinished = UnfinishedObject { shared: state.clone(), id: Some(new.clone()) };
                    // It may have been removed while it was made.
                    if state.removed.has(&new) {
                        return Err(over());
                    }
                    Ok(Some(Creation::New(unfinished)))
                }
                Err(StoreError::Exists { .. }) => match state.store.stat(&new) {
                    Ok(found) if found.state == ArrivalState::Closed => {
                        Ok(Some(Creation::Complete { length: found.length, version: found.version }))
                    }
                    Ok(_) | Err(StoreError::NotFound { .. }) => Ok(None),
                    Err(error) => Err(state.of_store(&name, error)),
                },
                Err(error) => Err(state.of_store(&name, error)),
            }
        });
        if let Some(begun) = begun.await? {
            return Ok(begun);
        }
        if tokio::time::Instant::now() >= patience {
            let text =
                "this object is being written over another connection; wait for that, or begin another put";
            return Err(Refusal::new(ErrorKind::Conflict, text));
        }
        tokio::time::sleep(CUT_SEEN / 40).await;
    }
}

/// The next bytes, none at the end.
async fn next(stream: &mut BodyDataStream) -> Answer<Option<Bytes>> {
    let cut = |why: String| Refusal::new(ErrorKind::Usage, format!("the upload was cut off: {why}"));
    let next = tokio::time::timeout(OBJECT_STALL, stream.next()).await;
    let next = next.map_err(|_| cut(format!("nothing came for {} s", OBJECT_STALL.as_secs())))?;
    next.transpose().map_err(|error| cut(error.to_string()))
}

/// Writes what comes, and gives its length and its CRC-32C.
async fn write(shared: &Shared, path: &str, id: &ObjectId, body: Body) -> Answer<(u64, u32)> {
    let mut stream = body.into_data_stream();
    let (mut length, mut sum) = (0, 0);
    while let Some(bytes) = next(&mut stream).await? {
        shared.has_room()?;
        // On this thread, whose cache has the bytes: handing them to another one costs a third of the speed.
        let write = || shared.store.write_at(id, length, &bytes, WriteOptions::default());
        tokio::task::block_in_place(write).map_err(|error| shared.of_store(path, error))?;
        length += bytes.len() as u64;
        sum = crc32c::crc32c_append(sum, &bytes);
    }
    Ok((length, sum))
}

/// Compares what comes with a complete object, and gives its CRC-32C.
async fn compare(
    shared: &Shared,
    id: &ObjectId,
    (length, version): (u64, Version),
    body: Body,
) -> Answer<u32> {
    let other = || {
        let text = "this object was written already, with other bytes; begin another put";
        Refusal::new(ErrorKind::Conflict, text)
    };
    let mut stream = body.into_data_stream();
    let (mut at, mut sum) = (0, 0);
    while let Some(bytes) = next(&mut stream).await? {
        let read = || {
            let mut held = vec![0; bytes.len()];
            let read = shared.store.read_at(id, at, &mut held, ReadOptions::at(version));
            read.is_ok_and(|read| read == held.len()) && held == *bytes
        };
        if !tokio::task::block_in_place(read) {
            return Err(other());
        }
        at += bytes.len() as u64;
        sum = crc32c::crc32c_append(sum, &bytes);
    }
    if at == length { Ok(sum) } else { Err(other()) }
}

/// Removes an object unless it was finished: also where the request ends because its connection does.
pub(crate) struct UnfinishedObject {
    shared: Arc<Shared>,
    id: Option<ObjectId>,
}

impl UnfinishedObject {
    pub fn finish(mut self) {
        self.id = None;
    }
}

impl Drop for UnfinishedObject {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let shared = self.shared.clone();
        // Nothing points to it; if it cannot be removed now, the next start of the node does.
        let remove = move || drop(shared.reserve.freeing(|| Ok(target::remove(&shared.store, &id)?)));
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::convert::Infallible;

    use futures_util::stream::unfold;

    use super::*;
    use crate::limits::UPLOAD_STALL;

    #[tokio::test(start_paused = true)]
    async fn a_slow_source_may_be_silent_for_as_long_as_its_grant_holds() {
        let pauses = [2 * UPLOAD_STALL, OBJECT_STALL / 2, 2 * OBJECT_STALL].into_iter();
        let slow = unfold(pauses, |mut pauses| async move {
            tokio::time::sleep(pauses.next()?).await;
            Some((Ok::<_, Infallible>(Bytes::from_static(b"a")), pauses))
        });
        let mut stream = Body::from_stream(slow).into_data_stream();
        for _ in 0..2 {
            assert_eq!(next(&mut stream).await.unwrap().unwrap(), "a");
        }
        let cut = next(&mut stream).await.unwrap_err();
        assert!(cut.0.message.contains("nothing came for"), "{cut:?}");
    }
}
