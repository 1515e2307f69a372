//! A whole object as a stream.

use bytes::Bytes;
use gristmill_runtime::RunError;
use gristmill_transport::Response;
use gristmill_wire::{FileMap, GRANT_HEADER};
use http::{Method, Request};

use crate::Peers;
use crate::bytes::{node_name, refusal};
use crate::error::{transport, unavailable};
use crate::peers::parse;

/// The bytes of one target's object, at the version of a grant, in order.
pub struct ObjectStream {
    node: String,
    response: Response,
    left: Bytes,
}

impl Peers {
    /// Asks for the whole object of one target.
    pub async fn object(&self, file: &FileMap, target: usize, grant: &str) -> Result<ObjectStream, RunError> {
        let Some(place) = file.targets.get(target) else {
            return Err(unavailable("", "the file has no such target"));
        };
        let node = node_name(place.number, &place.address);
        let request = Request::builder()
            .method(Method::GET)
            .uri(format!("/objects/{}", file.object()))
            .header(GRANT_HEADER, grant)
            .body(Bytes::new())
            .map_err(|e| unavailable(&node, e))?;
        let client = self.dialer().http(&parse(&place.address)?);
        let mut response = client.send(request).await.map_err(|e| transport(&node, &e))?;
        if !response.status().is_success() {
            return Err(refusal(&node, &mut response).await);
        }
        Ok(ObjectStream { node, response, left: Bytes::new() })
    }
}

impl ObjectStream {
    /// The next bytes; `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, RunError> {
        if !self.left.is_empty() {
            return Ok(Some(std::mem::take(&mut self.left)));
        }
        self.response.chunk().await.map_err(|e| transport(&self.node, &e))
    }

    /// The next bytes, at least one and at most so many; an error at the end.
    pub async fn at_most(&mut self, most: usize) -> Result<Bytes, RunError> {
        while self.left.is_empty() {
            match self.chunk().await? {
                Some(bytes) => self.left = bytes,
                None => return Err(unavailable(&self.node, "it sent less than it should have")),
            }
        }
        Ok(self.left.split_to(most.min(self.left.len())))
    }

    /// An error unless so many bytes were read as there should be.
    pub fn complete(&self, read: u64, length: u64) -> Result<(), RunError> {
        if read == length {
            return Ok(());
        }
        Err(unavailable(&self.node, format_args!("it sent {read} of {length} bytes")))
    }
}
