//! Writing a file to its targets: all objects at once, each with one request.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, Stream, StreamExt, unfold};
use gristmill_layout::Striped;
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_transport::{Address, Probe, ReadBody, RequestBody};
use gristmill_wire::action::{Created, Receipt};
use gristmill_wire::{FAN_IN, FileMap, GRANT_HEADER};
use http::{Method, Request};
use http_body::Frame;
use http_body_util::StreamBody;
use rustix::io::{ReadWriteFlags, preadv2};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::Peers;
use crate::bytes::{node_name, refusal};
use crate::error::{transport, unavailable};
use crate::peers::parse;

/// Chunks that wait for one target's connection.
const CHUNKS_AHEAD: usize = 4;

/// Objects up to this length are sent from memory: threads that read ahead cost more than the reading.
const SMALL_OBJECT: u64 = 64 << 10;

/// Reads of the page cache that one frame may take on the connection's own thread.
const MAX_READS_AT_ONCE: u64 = 16;

/// Longest receipt.
const MAX_RECEIPT_BYTES: usize = 4096;

/// How long a node may do nothing for an upload while it answers others: a disk may take long to sync, and what was handed to the
/// system may take long over a slow link.
const MAX_STANDSTILL: Duration = Duration::from_secs(600);

/// What was written where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Bytes of the file.
    pub length: u64,
    /// The nodes' receipts in the order of the layout; `None` for targets without a byte.
    pub receipts: Vec<Option<Receipt>>,
}

impl Peers {
    /// Writes one object and waits until it is durable.
    async fn put_object(
        &self,
        created: &Created,
        target: usize,
        body: RequestBody,
    ) -> Result<Receipt, RunError> {
        let (address, node) = place(&created.file, target)?;
        let request = Request::builder()
            .method(Method::PUT)
            .uri(format!("/objects/{}", created.file.object()))
            .header(GRANT_HEADER, &created.grant)
            .body(body)
            .map_err(|e| unavailable(&node, e))?;
        // A node that syncs a slow disk, or that a slow link still brings bytes, is not one that is away.
        let probe = Probe { path: "/health", most: MAX_STANDSTILL };
        let sent = self.dialer().http(&address).send_probing(request, probe).await;
        let mut response = sent.map_err(|e| transport(&node, &e))?;
        if !response.status().is_success() {
            return Err(refusal(&node, &mut response).await);
        }
        let text = response.bytes(MAX_RECEIPT_BYTES).await.map_err(|e| transport(&node, &e))?;
        serde_json::from_slice(&text)
            .map_err(|e| unavailable(&node, format_args!("its receipt makes no sense: {e}")))
    }

    /// Writes a local file of `length` bytes. `done` counts the bytes read so far.
    ///
    /// # Errors
    /// The first failure; what was written until then is cleared away when the put is abandoned.
    pub async fn put_file(
        &self,
        created: &Created,
        file: Arc<File>,
        length: u64,
        done: Arc<AtomicU64>,
    ) -> Result<Written, RunError> {
        let striped = created.file.striped()?;
        let mut receipts = vec![None; created.file.targets.len()];
        let uploads = (0..created.file.targets.len()).filter_map(|target| {
            let place = u32::try_from(target).ok()?;
            let bytes = striped.object_len(place, length);
            let (file, done) = (file.clone(), done.clone());
            let (cached, counted) = (file.clone(), done.clone());
            // Bytes are read in their order, whichever way each frame is.
            let sent = Arc::new(AtomicU32::new(0));
            let (sums, sums_at_once) = (sent.clone(), sent.clone());
            let read = move |offset: u64, buffer: &mut [u8]| {
                read_stripes(&striped, place, offset, buffer, |part, at| file.read_exact_at(part, at))?;
                add(&sums, buffer);
                done.fetch_add(buffer.len() as u64, Ordering::Relaxed);
                Ok(())
            };
            let at_once = move |offset: u64, buffer: &mut [u8]| {
                let few = buffer.len() as u64 / striped.unit() <= MAX_READS_AT_ONCE;
                let length = buffer.len() as u64;
                let read = |part: &mut [u8], at| cached_exact_at(&cached, part, at);
                let done = few && read_stripes(&striped, place, offset, buffer, read).is_ok();
                if done {
                    add(&sums_at_once, buffer);
                    counted.fetch_add(length, Ordering::Relaxed);
                }
                done
            };
            let body = if bytes <= SMALL_OBJECT {
                let mut all = vec![0; usize::try_from(bytes).unwrap_or(0)];
                match read(0, &mut all) {
                    Ok(()) => RequestBody::from(all),
                    // The body fails in its turn, and with it the put.
                    Err(_) => RequestBody::from(ReadBody::new(0..bytes, read)),
                }
            } else {
                RequestBody::from(ReadBody::new(0..bytes, read).or_at_once(at_once))
            };
            (bytes > 0).then_some(async move {
                let receipt = self.put_object(created, target, body).await;
                (
                    target,
                    receipt
                        .and_then(|receipt| arrived(created, target, receipt, sent.load(Ordering::Relaxed))),
                )
            })
        });
        let mut uploads = futures_util::stream::iter(uploads).buffer_unordered(FAN_IN);
        while let Some((target, receipt)) = uploads.next().await {
            if let Some(slot) = receipts.get_mut(target) {
                *slot = Some(receipt?);
            }
        }
        Ok(Written { length, receipts })
    }

    /// Writes what a stream gives, dealt over the targets as it comes.
    ///
    /// # Errors
    /// The stream's own error, or the first failure of a target.
    pub async fn put_stream<S>(&self, created: &Created, stream: S) -> Result<Written, RunError>
    where
        S: Stream<Item = Result<Bytes, RunError>>,
    {
        let striped = created.file.striped()?;
        let mut uploads: Vec<Option<Upload>> = (0..created.file.targets.len()).map(|_| None).collect();
        let mut at = 0u64;
        let mut stream = std::pin::pin!(stream);
        while let Some(bytes) = stream.next().await {
            let mut bytes = bytes?;
            while !bytes.is_empty() {
                let left = striped.unit() - at % striped.unit();
                let part = bytes.split_to(bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX)));
                at += part.len() as u64;
                let target = striped.target_of(at - 1) as usize;
                let Some(slot) = uploads.get_mut(target) else { continue };
                let upload = slot.get_or_insert_with(|| Upload::begin(self, created, target));
                upload.sent = crc32c::crc32c_append(upload.sent, &part);
                let sent = tokio::time::timeout(self.stall, upload.chunks.send(Chunk::Bytes(part))).await;
                if sent.is_err() {
                    let (_, node) = place(&created.file, target)?;
                    return Err(unavailable(
                        &node,
                        format_args!("it took nothing for {} s", self.stall.as_secs_f64()),
                    ));
                }
                if !matches!(sent, Ok(Ok(()))) {
                    // The node refused or is gone; its answer says why.
                    return Err(match slot.take() {
                        Some(upload) => upload.failure().await,
                        None => unavailable("", "it stopped reading"),
                    });
                }
            }
        }
        let mut receipts = vec![None; uploads.len()];
        let ends = uploads.into_iter().enumerate().filter_map(|(target, upload)| Some((target, upload?)));
        let mut ends: FuturesUnordered<_> = ends
            .map(|(target, upload)| async move {
                let sent = upload.sent;
                let receipt = upload.end().await;
                (target, receipt.and_then(|receipt| arrived(created, target, receipt, sent)))
            })
            .collect();
        while let Some((target, receipt)) = ends.next().await {
            if let Some(slot) = receipts.get_mut(target) {
                *slot = Some(receipt?);
            }
        }
        Ok(Written { length: at, receipts })
    }
}

/// Takes more bytes that are sent into the CRC-32C of those before.
fn add(sum: &AtomicU32, bytes: &[u8]) {
    sum.store(crc32c::crc32c_append(sum.load(Ordering::Relaxed), bytes), Ordering::Relaxed);
}

/// The receipt, if the node has the bytes that were sent.
fn arrived(created: &Created, target: usize, receipt: Receipt, sent: u32) -> Result<Receipt, RunError> {
    if receipt.sum.is_none_or(|sum| sum == sent) {
        return Ok(receipt);
    }
    let (_, node) = place(&created.file, target)?;
    let message = format!(
        "storage node {node} got other bytes than were sent to it (their checksums differ), so nothing was stored: \
         put the file again, and check the network and the memory of both machines"
    );
    Err(RunError::Remote { kind: ErrorKind::Failed, message })
}

fn place(file: &FileMap, target: usize) -> Result<(Address, String), RunError> {
    match file.targets.get(target) {
        Some(place) => Ok((parse(&place.address)?, node_name(place.number, &place.address))),
        None => Err(unavailable("", "the file has no such target")),
    }
}

/// Reads a stretch of an object from the file that it is to be a part of.
fn read_stripes(
    striped: &Striped,
    target: u32,
    offset: u64,
    buffer: &mut [u8],
    read: impl Fn(&mut [u8], u64) -> io::Result<()>,
) -> io::Result<()> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let object_at = offset + done as u64;
        let left = striped.unit() - object_at % striped.unit();
        let part = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let at = striped.file_offset(target, object_at).map_err(io::Error::other)?;
        if let Some(rest) = rest.get_mut(..part) {
            read(rest, at)?;
        }
        done += part;
    }
    Ok(())
}

/// Reads what the page cache holds, or fails at once.
fn cached_exact_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    let length = buffer.len();
    let read = preadv2(file, &mut [io::IoSliceMut::new(buffer)], at, ReadWriteFlags::NOWAIT)?;
    if read == length { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
}

enum Chunk {
    Bytes(Bytes),
    End,
}

/// One object on its way.
struct Upload {
    /// CRC-32C of what was given to be sent.
    sent: u32,
    chunks: mpsc::Sender<Chunk>,
    task: JoinHandle<Result<Receipt, RunError>>,
}

impl Upload {
    fn begin(peers: &Peers, created: &Created, target: usize) -> Upload {
        let (chunks, receiver) = mpsc::channel(CHUNKS_AHEAD);
        let body = unfold((receiver, false), |(mut receiver, ended)| async move {
            if ended {
                return None;
            }
            match receiver.recv().await {
                Some(Chunk::Bytes(bytes)) => Some((Ok(Frame::data(bytes)), (receiver, false))),
                Some(Chunk::End) => None,
                // Not a word that this was all: the node must not take it for the whole.
                None => Some((Err(io::Error::from(io::ErrorKind::UnexpectedEof)), (receiver, true))),
            }
        });
        let body = RequestBody::stream(StreamBody::new(body));
        let (peers, created) = (peers.clone(), created.clone());
        let runtime = peers.runtime().clone();
        let task = runtime.spawn(async move { peers.put_object(&created, target, body).await });
        Upload { sent: 0, chunks, task }
    }

    async fn end(self) -> Result<Receipt, RunError> {
        // If this cannot be sent, the answer says why.
        let _ = self.chunks.send(Chunk::End).await;
        self.task.await.map_err(|_| RunError::Panicked)?
    }

    async fn failure(self) -> RunError {
        match self.task.await {
            Ok(Err(error)) => error,
            _ => RunError::Remote { kind: ErrorKind::Unavailable, message: "a node stopped reading".into() },
        }
    }
}
