//! Comparing the namespace with the objects of storage nodes.

use gristmill_runtime::RunError;
use gristmill_wire::{FsckResult, FsckStep, MAX_FSCK_BYTES, MAX_OBJECT_PAGE_BYTES, ObjectPage};
use http::{Method, Request};

use crate::Peers;
use crate::error::unavailable;

impl Peers {
    /// Has an entry node compare some objects of a storage node with its namespace. Sends the token of the client.
    ///
    /// # Errors
    /// Returns an error if the entry node refuses or gives no answer.
    pub async fn fsck(&self, entry: &str, step: &FsckStep) -> Result<FsckResult, RunError> {
        let body = serde_json::to_vec(step).map_err(|error| unavailable(entry, error))?;
        let request = self.with_token(Request::builder().method(Method::POST).uri("/fsck"));
        let text = self.exchange(entry, request, body.into(), MAX_FSCK_BYTES).await?;
        FsckResult::decode(&text).map_err(|error| unavailable(entry, error))
    }

    /// The next page of a storage node's objects, after `object`, in ascending order. Sent by the entry node.
    ///
    /// # Errors
    /// Returns an error if the storage node refuses or gives no answer.
    pub async fn objects_after(
        &self,
        address: &str,
        object: &str,
        grant: &str,
    ) -> Result<ObjectPage, RunError> {
        let path = format!("/objects/{object}/next");
        let text = self.get(address, &path, Some(grant), MAX_OBJECT_PAGE_BYTES).await?;
        ObjectPage::decode(&text).map_err(|error| unavailable(address, error))
    }
}
