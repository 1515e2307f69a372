//! Queue of frames between the threads of a fold and the network. Waiting frames are sent together: a unit of few rows
//! is three small frames, and a message for each costs more than the fold of the unit.

use std::sync::Arc;
use std::time::Duration;

use gristmill_runtime::{ErrorKind, RunError};
use gristmill_wire::Frame;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;

use crate::error::Refusal;
use crate::limits::{FRAME_BYTES_WAITING, FRAMES_WAITING, ROWS_STALL};

/// Smallest number of bytes that a frame counts as.
const LEAST: usize = 256;

/// Sending end of the queue of frames.
#[derive(Clone)]
pub(crate) struct FrameSender {
    sender: mpsc::Sender<(Encoded, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
}

/// An encoded frame, or the refusal that ends the stream.
type Encoded = Result<Vec<u8>, Refusal>;

/// Receiving end of the queue of frames.
pub(crate) struct FrameReceiver {
    receiver: mpsc::Receiver<(Encoded, OwnedSemaphorePermit)>,
    /// Frames for the next message, also from a call that was cancelled.
    gathered: Vec<Vec<u8>>,
    end: Option<Refusal>,
}

/// Longest wait of a message for more frames: sending one costs a few tenths of this time.
const GATHER_TIME: Duration = Duration::from_millis(2);

/// Bytes of frames from which a message is sent without more waiting.
const GATHERED_BYTES: usize = 128 << 10;

/// Error of a send: the receiver was dropped, because the client is gone.
#[derive(Debug)]
pub(crate) struct Gone;

impl From<Gone> for RunError {
    fn from(_: Gone) -> RunError {
        RunError::Remote { kind: ErrorKind::Failed, message: "the client is gone".into() }
    }
}

/// Creates a queue of frames.
pub(crate) fn frames() -> (FrameSender, FrameReceiver) {
    let (sender, receiver) = mpsc::channel(FRAMES_WAITING);
    (
        FrameSender { sender, room: Arc::new(Semaphore::new(FRAME_BYTES_WAITING)) },
        FrameReceiver { receiver, gathered: Vec::new(), end: None },
    )
}

impl FrameSender {
    /// Sends a frame, or the refusal that ends the stream, once there is room for it.
    ///
    /// # Errors
    /// Returns [`Gone`] if the receiver was dropped.
    pub async fn send(&self, frame: Result<Frame, Refusal>) -> Result<(), Gone> {
        let encoded = frame.map(|frame| frame.encode());
        // A frame that is longer than the whole room is sent alone.
        let bytes = encoded.as_ref().map_or(0, Vec::len).clamp(LEAST, FRAME_BYTES_WAITING);
        let room = tokio::select! {
            room = self.room.clone().acquire_many_owned(u32::try_from(bytes).unwrap_or(u32::MAX)) => room,
            () = self.sender.closed() => return Err(Gone),
        };
        self.sender.send((encoded, room.map_err(|_| Gone)?)).await.map_err(|_| Gone)
    }

    /// Sends a frame from a thread that may block. The wait is bounded, because the thread and all that the request
    /// holds wait too.
    ///
    /// # Errors
    /// Returns an error if the receiver was dropped, or if the client read nothing for [`ROWS_STALL`].
    pub fn send_on_thread(&self, frame: Frame, runtime: &Handle) -> Result<(), RunError> {
        runtime.block_on(self.send_patiently(frame))
    }

    async fn send_patiently(&self, frame: Frame) -> Result<(), RunError> {
        let sent = tokio::time::timeout(ROWS_STALL, self.send(Ok(frame))).await;
        Ok(sent.map_err(|_| stalled())??)
    }

    /// Waits until the receiver is dropped.
    pub async fn closed(&self) {
        self.sender.closed().await;
    }
}

/// The error if no client reads the rows of a request.
pub(crate) fn stalled() -> RunError {
    let message = format!(
        "the client took no rows for {} s, so the request was stopped; send it again, and read rows as they arrive",
        ROWS_STALL.as_secs()
    );
    RunError::Remote { kind: ErrorKind::Failed, message }
}

impl FrameReceiver {
    /// The next frames in their order: at least one, and all that arrive within [`GATHER_TIME`] after it, up to
    /// [`GATHERED_BYTES`]. `None` after the last. The refusal that ends the stream comes alone.
    pub async fn next(&mut self) -> Option<Result<Vec<Vec<u8>>, Refusal>> {
        if let Some(refusal) = self.end.take() {
            return Some(Err(refusal));
        }
        if self.gathered.is_empty() {
            match self.receiver.recv().await?.0 {
                Ok(frame) => self.gathered.push(frame),
                Err(refusal) => return Some(Err(refusal)),
            }
        }
        let mut bytes: usize = self.gathered.iter().map(Vec::len).sum();
        let end = Instant::now() + GATHER_TIME;
        while bytes < GATHERED_BYTES && self.gathered.len() < FRAMES_WAITING {
            match tokio::time::timeout_at(end, self.receiver.recv()).await {
                Ok(Some((Ok(frame), _room))) => {
                    bytes += frame.len();
                    self.gathered.push(frame);
                }
                Ok(Some((Err(refusal), _))) => {
                    self.end = Some(refusal);
                    break;
                }
                Ok(None) | Err(_) => break,
            }
        }
        Some(Ok(std::mem::take(&mut self.gathered)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn decoded(frames: Vec<Vec<u8>>) -> Vec<Frame> {
        frames.iter().map(|frame| Frame::decode(frame).unwrap()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_goes_out_together_and_in_order() {
        let (frames, mut waiting) = frames();
        for n in 0..100 {
            frames.send(Ok(Frame::Begin(n))).await.unwrap();
        }
        // A call that is cancelled loses no frame.
        assert!(tokio::time::timeout(GATHER_TIME / 4, waiting.next()).await.is_err());
        frames.send(Err(Refusal::new(ErrorKind::Failed, "over"))).await.unwrap();
        let all = decoded(waiting.next().await.unwrap().unwrap());
        assert_eq!(all, (0..100).map(Frame::Begin).collect::<Vec<_>>());
        assert_eq!(waiting.next().await.unwrap().unwrap_err().0.message, "over");
        drop(frames);
        assert!(waiting.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_bytes_wait_and_a_longer_frame_goes_alone() {
        let (frames, mut waiting) = frames();
        let long = || Frame::Partial(vec![1; FRAME_BYTES_WAITING / 2]);
        frames.send(Ok(long())).await.unwrap();
        let more = frames.clone();
        let sending = tokio::spawn(async move {
            more.send(Ok(long())).await.unwrap();
            more.send(Ok(Frame::Partial(vec![2; 2 * FRAME_BYTES_WAITING]))).await.unwrap();
        });
        drop(frames);
        let mut sizes = Vec::new();
        while let Some(some) = waiting.next().await {
            sizes.push(some.unwrap().len());
        }
        sending.await.unwrap();
        assert_eq!(sizes, [1, 1, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_nobody_reads_is_given_up() {
        let (frames, waiting) = frames();
        let error = loop {
            if let Err(error) = frames.send_patiently(Frame::Begin(0)).await {
                break error;
            }
        };
        assert!(error.to_string().contains("took no rows for 300 s"), "{error}");
        drop(waiting);
        assert!(frames.send(Ok(Frame::Begin(0))).await.is_err());
    }
}
