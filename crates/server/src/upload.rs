//! Upload of an object. Its bytes are written as they arrive, and the receipt is sent when all are durable.
//!
//! A client whose connection breaks does not know whether its object arrived, and may send it again. So a complete
//! object may be sent again. It is compared and never changed, and the client gets the same receipt.

use std::sync::Arc;

use axum::body::{Body, BodyDataStream, Bytes};
use futures_util::StreamExt;
use gristmill_runtime::ErrorKind;
use gristmill_store::{
    ArrivalState, CreateOptions, ObjectId, ReadOptions, StoreError, Version, WriteOptions,
};
use gristmill_wire::action::Receipt;

use crate::blocking::blocking;
use crate::error::{Answer, Refusal};
use crate::limits::{CUT_SEEN, OBJECT_STALL, PUT_LEASE};
use crate::objects::Object;
use crate::shared::Shared;
use crate::target;

/// Writes a body as an object. Nothing stays if the client does not end the body properly, or if the object is removed
/// meanwhile: the entry node removes the objects of a put that is over.
pub(crate) async fn receive(shared: &Arc<Shared>, object: Object, body: Body) -> Answer<Receipt> {
    // The upload begins before the object exists, so that a removal ends it.
    let arrival = shared.active_uploads.begin(&object.id);
    tokio::select! {
        biased;
        () = arrival.ended() => {
            Err(put_over())
        }
        received = take_in(shared, object, body) => received,
    }
}

fn put_over() -> Refusal {
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
            // If the connection ends meanwhile, the complete object stays: a second upload may have its receipt. The
            // entry node removes it if its put is over.
            let close = move || {
                let closed = state.store.close(&id).map_err(|error| state.store_refusal(&name, error))?;
                unfinished.finish();
                Ok::<_, Refusal>(closed)
            };
            (length, blocking(close).await?, sum)
        }
        Creation::Complete { length, version } => {
            let sum = compare(shared, &id, (length, version), body).await?;
            // An object is complete before all of it is durable.
            let (state, name) = (shared.clone(), path.clone());
            blocking(move || state.store.flush(&id).map_err(|error| state.store_refusal(&name, error)))
                .await?;
            (length, version, sum)
        }
    };
    Ok(receipt(shared, &grant.file.id, number, StoredObject { length, data: None, version, sum: Some(sum) }))
}

/// The object of a file on a node: its length in bytes, the number of its bytes that belong to the file if not all do
/// (`data`), and the CRC-32C of the bytes as they arrived (`sum`).
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

/// Creates the object, or finds it complete. An upload over another connection may belong to a broken connection that
/// the node has not noticed yet, so this waits for its end.
pub(crate) async fn create(shared: &Arc<Shared>, path: &str, id: &ObjectId) -> Answer<Creation> {
    let patience = tokio::time::Instant::now() + CUT_SEEN;
    loop {
        let (state, name, new) = (shared.clone(), path.to_owned(), id.clone());
        let begun = blocking(move || {
            state.has_room()?;
            if state.removed.has(&new) {
                return Err(put_over());
            }
            let open = CreateOptions { open: Some(PUT_LEASE), ..CreateOptions::default() };
            match state.store.create(&new, &open) {
                Ok(_) => {
                    let unfinished = UnfinishedObject { shared: state.clone(), id: Some(new.clone()) };
                    // It may have been removed while it was created.
                    if state.removed.has(&new) {
                        return Err(put_over());
                    }
                    Ok(Some(Creation::New(unfinished)))
                }
                Err(StoreError::Exists { .. }) => match state.store.stat(&new) {
                    Ok(found) if found.state == ArrivalState::Closed => {
                        Ok(Some(Creation::Complete { length: found.length, version: found.version }))
                    }
                    Ok(_) | Err(StoreError::NotFound { .. }) => Ok(None),
                    Err(error) => Err(state.store_refusal(&name, error)),
                },
                Err(error) => Err(state.store_refusal(&name, error)),
            }
        });
        if let Some(begun) = begun.await? {
            return Ok(begun);
        }
        if tokio::time::Instant::now() >= patience {
            let text = "this object is being written over another connection; wait for its end, or begin another put";
            return Err(Refusal::new(ErrorKind::Conflict, text));
        }
        tokio::time::sleep(CUT_SEEN / 40).await;
    }
}

/// The next bytes. `None` at the end.
async fn next(stream: &mut BodyDataStream) -> Answer<Option<Bytes>> {
    let cut = |why: String| Refusal::new(ErrorKind::Usage, format!("the upload was cut off: {why}"));
    let next = tokio::time::timeout(OBJECT_STALL, stream.next()).await;
    let next = next.map_err(|_| cut(format!("nothing came for {} s", OBJECT_STALL.as_secs())))?;
    next.transpose().map_err(|error| cut(error.to_string()))
}

/// Writes a body. Returns its length and its CRC-32C.
async fn write(shared: &Shared, path: &str, id: &ObjectId, body: Body) -> Answer<(u64, u32)> {
    let mut stream = body.into_data_stream();
    let (mut length, mut sum) = (0, 0);
    while let Some(bytes) = next(&mut stream).await? {
        shared.has_room()?;
        // This thread has the bytes in its cache. Another thread would be a third slower.
        let write = || shared.store.write_at(id, length, &bytes, WriteOptions::default());
        tokio::task::block_in_place(write).map_err(|error| shared.store_refusal(path, error))?;
        length += bytes.len() as u64;
        sum = crc32c::crc32c_append(sum, &bytes);
    }
    Ok((length, sum))
}

/// Compares a body with a complete object. Returns its CRC-32C.
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

/// An object that is removed on drop unless it was finished, also if the connection of the request ends.
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
        // Nothing refers to it. If it cannot be removed now, the next start of the node removes it.
        let remove = move || drop(shared.reserve.freeing(|| Ok(target::remove(&*shared.store, &id)?)));
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
