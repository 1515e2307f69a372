//! A fold request to one node, and the frames that it sends back.

use std::collections::VecDeque;

use gristmill_flight::{BatchDecoder, FlightClient, FlightData, Ticket};
use gristmill_runtime::{ErrorKind, GroupEnd, Partial, RunError, ShardEnd, Tally};
use gristmill_wire::action::Receipt;
use gristmill_wire::{Frame, MAX_PARTIAL_BYTES, PASS_HEADER, pass_of};
use tonic::Streaming;

use crate::Peers;
use crate::answers::NodeRequest;
use crate::error::{from_status, unavailable};
use crate::flight::frames_of;

/// The end of a shard that a node sent.
#[derive(Debug)]
pub struct FoldEnd {
    /// The records that the node folded, and their state.
    pub end: ShardEnd,
    /// Bytes of frames received.
    pub received: u64,
    /// Receipts for the bytes that the node keeps, with their targets' places in the layout.
    pub written: Vec<(u32, Receipt)>,
}

/// The frames of a node at work.
pub struct FrameStream {
    node: String,
    stall: std::time::Duration,
    messages: Streaming<FlightData>,
    decoder: BatchDecoder,
    ready: VecDeque<(Frame, usize)>,
}

impl FrameStream {
    /// The next frames and their lengths, as many as arrived together. Empty at the end of the stream. Returns an error
    /// if the node gives no sign of life.
    pub async fn next_some(&mut self) -> Result<Vec<(Frame, usize)>, RunError> {
        let first = self.next().await?;
        Ok(first.into_iter().chain(self.ready.drain(..)).collect())
    }

    /// The next frame and its length, or `None` at the end of the stream. Returns an error if the node gives no sign of
    /// life.
    pub async fn next(&mut self) -> Result<Option<(Frame, usize)>, RunError> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Ok(Some(frame));
            }
            let message = match tokio::time::timeout(self.stall, self.messages.message()).await {
                Err(_) => return Err(stalled(&self.node, self.stall)),
                Ok(Err(status)) => return Err(from_status(&self.node, &status)),
                Ok(Ok(None)) => return Ok(None),
                Ok(Ok(Some(message))) => message,
            };
            let batch = self.decoder.decode(message).map_err(|error| unavailable(&self.node, error))?;
            if let Some(batch) = batch {
                self.ready.extend(frames_of(&batch)?);
            }
        }
    }
}

fn stalled(node: &str, stall: std::time::Duration) -> RunError {
    unavailable(node, format_args!("no sign of life for {} s", stall.as_secs_f64()))
}

/// Appends a piece of a partial.
fn append(partial: &mut Vec<u8>, piece: &[u8], node: &str) -> Result<(), RunError> {
    if partial.len() + piece.len() > MAX_PARTIAL_BYTES {
        let message = format!(
            "the partial result of storage node {node} is longer than {MAX_PARTIAL_BYTES} bytes; \
             put the file again with a larger stripe unit"
        );
        return Err(RunError::Remote { kind: ErrorKind::Data, message });
    }
    partial.extend_from_slice(piece);
    Ok(())
}

impl Peers {
    /// Asks a node to fold for rows, over a connection of its own. Their reader may be slow, or may not read them at all.
    pub(crate) async fn fold_rows(&self, node_request: &NodeRequest) -> Result<FrameStream, RunError> {
        self.fold(node_request, self.dedicated_flight(&node_request.address)?).await
    }

    /// Asks a node to fold.
    async fn fold(
        &self,
        node_request: &NodeRequest,
        mut client: FlightClient,
    ) -> Result<FrameStream, RunError> {
        let NodeRequest { address: _, node, request } = node_request;
        let ticket = Ticket { ticket: request.encode()?.into() };
        let mut ticket_request = tonic::Request::new(ticket);
        // The principal, which a node needs before it reads the rest.
        if let Some(pass) = pass_of(&request.grant).and_then(|pass| pass.parse().ok()) {
            ticket_request.metadata_mut().insert(PASS_HEADER, pass);
        }
        let call = client.do_get(ticket_request);
        let messages = match tokio::time::timeout(self.stall, call).await {
            Err(_) => return Err(stalled(node, self.stall)),
            Ok(answer) => answer.map_err(|status| from_status(node, &status))?.into_inner(),
        };
        let (decoder, ready) = (BatchDecoder::default(), VecDeque::new());
        Ok(FrameStream { node: node.to_owned(), stall: self.stall, messages, decoder, ready })
    }

    /// Asks a node for the value of a shard of a file on so many targets. `progress` gets the number of positions that
    /// are folded so far.
    pub(crate) async fn fold_value(
        &self,
        node_request: &NodeRequest,
        targets: usize,
        mut progress: impl FnMut(u64),
    ) -> Result<FoldEnd, RunError> {
        let node = &node_request.node;
        let mut frames = self.fold(node_request, self.flight(&node_request.address)?).await?;
        let (mut partial, mut failure, mut received, mut written) = (Vec::new(), None, 0, Vec::new());
        let mut handed_back = Vec::new();
        while let Some((frame, bytes)) = frames.next().await? {
            received += bytes as u64;
            match frame {
                Frame::Progress(done) => progress(done),
                Frame::Partial(piece) => append(&mut partial, &piece, node)?,
                Frame::Written(target, receipt) if written.len() < targets => {
                    written.push((target, receipt));
                }
                Frame::HandedBack(hand_back)
                    if node_request.request.asker.is_some() && handed_back.len() < targets =>
                {
                    handed_back.push(hand_back);
                }
                Frame::Failed(at, error) => failure = Some((at, error.into_error())),
                Frame::Finished(tally) => {
                    // The stream is read to its end: otherwise it is reset, and servers count resets.
                    while frames.next().await?.is_some() {}
                    let (partial, tally) = (Partial::decode(&partial)?, tally.tally(targets));
                    let end = ShardEnd { partial, failure, tally, handed_back };
                    return Ok(FoldEnd { end, received, written });
                }
                Frame::Begin(_)
                | Frame::Rows(_)
                | Frame::End(_)
                | Frame::Reached(..)
                | Frame::HandedBack(_)
                | Frame::Written(..) => {
                    return Err(unavailable(node, "it sent a frame of another kind instead of a value"));
                }
            }
        }
        Err(unavailable(node, "it was cut off before its answer was complete"))
    }

    /// Asks a node to finish the passes of a request with others. The end is `None` unless the node is the first of the
    /// group. The others send their results only to each other.
    pub(crate) async fn fold_in_group(
        &self,
        node_request: &NodeRequest,
        targets: usize,
        mut progress: impl FnMut(u64),
    ) -> Result<(Option<GroupEnd>, Tally), RunError> {
        let node = &node_request.node;
        let mut frames = self.fold(node_request, self.flight(&node_request.address)?).await?;
        let (mut whole, mut reached, mut failure, mut received) = (Vec::new(), None, None, 0);
        let mut handed_back = Vec::new();
        while let Some((frame, bytes)) = frames.next().await? {
            received += bytes as u64;
            match frame {
                Frame::Progress(done) => progress(done),
                Frame::Partial(piece) => append(&mut whole, &piece, node)?,
                Frame::Reached(round, shared) => reached = Some((round, shared)),
                Frame::HandedBack(one)
                    if node_request.request.asker.is_some() && handed_back.len() < targets =>
                {
                    handed_back.push(one);
                }
                Frame::Failed(_, error) => failure = Some(error.into_error()),
                Frame::Finished(tally) => {
                    while frames.next().await?.is_some() {}
                    if let Some(failure) = failure {
                        return Err(failure);
                    }
                    let mut tally = tally.tally(targets);
                    tally.sent = received;
                    let end = reached.map(|(round, shared)| GroupEnd {
                        round,
                        shared: shared.into(),
                        whole,
                        tally: tally.clone(),
                        handed_back,
                    });
                    return Ok((end, tally));
                }
                Frame::Begin(_)
                | Frame::Rows(_)
                | Frame::End(_)
                | Frame::HandedBack(_)
                | Frame::Written(..) => {
                    return Err(unavailable(node, "it sent a frame of another kind instead of a value"));
                }
            }
        }
        Err(unavailable(node, "it was cut off before its answer was complete"))
    }
}
