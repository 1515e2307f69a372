//! What nodes say of themselves when they are asked: short answers as JSON, over HTTP.

use bytes::Bytes;
use gristmill_runtime::RunError;
use gristmill_wire::{ClusterStatus, GRANT_HEADER, MAX_CLUSTER_BYTES, MAX_STATUS_BYTES, NodeStatus};
use http::header::AUTHORIZATION;
use http::request::Builder;
use http::{Method, Request};

use crate::Peers;
use crate::bytes::refusal;
use crate::error::{transport, unavailable};
use crate::peers::parse;

impl Peers {
    /// The answer to a GET, at most `most` bytes: with this grant, or else in the name of whoever asks.
    pub(crate) async fn told(
        &self,
        address: &str,
        path: &str,
        grant: Option<&str>,
        most: usize,
    ) -> Result<Vec<u8>, RunError> {
        let request = Request::builder().method(Method::GET).uri(path);
        let request = match grant {
            Some(grant) => request.header(GRANT_HEADER, grant),
            None => self.named(request),
        };
        self.answered(address, request, Bytes::new(), most).await
    }

    /// A request that says who asks.
    pub(crate) fn named(&self, request: Builder) -> Builder {
        match self.token() {
            Some(token) => request.header(AUTHORIZATION, token),
            None => request,
        }
    }

    /// The answer to a request with this body, at most `most` bytes.
    pub(crate) async fn answered(
        &self,
        address: &str,
        request: Builder,
        body: Bytes,
        most: usize,
    ) -> Result<Vec<u8>, RunError> {
        let request = request.body(body).map_err(|error| unavailable(address, error))?;
        let client = self.dialer().http(&parse(address)?);
        let mut response = client.send(request).await.map_err(|error| transport(address, &error))?;
        if !response.status().is_success() {
            return Err(refusal(address, &mut response).await);
        }
        let text = response.bytes(most).await.map_err(|error| transport(address, &error))?;
        Ok(text.to_vec())
    }

    /// What a node does, told to whoever has a grant for some file.
    ///
    /// # Errors
    /// It fails if the node cannot be reached, is silent, refuses or answers what makes no sense.
    pub async fn status(&self, address: &str, grant: &str) -> Result<NodeStatus, RunError> {
        let text = self.told(address, "/status", Some(grant), MAX_STATUS_BYTES).await?;
        NodeStatus::decode(&text).map_err(|error| unavailable(address, error))
    }

    /// What all nodes do, as the entry node at this address tells whoever may ask it.
    ///
    /// # Errors
    /// It fails if the node cannot be reached, is silent, refuses or answers what makes no sense.
    pub async fn cluster(&self, entry: &str) -> Result<ClusterStatus, RunError> {
        let text = self.told(entry, "/cluster", None, MAX_CLUSTER_BYTES).await?;
        ClusterStatus::decode(&text).map_err(|error| unavailable(entry, error))
    }
}
