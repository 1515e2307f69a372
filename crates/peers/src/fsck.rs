//! Comparing the namespace with the objects of storage nodes.

use bytes::Bytes;
use gristmill_runtime::RunError;
use gristmill_wire::{FsckFound, FsckStep, MAX_FSCK_BYTES, MAX_OBJECT_PAGE_BYTES, ObjectPage};
use http::header::AUTHORIZATION;
use http::{Method, Request};

use crate::Peers;
use crate::bytes::refusal;
use crate::error::{transport, unavailable};
use crate::peers::parse;

impl Peers {
    /// Has an entry node compare some objects of a storage node with its namespace, in the name of whoever asks.
    ///
    /// # Errors
    /// What the entry node refused, and a node that gives no answer.
    pub async fn fsck(&self, entry: &str, step: &FsckStep) -> Result<FsckFound, RunError> {
        let body = serde_json::to_vec(step).map_err(|error| unavailable(entry, error))?;
        let mut request = Request::builder().method(Method::POST).uri("/fsck");
        if let Some(token) = self.token() {
            request = request.header(AUTHORIZATION, token);
        }
        let request = request.body(Bytes::from(body)).map_err(|error| unavailable(entry, error))?;
        let client = self.dialer().http(&parse(entry)?);
        let mut response = client.send(request).await.map_err(|error| transport(entry, &error))?;
        if !response.status().is_success() {
            return Err(refusal(entry, &mut response).await);
        }
        let text = response.bytes(MAX_FSCK_BYTES).await.map_err(|error| transport(entry, &error))?;
        FsckFound::decode(&text).map_err(|error| unavailable(entry, error))
    }

    /// The objects that a storage node has behind this one, told to the entry node.
    ///
    /// # Errors
    /// As [`fsck`](Peers::fsck).
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
