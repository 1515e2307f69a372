//! Taking an object in: chunks are written as they come, and the receipt is given when all is durable.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::StreamExt;
use gristmill_runtime::ErrorKind;
use gristmill_store::{CreateOptions, ObjectId, ObjectStore, StoreError, WriteOptions};
use gristmill_wire::action::Receipt;
use tokio::sync::mpsc;

use crate::error::{Answer, Refusal};
use crate::limits::{CHUNKS_WAITING, PUT_LEASE, UPLOAD_STALL};
use crate::node::{Shared, blocking};
use crate::objects::Object;
use crate::target;

/// What comes from the network.
enum Chunk {
    Bytes(Bytes),
    /// The client said that this was all.
    End,
}

/// Writes a body as an object.
pub(crate) async fn receive(shared: &Arc<Shared>, object: Object, body: Body) -> Answer<Receipt> {
    let Object { id, grant, number, .. } = object;
    let (sender, chunks) = mpsc::channel(CHUNKS_WAITING);
    let state = shared.clone();
    let path = grant.file.path.clone();
    let writer = tokio::spawn(blocking(move || write(&state, &path, &id, chunks)));
    let fed = feed(body, sender).await;
    let written =
        writer.await.map_err(|e| Refusal::new(ErrorKind::Failed, format!("a write panicked: {e}")))?;
    // What the disk says matters more than that nobody read on.
    let (length, version) = written?;
    fed?;
    let text = Receipt::signed_text(&grant.file.id, number, length, version);
    Ok(Receipt { length, version, seal: shared.key.sign(text.as_bytes()) })
}

async fn feed(body: Body, sender: mpsc::Sender<Chunk>) -> Answer<()> {
    let mut stream = body.into_data_stream();
    let cut = |why: String| Refusal::new(ErrorKind::Usage, format!("the upload was cut off: {why}"));
    loop {
        let next = tokio::time::timeout(UPLOAD_STALL, stream.next()).await;
        match next.map_err(|_| cut(format!("nothing came for {} s", UPLOAD_STALL.as_secs())))? {
            Some(Ok(bytes)) => {
                if sender.send(Chunk::Bytes(bytes)).await.is_err() {
                    return Err(cut("it could not be written".into()));
                }
            }
            Some(Err(error)) => return Err(cut(error.to_string())),
            None => {
                let _ = sender.send(Chunk::End).await;
                return Ok(());
            }
        }
    }
}

/// Writes what comes. Without the client's word that this was all, nothing stays.
fn write(
    shared: &Shared,
    path: &str,
    id: &ObjectId,
    mut chunks: mpsc::Receiver<Chunk>,
) -> Answer<(u64, u64)> {
    let store = &shared.store;
    let failed = |error| shared.of_store(path, error);
    let open = CreateOptions { open: Some(PUT_LEASE), ..CreateOptions::default() };
    match store.create(id, &open) {
        Err(StoreError::Exists { .. }) => {
            let text = "this object was written already; begin another put";
            return Err(Refusal::new(ErrorKind::Conflict, text));
        }
        other => other.map_err(failed)?,
    };
    let written = (|| -> Answer<(u64, u64)> {
        let mut length = 0;
        loop {
            match chunks.blocking_recv() {
                Some(Chunk::Bytes(bytes)) => {
                    store.write_at(id, length, &bytes, WriteOptions::default()).map_err(failed)?;
                    length += bytes.len() as u64;
                }
                Some(Chunk::End) => break,
                None => {
                    let text = "the upload was cut off before its end; nothing of it was kept";
                    return Err(Refusal::new(ErrorKind::Usage, text));
                }
            }
        }
        let version = store.close(id).map_err(failed)?;
        Ok((length, version.0))
    })();
    if written.is_err() {
        // Nothing points to it; if it cannot be removed now, the next start of the node does.
        let _ = target::remove(store, id);
    }
    written
}
