//! What nodes say of themselves when they are asked: short answers as JSON, over HTTP.

use bytes::Bytes;
use gristmill_runtime::RunError;
use gristmill_wire::{ClusterStatus, GRANT_HEADER, MAX_CLUSTER_BYTES, MAX_STATUS_BYTES, NodeStatus};
use http::header::AUTHORIZATION;
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
        let mut request = Request::builder().method(Method::GET).uri(path);
        if let Some(grant) = grant {
            request = request.header(GRANT_HEADER, grant);
        } else if let Some(token) = self.token() {
            request = request.header(AUTHORIZATION, token);
        }
        let request = request.body(Bytes::new()).map_err(|error| unavailable(address, error))?;
        let client = self.dialer().http(&parse(address)?);
        let mut response = client.send(request).await.map_err(|error| transport(address, &error))?;
        if !response.status().is_success() {
            return Err(refusal(address, &mut response).await);
        }
        let mut text = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| transport(address, &error))? {
            if text.len() + chunk.len() > most {
                return Err(unavailable(address, format_args!("it says more than {most} bytes at {path}")));
            }
            text.extend_from_slice(&chunk);
        }
        Ok(text)
    }

    /// What a node does, told to whoever has a grant for some file.
    pub async fn status(&self, address: &str, grant: &str) -> Result<NodeStatus, RunError> {
        let text = self.told(address, "/status", Some(grant), MAX_STATUS_BYTES).await?;
        NodeStatus::decode(&text).map_err(|error| unavailable(address, error))
    }

    /// What all nodes do, as the entry node at this address tells whoever may ask it.
    pub async fn cluster(&self, entry: &str) -> Result<ClusterStatus, RunError> {
        let text = self.told(entry, "/cluster", None, MAX_CLUSTER_BYTES).await?;
        ClusterStatus::decode(&text).map_err(|error| unavailable(entry, error))
    }
}
