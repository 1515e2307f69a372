//! A whole object as a stream. If its connection is cut, the stream asks for the remaining bytes.

use std::ops::Range;

use bytes::Bytes;
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_transport::{Address, Response};
use gristmill_wire::{FileMap, GRANT_HEADER};
use http::{Method, Request, StatusCode, header};
use tokio::time::Instant;

use crate::Peers;
use crate::answers::RETRY_PAUSE;
use crate::bytes::{node_name, refusal};
use crate::error::{transport_error, unavailable};
use crate::peers::parse_address;

/// Number of times that the rest of an object is asked for if no byte arrives.
pub const TRIES_WITHOUT_PROGRESS: u32 = 3;

/// The bytes of one target's object, at the version of a grant, in order.
///
/// Nodes close the connection of a reader that takes nothing for minutes, such as a pager. Supervised nodes that die are
/// back soon. So if the body is cut in its middle, the stream asks for the rest with the same grant, which is for the
/// same version. It goes on for as long as each try gives some bytes or fails soon.
pub struct ObjectStream {
    peers: Peers,
    address: Address,
    node: String,
    object: String,
    grant: String,
    /// Offset of the next byte in the object.
    at: u64,
    /// Offset of the end of the bytes that are asked for; `None` for the end of the object.
    end: Option<u64>,
    /// `None` after a cut.
    response: Option<Response>,
    /// Bytes that have arrived and were not returned.
    unread: Bytes,
}

impl Peers {
    /// Asks for the whole object of one target.
    ///
    /// # Errors
    /// It fails if the file has no such target, and if its node cannot be reached, is silent or refuses.
    pub async fn object(&self, file: &FileMap, target: usize, grant: &str) -> Result<ObjectStream, RunError> {
        self.object_from(file, target, grant, 0, None).await
    }

    /// Asks for a range of the object of one target.
    ///
    /// # Errors
    /// It fails as [`object`](Peers::object) does.
    pub async fn object_range(
        &self,
        file: &FileMap,
        target: usize,
        grant: &str,
        range: Range<u64>,
    ) -> Result<ObjectStream, RunError> {
        self.object_from(file, target, grant, range.start, Some(range.end)).await
    }

    async fn object_from(
        &self,
        file: &FileMap,
        target: usize,
        grant: &str,
        at: u64,
        end: Option<u64>,
    ) -> Result<ObjectStream, RunError> {
        let Some(place) = file.targets.get(target) else {
            return Err(RunError::Internal { what: "a request named a target that the file does not have" });
        };
        let mut object = ObjectStream {
            peers: self.clone(),
            address: parse_address(&place.address)?,
            node: node_name(place.number, &place.address),
            object: file.object(),
            grant: grant.to_owned(),
            at,
            end,
            response: None,
            unread: Bytes::new(),
        };
        object.response = Some(object.ask().await?);
        Ok(object)
    }
}

impl ObjectStream {
    /// Asks for all bytes from `at` on.
    async fn ask(&self) -> Result<Response, RunError> {
        let mut request = Request::builder()
            .method(Method::GET)
            .uri(format!("/objects/{}", self.object))
            .header(GRANT_HEADER, &self.grant);
        request = self.peers.with_verify_header(request);
        let is_part = self.at > 0 || self.end.is_some();
        if is_part {
            let last = self.end.map_or_else(String::new, |end| end.saturating_sub(1).to_string());
            request = request.header(header::RANGE, format!("bytes={}-{last}", self.at));
        }
        let request = request.body(Bytes::new()).map_err(|e| unavailable(&self.node, e))?;
        let client = self.peers.dialer().http(&self.address);
        let mut response = client.send(request).await.map_err(|e| transport_error(&self.node, &e))?;
        if !response.status().is_success() {
            return Err(refusal(&self.node, &mut response).await);
        }
        if is_part && !begins_at(&response, self.at) {
            return Err(unavailable(&self.node, "it sent other bytes than it was asked for"));
        }
        Ok(response)
    }

    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    /// It fails if the node refuses, and if it breaks off and does not give the rest when it is asked again.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, RunError> {
        if !self.unread.is_empty() {
            return Ok(Some(std::mem::take(&mut self.unread)));
        }
        let mut tries = 0;
        loop {
            let begun = Instant::now();
            match self.next().await {
                // A node that is silent would be silent again.
                Err(error)
                    if error.kind() == ErrorKind::Unavailable
                        && tries < TRIES_WITHOUT_PROGRESS
                        && (tries == 0 || begun.elapsed() < self.peers.stall) =>
                {
                    if tries > 0 {
                        tokio::time::sleep(RETRY_PAUSE).await;
                    }
                    tries += 1;
                }
                next => return next,
            }
        }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, RunError> {
        if self.end.is_some_and(|end| self.at >= end) {
            return Ok(None);
        }
        let mut response = match self.response.take() {
            Some(response) => response,
            None => self.ask().await?,
        };
        let bytes = response.chunk().await.map_err(|e| transport_error(&self.node, &e))?;
        self.at += bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
        self.response = Some(response);
        Ok(bytes)
    }

    /// The next bytes, at least one and at most `most`.
    ///
    /// # Errors
    /// It fails at the end, and as [`chunk`](ObjectStream::chunk) does.
    pub async fn chunk_of_at_most(&mut self, most: usize) -> Result<Bytes, RunError> {
        while self.unread.is_empty() {
            match self.chunk().await? {
                Some(bytes) => self.unread = bytes,
                None => return Err(unavailable(&self.node, "it sent fewer bytes than it should have sent")),
            }
        }
        Ok(self.unread.split_to(most.min(self.unread.len())))
    }

    /// Checks that all bytes were read.
    ///
    /// # Errors
    /// The error is [`RunError::Remote`] if `read` is not `length`.
    pub fn check_length(&self, read: u64, length: u64) -> Result<(), RunError> {
        if read == length {
            return Ok(());
        }
        Err(unavailable(&self.node, format_args!("it sent {read} of {length} bytes")))
    }
}

/// Whether an answer has the bytes from `at` on. A node without support for ranges would send all bytes.
fn begins_at(response: &Response, at: u64) -> bool {
    let range = response.headers().get(header::CONTENT_RANGE).and_then(|value| value.to_str().ok());
    response.status() == StatusCode::PARTIAL_CONTENT
        && range.is_some_and(|range| range.starts_with(&format!("bytes {at}-")))
}
