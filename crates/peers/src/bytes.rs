//! The object of one target of a file, read over the network.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gristmill_runtime::{ErrorKind, FileParts, Part, PartRange, Placement, RunError};
use gristmill_transport::{Address, Response};
use gristmill_wire::{ErrorBody, FileMap, GRANT_HEADER};
use http::{Method, Request, StatusCode, header};

use crate::Peers;
use crate::answers::{MAX_TRIES, RETRY_PAUSE};
use crate::error::{transport_error, unavailable};
use crate::peers::parse_address;

/// Most extents of one message. More extents take several messages.
const MAX_EXTENTS: usize = 4096;

/// How long a node that has no memory for bytes now is asked again.
const MAX_BUSY_TIME: Duration = Duration::from_secs(60);

/// Most bytes of one message with more than one extent.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// Longest error text that is read.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// One target's object, at the version of a grant, read with HTTP/1.1.
pub struct RemotePart {
    peers: Peers,
    address: Address,
    node: String,
    object: String,
    grant: Arc<str>,
    version: u64,
}

/// The parts of a file, read from its nodes over the network. Blocks for the layout of a segments file.
///
/// # Errors
/// It fails if the address of a target is invalid, and as [`Peers::layout`] does.
pub fn file_parts(
    peers: &Peers,
    file: &FileMap,
    grant: &Arc<str>,
    place: Placement,
) -> Result<FileParts, RunError> {
    let parts = remote_parts(peers, file, grant)?.into_iter().map(|part| Arc::new(part) as Arc<dyn Part>);
    let (name, layout) = (file.path.clone(), peers.layout(file, grant)?);
    Ok(FileParts { name, length: file.length, layout, parts: parts.collect(), place })
}

pub(crate) fn remote_parts(
    peers: &Peers,
    file: &FileMap,
    grant: &Arc<str>,
) -> Result<Vec<RemotePart>, RunError> {
    let part = |target: &gristmill_wire::TargetPlace| {
        Ok(RemotePart {
            peers: peers.clone(),
            address: parse_address(&target.address)?,
            node: node_name(target.number, &target.address),
            object: file.object(),
            grant: grant.clone(),
            version: target.version,
        })
    };
    file.targets.iter().map(part).collect()
}

/// The name of a node in messages.
pub(crate) fn node_name(number: u32, address: &str) -> String {
    format!("{number} ({address})")
}

impl RemotePart {
    /// Fills `buffer` from `offset` of the object.
    pub(crate) async fn fetch_range(&self, offset: u64, buffer: &mut [u8]) -> Result<(), RunError> {
        if buffer.is_empty() {
            return Ok(());
        }
        let range = format!("bytes={offset}-{}", offset + buffer.len() as u64 - 1);
        let request = self.request(Method::GET, "").header(header::RANGE, range).body(Bytes::new());
        self.fetch(built(request)?, buffer).await
    }

    /// Fills `buffer` with the end of the object.
    pub(crate) async fn fetch_end(&self, buffer: &mut [u8]) -> Result<(), RunError> {
        let range = format!("bytes=-{}", buffer.len());
        let request = self.request(Method::GET, "").header(header::RANGE, range).body(Bytes::new());
        self.fetch(built(request)?, buffer).await
    }

    /// Asks again if the node could not be reached or broke off. Supervised nodes are back soon, and a second read changes
    /// nothing.
    async fn fetch(&self, request: Request<Bytes>, out: &mut [u8]) -> Result<(), RunError> {
        let mut tries = 1;
        loop {
            let begun = tokio::time::Instant::now();
            match self.fetch_once(request.clone(), out).await {
                Err(error)
                    if error.kind() == ErrorKind::Unavailable
                        && tries < MAX_TRIES
                        && begun.elapsed() < self.peers.stall =>
                {
                    tokio::time::sleep(RETRY_PAUSE).await;
                    tries += 1;
                }
                // The memory for such messages is shared and becomes free soon. In the middle of a fold there is no
                // other way.
                Err(error) if error.kind() == ErrorKind::Busy && begun.elapsed() < MAX_BUSY_TIME => {
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                fetched => return fetched,
            }
        }
    }

    async fn fetch_once(&self, request: Request<Bytes>, out: &mut [u8]) -> Result<(), RunError> {
        let client = self.peers.dialer().http(&self.address);
        let mut response = client.send(request).await.map_err(|e| transport_error(&self.node, &e))?;
        if !response.status().is_success() {
            return Err(refusal(&self.node, &mut response).await);
        }
        let mut done = 0;
        while let Some(chunk) = response.chunk().await.map_err(|e| transport_error(&self.node, &e))? {
            let Some(room) = out.get_mut(done..done + chunk.len()) else {
                return Err(unavailable(&self.node, "it sent more bytes than it was asked for"));
            };
            room.copy_from_slice(&chunk);
            done += chunk.len();
        }
        self.peers.received().add(done);
        if done < out.len() {
            return Err(unavailable(&self.node, format_args!("it sent {done} of {} bytes", out.len())));
        }
        Ok(())
    }

    fn request(&self, method: Method, path: &str) -> http::request::Builder {
        let request = Request::builder()
            .method(method)
            .uri(format!("/objects/{}{path}", self.object))
            .header(GRANT_HEADER, &*self.grant);
        self.peers.with_verify_header(request)
    }
}

/// The error of a node that refused a request.
pub(crate) async fn refusal(node: &str, response: &mut Response) -> RunError {
    let status = response.status();
    let mut text = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        if text.len() + chunk.len() > MAX_ERROR_BYTES {
            break;
        }
        text.extend_from_slice(&chunk);
    }
    match serde_json::from_slice::<ErrorBody>(&text) {
        Ok(body) => body.into_error(),
        Err(_) if status == StatusCode::SERVICE_UNAVAILABLE => unavailable(node, "it is shutting down"),
        Err(_) => unavailable(node, format_args!("it answered {status}")),
    }
}

fn built(request: Result<Request<Bytes>, http::Error>) -> Result<Request<Bytes>, RunError> {
    request.map_err(|_| RunError::Internal { what: "a request to a node is not valid HTTP" })
}

impl Part for RemotePart {
    fn read(&self, _: Option<&str>, offset: u64, buffer: &mut [u8]) -> Result<(), RunError> {
        self.peers.received().count_waiting(|| self.peers.wait(self.fetch_range(offset, buffer)))
    }

    fn read_many(&self, wants: &[PartRange<'_>], out: &mut [u8]) -> Result<(), RunError> {
        let mut rest = out;
        for wants in split_into_messages(wants) {
            if let ([want], true) = (wants, rest.len() >= wants[0].len) {
                let (buffer, after) = rest.split_at_mut(want.len);
                self.read(want.object, want.offset, buffer)?;
                rest = after;
                continue;
            }
            let bytes: usize = wants.iter().map(|want| want.len).sum();
            let mut body = Vec::with_capacity(16 * wants.len());
            for want in wants {
                body.extend_from_slice(&want.offset.to_le_bytes());
                body.extend_from_slice(&(want.len as u64).to_le_bytes());
            }
            let (buffer, after) = rest.split_at_mut(bytes.min(rest.len()));
            let request = self.request(Method::POST, "/extents").body(Bytes::from(body));
            let request = built(request)?;
            self.peers.received().count_waiting(|| self.peers.wait(self.fetch(request, buffer)))?;
            rest = after;
        }
        Ok(())
    }

    /// Needs no request: every read names the version that it wants.
    fn unchanged(&self) -> Result<(), RunError> {
        Ok(())
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn describe(&self) -> String {
        self.node.clone()
    }
}

/// Divides the wanted extents into messages.
fn split_into_messages<'w, 'a>(wants: &'w [PartRange<'a>]) -> impl Iterator<Item = &'w [PartRange<'a>]> {
    let mut rest = wants;
    std::iter::from_fn(move || {
        let mut bytes = 0usize;
        let fits = |want: &&PartRange<'_>| {
            bytes = bytes.saturating_add(want.len);
            bytes <= MAX_MESSAGE_BYTES
        };
        let count = rest.iter().take(MAX_EXTENTS).take_while(fits).count().max(1);
        let (now, later) = rest.split_at_checked(count)?;
        rest = later;
        Some(now)
    })
}
