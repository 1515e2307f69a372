//! Writes of files to their targets: all objects at once, each with one request.

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
use crate::error::{transport_error, unavailable};
use crate::peers::parse_address;

/// Chunks that wait for one target's connection.
const CHUNKS_AHEAD: usize = 4;

/// Longest object that is sent from memory. For shorter objects, threads that read ahead cost more than the read.
const SMALL_OBJECT: u64 = 64 << 10;

/// Most reads of the page cache for one frame on the thread of the connection.
const MAX_FAST_READS: u64 = 16;

/// Longest receipt.
const MAX_RECEIPT_BYTES: usize = 4096;

/// Longest time that a node may do nothing for an upload while it answers other requests. A disk may take long to sync, and
/// bytes that were given to the system may take long over a slow link.
const MAX_STANDSTILL: Duration = Duration::from_secs(600);

/// A file that was written to its targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    /// Length of the file in bytes.
    pub length: u64,
    /// The receipts of the nodes in the order of the layout. `None` for targets without a byte.
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
        let (address, node) = target_node(&created.file, target)?;
        let request = Request::builder()
            .method(Method::PUT)
            .uri(format!("/objects/{}", created.file.object()))
            .header(GRANT_HEADER, &created.grant)
            .body(body)
            .map_err(|e| unavailable(&node, e))?;
        // A node is not away only because it syncs a slow disk or still receives bytes over a slow link.
        let probe = Probe { path: "/health", max_wait: MAX_STANDSTILL };
        let sent = self.dialer().http(&address).send_probing(request, probe).await;
        let mut response = sent.map_err(|e| transport_error(&node, &e))?;
        if !response.status().is_success() {
            return Err(refusal(&node, &mut response).await);
        }
        let text = response.bytes(MAX_RECEIPT_BYTES).await.map_err(|e| transport_error(&node, &e))?;
        serde_json::from_slice(&text)
            .map_err(|e| unavailable(&node, format_args!("its receipt cannot be decoded: {e}")))
    }

    /// Writes a local file of `length` bytes. `done` counts the bytes read so far.
    ///
    /// # Errors
    /// Returns the first failure. The bytes that were written before it are removed when the put is abandoned.
    pub async fn put_file(
        &self,
        created: &Created,
        file: Arc<File>,
        length: u64,
        done: Arc<AtomicU64>,
    ) -> Result<WrittenFile, RunError> {
        let striped = created.file.striped()?;
        let mut receipts = vec![None; created.file.targets.len()];
        let uploads = (0..created.file.targets.len()).filter_map(|target| {
            let place = u32::try_from(target).ok()?;
            let bytes = striped.object_len(place, length);
            let (file, done) = (file.clone(), done.clone());
            let (cached, counted) = (file.clone(), done.clone());
            // Frames are read in two ways, but always in the order of their bytes.
            let sent = Arc::new(AtomicU32::new(0));
            let (sums, sums_of_fast_reads) = (sent.clone(), sent.clone());
            let read = move |offset: u64, buffer: &mut [u8]| {
                read_stripes(&striped, place, offset, buffer, |part, at| file.read_exact_at(part, at))?;
                add_to_sum(&sums, buffer);
                done.fetch_add(buffer.len() as u64, Ordering::Relaxed);
                Ok(())
            };
            let fast_read = move |offset: u64, buffer: &mut [u8]| {
                let few = buffer.len() as u64 / striped.unit() <= MAX_FAST_READS;
                let length = buffer.len() as u64;
                let read = |part: &mut [u8], at| read_cached_exact_at(&cached, part, at);
                let done = few && read_stripes(&striped, place, offset, buffer, read).is_ok();
                if done {
                    add_to_sum(&sums_of_fast_reads, buffer);
                    counted.fetch_add(length, Ordering::Relaxed);
                }
                done
            };
            let body = if bytes <= SMALL_OBJECT {
                let mut all = vec![0; usize::try_from(bytes).unwrap_or(0)];
                match read(0, &mut all) {
                    Ok(()) => RequestBody::from(all),
                    // The body fails too, and so does the put.
                    Err(_) => RequestBody::from(ReadBody::new(0..bytes, read)),
                }
            } else {
                RequestBody::from(ReadBody::new(0..bytes, read).with_fast_read(fast_read))
            };
            (bytes > 0).then_some(async move {
                let receipt = self.put_object(created, target, body).await;
                (
                    target,
                    receipt.and_then(|receipt| {
                        check_receipt(created, target, receipt, sent.load(Ordering::Relaxed))
                    }),
                )
            })
        });
        let mut uploads = futures_util::stream::iter(uploads).buffer_unordered(FAN_IN);
        while let Some((target, receipt)) = uploads.next().await {
            if let Some(slot) = receipts.get_mut(target) {
                *slot = Some(receipt?);
            }
        }
        Ok(WrittenFile { length, receipts })
    }

    /// Writes the bytes of a stream to the targets in the order of their arrival.
    ///
    /// # Errors
    /// Returns the error of the stream, or the first failure of a target.
    pub async fn put_stream<S>(&self, created: &Created, stream: S) -> Result<WrittenFile, RunError>
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
                let remaining = striped.unit() - at % striped.unit();
                let part = bytes.split_to(bytes.len().min(usize::try_from(remaining).unwrap_or(usize::MAX)));
                at += part.len() as u64;
                let target = striped.target_of(at - 1) as usize;
                let Some(slot) = uploads.get_mut(target) else { continue };
                let upload = slot.get_or_insert_with(|| Upload::begin(self, created, target));
                upload.sent = crc32c::crc32c_append(upload.sent, &part);
                let sent = tokio::time::timeout(self.stall, upload.chunks.send(Chunk::Bytes(part))).await;
                if sent.is_err() {
                    let (_, node) = target_node(&created.file, target)?;
                    return Err(unavailable(
                        &node,
                        format_args!("it took nothing for {} s", self.stall.as_secs_f64()),
                    ));
                }
                if !matches!(sent, Ok(Ok(()))) {
                    // The node refused or is gone. Its answer gives the reason.
                    return Err(match slot.take() {
                        Some(upload) => upload.failure().await,
                        None => RunError::Internal { what: "an upload ended before its answer" },
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
                (target, receipt.and_then(|receipt| check_receipt(created, target, receipt, sent)))
            })
            .collect();
        while let Some((target, receipt)) = ends.next().await {
            if let Some(slot) = receipts.get_mut(target) {
                *slot = Some(receipt?);
            }
        }
        Ok(WrittenFile { length: at, receipts })
    }
}

/// Adds bytes to the CRC-32C of the bytes that were sent before.
fn add_to_sum(sum: &AtomicU32, bytes: &[u8]) {
    sum.store(crc32c::crc32c_append(sum.load(Ordering::Relaxed), bytes), Ordering::Relaxed);
}

/// Returns the receipt if the node received the bytes that were sent.
fn check_receipt(created: &Created, target: usize, receipt: Receipt, sent: u32) -> Result<Receipt, RunError> {
    if receipt.sum.is_none_or(|sum| sum == sent) {
        return Ok(receipt);
    }
    let (_, node) = target_node(&created.file, target)?;
    let message = format!(
        "storage node {node} received other bytes than were sent to it (their checksums differ), so nothing was stored: \
         put the file again, and check the network and the memory of both machines"
    );
    Err(RunError::Remote { kind: ErrorKind::Failed, message })
}

fn target_node(file: &FileMap, target: usize) -> Result<(Address, String), RunError> {
    match file.targets.get(target) {
        Some(place) => Ok((parse_address(&place.address)?, node_name(place.number, &place.address))),
        None => Err(RunError::Internal { what: "a request named a target that the file does not have" }),
    }
}

/// Reads a range of an object from the file.
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
        let remaining = striped.unit() - object_at % striped.unit();
        let part = rest.len().min(usize::try_from(remaining).unwrap_or(usize::MAX));
        let at = striped.file_offset(target, object_at).map_err(io::Error::other)?;
        if let Some(rest) = rest.get_mut(..part) {
            read(rest, at)?;
        }
        done += part;
    }
    Ok(())
}

/// Fills the buffer from the page cache, or fails at once.
fn read_cached_exact_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    let length = buffer.len();
    let read = preadv2(file, &mut [io::IoSliceMut::new(buffer)], at, ReadWriteFlags::NOWAIT)?;
    if read == length { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
}

enum Chunk {
    Bytes(Bytes),
    End,
}

/// An object that is being sent.
struct Upload {
    /// CRC-32C of the bytes that were given to be sent.
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
                // No end was announced, so the node must not take these bytes for the whole object.
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
        // If this cannot be sent, the answer gives the reason.
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
