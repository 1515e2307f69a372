//! Short requests over HTTP, and the status of nodes as JSON.

use bytes::Bytes;
use gristmill_runtime::RunError;
use gristmill_wire::{ClusterStatus, GRANT_HEADER, MAX_CLUSTER_BYTES, MAX_STATUS_BYTES, NodeStatus};
use http::header::AUTHORIZATION;
use http::request::Builder;
use http::{Method, Request};

use crate::Peers;
use crate::bytes::refusal;
use crate::error::{transport_error, unavailable};
use crate::peers::parse_address;

impl Peers {
    /// Sends a GET and returns its answer of at most `most` bytes. Without a grant it sends the token of the client.
    pub(crate) async fn get(
        &self,
        address: &str,
        path: &str,
        grant: Option<&str>,
        most: usize,
    ) -> Result<Vec<u8>, RunError> {
        let request = Request::builder().method(Method::GET).uri(path);
        let request = match grant {
            Some(grant) => request.header(GRANT_HEADER, grant),
            None => self.with_token(request),
        };
        self.exchange(address, request, Bytes::new(), most).await
    }

    /// Adds the token of the client to a request.
    pub(crate) fn with_token(&self, request: Builder) -> Builder {
        match self.token() {
            Some(token) => request.header(AUTHORIZATION, token),
            None => request,
        }
    }

    /// Sends a request with this body and returns its answer of at most `most` bytes.
    pub(crate) async fn exchange(
        &self,
        address: &str,
        request: Builder,
        body: Bytes,
        most: usize,
    ) -> Result<Vec<u8>, RunError> {
        let request = request.body(body).map_err(|error| unavailable(address, error))?;
        let client = self.dialer().http(&parse_address(address)?);
        let mut response = client.send(request).await.map_err(|error| transport_error(address, &error))?;
        if !response.status().is_success() {
            return Err(refusal(address, &mut response).await);
        }
        let text = response.bytes(most).await.map_err(|error| transport_error(address, &error))?;
        Ok(text.to_vec())
    }

    /// The status of a node. `grant` is a grant for any file.
    ///
    /// # Errors
    /// Returns an error if the node cannot be reached, is silent, refuses, or sends an answer that cannot be decoded.
    pub async fn status(&self, address: &str, grant: &str) -> Result<NodeStatus, RunError> {
        let text = self.get(address, "/status", Some(grant), MAX_STATUS_BYTES).await?;
        NodeStatus::decode(&text).map_err(|error| unavailable(address, error))
    }

    /// The status of all nodes, from the entry node at this address. The client must be permitted to see it.
    ///
    /// # Errors
    /// Returns an error if the node cannot be reached, is silent, refuses, or sends an answer that cannot be decoded.
    pub async fn cluster(&self, entry: &str) -> Result<ClusterStatus, RunError> {
        let text = self.get(entry, "/cluster", None, MAX_CLUSTER_BYTES).await?;
        ClusterStatus::decode(&text).map_err(|error| unavailable(entry, error))
    }
}
