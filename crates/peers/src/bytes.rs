//! What one target holds of a file, read over the network.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gristmill_runtime::{ErrorKind, FileParts, Part, Placement, RunError, Want};
use gristmill_transport::{Address, Response};
use gristmill_wire::{ErrorBody, FileMap, GRANT_HEADER};
use http::{Method, Request, StatusCode, header};

use crate::Peers;
use crate::answers::{PAUSE, TRIES};
use crate::error::{transport, unavailable};
use crate::peers::parse;

/// Most extents of one message; more are asked for in several.
const MAX_EXTENTS: usize = 4096;

/// How long bytes are asked for again of a node that has no memory for them now.
const BUSY_TIME: Duration = Duration::from_secs(60);

/// Most bytes of one message, as long as it is of more than one extent.
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

/// The parts of a file on its nodes, as they are read over the network. Blocks for the layout of a segments file.
///
/// # Errors
/// It fails if the address of a target is none, and as [`Peers::layout`] does.
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
            address: parse(&target.address)?,
            node: node_name(target.number, &target.address),
            object: file.object(),
            grant: grant.clone(),
            version: target.version,
        })
    };
    file.targets.iter().map(part).collect()
}

/// How messages name a node.
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

    /// Asks again where the node could not be reached or broke off: supervised nodes are back soon, and reading twice
    /// changes nothing.
    async fn fetch(&self, request: Request<Bytes>, out: &mut [u8]) -> Result<(), RunError> {
        let mut tries = 1;
        loop {
            let begun = tokio::time::Instant::now();
            match self.fetch_once(request.clone(), out).await {
                Err(error)
                    if error.kind() == ErrorKind::Unavailable
                        && tries < TRIES
                        && begun.elapsed() < self.peers.stall =>
                {
                    tokio::time::sleep(PAUSE).await;
                    tries += 1;
                }
                // Of the memory for such messages, which goes round: in the middle of a fold nothing else can be done.
                Err(error) if error.kind() == ErrorKind::Busy && begun.elapsed() < BUSY_TIME => {
                    tokio::time::sleep(PAUSE).await;
                }
                fetched => return fetched,
            }
        }
    }

    async fn fetch_once(&self, request: Request<Bytes>, out: &mut [u8]) -> Result<(), RunError> {
        let client = self.peers.dialer().http(&self.address);
        let mut response = client.send(request).await.map_err(|e| transport(&self.node, &e))?;
        if !response.status().is_success() {
            return Err(refusal(&self.node, &mut response).await);
        }
        let mut done = 0;
        while let Some(chunk) = response.chunk().await.map_err(|e| transport(&self.node, &e))? {
            let Some(room) = out.get_mut(done..done + chunk.len()) else {
                return Err(unavailable(&self.node, "it sent more bytes than were asked for"));
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
        self.peers.checked(request)
    }
}

/// What a node answered instead of bytes.
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
    request.map_err(|e| unavailable("", e))
}

impl Part for RemotePart {
    fn read(&self, _: Option<&str>, offset: u64, buffer: &mut [u8]) -> Result<(), RunError> {
        self.peers.received().waits(|| self.peers.wait(self.fetch_range(offset, buffer)))
    }

    fn read_many(&self, wants: &[Want<'_>], out: &mut [u8]) -> Result<(), RunError> {
        let mut rest = out;
        for wants in messages(wants) {
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
            self.peers.received().waits(|| self.peers.wait(self.fetch(request, buffer)))?;
            rest = after;
        }
        Ok(())
    }

    /// Nothing to ask: every read names the version that it wants.
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

/// Divides what is wanted into messages.
fn messages<'w, 'a>(wants: &'w [Want<'a>]) -> impl Iterator<Item = &'w [Want<'a>]> {
    let mut rest = wants;
    std::iter::from_fn(move || {
        let mut bytes = 0usize;
        let fits = |want: &&Want<'_>| {
            bytes = bytes.saturating_add(want.len);
            bytes <= MAX_MESSAGE_BYTES
        };
        let count = rest.iter().take(MAX_EXTENTS).take_while(fits).count().max(1);
        let (now, later) = rest.split_at_checked(count)?;
        rest = later;
        Some(now)
    })
}
