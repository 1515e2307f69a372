//! Comparing the namespace with the objects of storage nodes.

use gristmill_runtime::RunError;
use gristmill_wire::{FsckFound, FsckStep, MAX_FSCK_BYTES, MAX_OBJECT_PAGE_BYTES, ObjectPage};
use http::{Method, Request};

use crate::Peers;
use crate::error::unavailable;

impl Peers {
    /// Has an entry node compare some objects of a storage node with its namespace, in the name of whoever asks.
    ///
    /// # Errors
    /// The entry node refuses, or gives no answer.
    pub async fn fsck(&self, entry: &str, step: &FsckStep) -> Result<FsckFound, RunError> {
        let body = serde_json::to_vec(step).map_err(|error| unavailable(entry, error))?;
        let request = self.named(Request::builder().method(Method::POST).uri("/fsck"));
        let text = self.answered(entry, request, body.into(), MAX_FSCK_BYTES).await?;
        FsckFound::decode(&text).map_err(|error| unavailable(entry, error))
    }

    /// The objects that a storage node has behind this one, told to the entry node.
    ///
    /// # Errors
    /// The storage node refuses, or gives no answer.
    pub async fn objects_behind(
        &self,
        address: &str,
        object: &str,
        grant: &str,
    ) -> Result<ObjectPage, RunError> {
        let path = format!("/objects/{object}/next");
        let text = self.told(address, &path, Some(grant), MAX_OBJECT_PAGE_BYTES).await?;
        ObjectPage::decode(&text).map_err(|error| unavailable(address, error))
    }
}
