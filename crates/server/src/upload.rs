//! Taking an object in: chunks are written as they come, and the receipt is given when all is durable.

use std::sync::Arc;

use axum::body::Body;
use futures_util::StreamExt;
use gristmill_runtime::ErrorKind;
use gristmill_store::{CreateOptions, ObjectId, ObjectStore, StoreError, WriteOptions};
use gristmill_wire::action::Receipt;

use crate::error::{Answer, Refusal};
use crate::limits::{PUT_LEASE, UPLOAD_STALL};
use crate::node::{Shared, blocking};
use crate::objects::Object;
use crate::target;

/// Writes a body as an object. Without the client's word that this was all, nothing stays.
pub(crate) async fn receive(shared: &Arc<Shared>, object: Object, body: Body) -> Answer<Receipt> {
    let Object { id, grant, number, .. } = object;
    let path = &grant.file.path;
    let (state, new, name) = (shared.clone(), id.clone(), path.clone());
    let mut unfinished = blocking(move || {
        create(&state, &name, &new)?;
        Ok::<_, Refusal>(Unfinished { shared: state, id: Some(new) })
    })
    .await?;
    let length = write(shared, path, &id, body).await?;
    let (state, name) = (shared.clone(), path.clone());
    let version =
        blocking(move || state.store.close(&id).map_err(|error| state.of_store(&name, error))).await?;
    unfinished.id = None;
    let text = Receipt::signed_text(&grant.file.id, number, length, version.0);
    Ok(Receipt { length, version: version.0, seal: shared.key.sign(text.as_bytes()) })
}

fn create(shared: &Shared, path: &str, id: &ObjectId) -> Answer<()> {
    let open = CreateOptions { open: Some(PUT_LEASE), ..CreateOptions::default() };
    match shared.store.create(id, &open) {
        Ok(_) => Ok(()),
        Err(StoreError::Exists { .. }) => {
            Err(Refusal::new(ErrorKind::Conflict, "this object was written already; begin another put"))
        }
        Err(error) => Err(shared.of_store(path, error)),
    }
}

/// Writes what comes, and gives its length.
async fn write(shared: &Shared, path: &str, id: &ObjectId, body: Body) -> Answer<u64> {
    let mut stream = body.into_data_stream();
    let cut = |why: String| Refusal::new(ErrorKind::Usage, format!("the upload was cut off: {why}"));
    let mut length = 0;
    loop {
        let next = tokio::time::timeout(UPLOAD_STALL, stream.next()).await;
        match next.map_err(|_| cut(format!("nothing came for {} s", UPLOAD_STALL.as_secs())))? {
            None => return Ok(length),
            Some(Err(error)) => return Err(cut(error.to_string())),
            Some(Ok(bytes)) => {
                // On this thread, whose cache has the bytes: handing them to another one costs a third of the speed.
                let write = || shared.store.write_at(id, length, &bytes, WriteOptions::default());
                tokio::task::block_in_place(write).map_err(|error| shared.of_store(path, error))?;
                length += bytes.len() as u64;
            }
        }
    }
}

/// Removes an object unless it was finished: also where the request ends because its connection does.
struct Unfinished {
    shared: Arc<Shared>,
    id: Option<ObjectId>,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let shared = self.shared.clone();
        // Nothing points to it; if it cannot be removed now, the next start of the node does.
        let remove = move || drop(target::remove(&shared.store, &id));
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}
