//! A body that is read piece by piece while it is sent.
//!
//! Reads may wait for a disk, so they run on Tokio's blocking threads, one frame ahead of the connection: the
//! disk works while the network does. A thread is held for one read, not while a client is slow, so slow
//! clients cannot use up the threads. But each frame that changes threads costs several wake-ups. If bytes are in
//! memory already, a second function can read them on the thread of the connection
//! ([`with_fast_read`](ReadBody::with_fast_read)).

use std::fmt;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::task::JoinHandle;

use crate::frame_buffer::FrameBuffer;

/// Bytes in each frame of a [`ReadBody`] except the last.
pub const FRAME: usize = 256 << 10;

/// Frames that are read ahead after a frame that was not in memory. The next frames are probably not in memory either.
const AHEAD: u32 = 16;

type Read = Box<dyn FnMut(u64, &mut [u8]) -> io::Result<()> + Send>;
type FastRead = Box<dyn FnMut(u64, &mut [u8]) -> bool + Send>;

/// A body of a request or an answer: a range of bytes that a function reads.
///
/// Its length is exact, so it is sent with `Content-Length`. A failed read fails the body, and the connection
/// is closed: the other side receives a body that is too short, never wrong bytes. The body must be polled within a
/// Tokio runtime.
///
/// ```
/// use gristmill_transport::ReadBody;
/// use http_body_util::BodyExt;
///
/// # #[tokio::main]
/// # async fn main() -> std::io::Result<()> {
/// let body = ReadBody::new(3..6, |offset, buffer| {
///     buffer.iter_mut().zip(offset..).for_each(|(byte, at)| *byte = at as u8);
///     Ok(())
/// });
/// assert_eq!(body.collect().await?.to_bytes(), [3, 4, 5][..]);
/// # Ok(())
/// # }
/// ```
pub struct ReadBody {
    state: State,
    fast: Option<FastRead>,
    /// Frames that are read ahead before `fast` is tried again.
    ahead: u32,
    /// Offset of the next read.
    at: u64,
    end: u64,
    /// Bytes that the body has not returned yet. Some of them may be in the current read.
    remaining: u64,
}

enum State {
    Idle(Read),
    Reading(JoinHandle<(Read, io::Result<Bytes>)>),
    Over,
}

impl ReadBody {
    /// A body of the bytes at `range`. `read(offset, buffer)` fills the whole buffer from `offset` or fails. It is
    /// called with rising offsets, from blocking threads, one call at a time, for at most [`FRAME`] bytes each.
    pub fn new(
        range: Range<u64>,
        read: impl FnMut(u64, &mut [u8]) -> io::Result<()> + Send + 'static,
    ) -> Self {
        let end = range.end.max(range.start);
        let remaining = end - range.start;
        Self { state: State::Idle(Box::new(read)), fast: None, ahead: 0, at: range.start, end, remaining }
    }

    /// Tries `fast_read` before a read. It fills the whole buffer and returns true, or returns false. It is called on
    /// the thread of the connection, so it must never wait. If it returns false, this frame and some more are read
    /// without it.
    #[must_use]
    pub fn with_fast_read(mut self, fast_read: impl FnMut(u64, &mut [u8]) -> bool + Send + 'static) -> Self {
        self.fast = Some(Box::new(fast_read));
        self
    }

    fn next_length(&self) -> usize {
        usize::try_from(self.end - self.at).unwrap_or(FRAME).min(FRAME)
    }

    /// The next frame, if it can be read without a wait.
    fn read_fast(&mut self) -> Option<Bytes> {
        let length = self.next_length();
        let fast_read = self.fast.as_mut().filter(|_| length > 0)?;
        let mut buffer = FrameBuffer::new(length);
        if !fast_read(self.at, buffer.get()) {
            return None;
        }
        self.at += length as u64;
        self.remaining -= length as u64;
        Some(buffer.freeze())
    }

    /// Begins the read of the next frame, if there is one.
    fn begin(&mut self, mut read: Read) {
        let length = self.next_length();
        if length == 0 {
            self.state = State::Over;
            return;
        }
        let at = self.at;
        self.at += length as u64;
        self.state = State::Reading(tokio::task::spawn_blocking(move || {
            let mut buffer = FrameBuffer::new(length);
            let done = read(at, buffer.get()).map(|()| buffer.freeze());
            (read, done)
        }));
    }
}

impl Body for ReadBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        loop {
            match std::mem::replace(&mut self.state, State::Over) {
                State::Over => return Poll::Ready(None),
                State::Idle(read) => match self.read_fast() {
                    Some(data) => {
                        self.state = State::Idle(read);
                        return Poll::Ready(Some(Ok(Frame::data(data))));
                    }
                    None => {
                        self.ahead = AHEAD;
                        self.begin(read);
                    }
                },
                State::Reading(mut reading) => {
                    let Poll::Ready(done) = Pin::new(&mut reading).poll(cx) else {
                        self.state = State::Reading(reading);
                        return Poll::Pending;
                    };
                    // The function panicked, or the runtime shuts down.
                    let (read, done) = done.map_err(io::Error::other)?;
                    let data = done?;
                    self.remaining -= data.len() as u64;
                    match (&self.fast, self.ahead) {
                        (Some(_), 0) => self.state = State::Idle(read),
                        (Some(_), more) => {
                            self.ahead = more - 1;
                            self.begin(read);
                        }
                        (None, _) => self.begin(read),
                    }
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}

impl fmt::Debug for ReadBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadBody").field("at", &self.at).field("end", &self.end).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, mpsc};

    use http_body_util::BodyExt;

    use super::*;

    fn byte(at: u64) -> u8 {
        (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
    }

    fn fill(at: u64, buffer: &mut [u8]) -> io::Result<()> {
        buffer.iter_mut().zip(at..).for_each(|(to, at)| *to = byte(at));
        Ok(())
    }

    #[tokio::test]
    async fn odd_ranges_are_complete_and_frames_are_page_aligned() {
        let frame = FRAME as u64;
        for range in [0..0, 7..7, 5..6, 0..frame, 1..frame + 1, 3..3 * frame + 17, u64::MAX - 9..u64::MAX] {
            let mut body = ReadBody::new(range.clone(), fill);
            let mut at = range.start;
            while let Some(frame) = body.frame().await {
                let data = frame.unwrap().into_data().unwrap();
                assert_eq!(data.as_ptr().align_offset(4096), 0);
                assert!(!data.is_empty() && data.len() <= FRAME);
                assert!(data.iter().zip(at..).all(|(got, at)| *got == byte(at)), "{range:?} at {at}");
                at += data.len() as u64;
                assert_eq!(body.size_hint().exact(), Some(range.end - at));
            }
            assert_eq!(at, range.end);
            assert!(body.is_end_stream());
        }
    }

    #[tokio::test]
    async fn frames_in_memory_use_the_fast_read_and_others_are_read() {
        const STEP: u64 = FRAME as u64;
        let reads = Arc::new(AtomicUsize::new(0));
        let counted = reads.clone();
        let read = move |at, buffer: &mut [u8]| {
            counted.fetch_add(1, Ordering::SeqCst);
            fill(at, buffer)
        };
        // Only the third frame is not in memory.
        let fast_read = |at, buffer: &mut [u8]| at != 5 + 2 * STEP && fill(at, buffer).is_ok();
        let frames = u64::from(AHEAD) + 10;
        let mut body = ReadBody::new(5..5 + frames * STEP + 17, read).with_fast_read(fast_read);
        let mut at = 5;
        while let Some(frame) = body.frame().await {
            let data = frame.unwrap().into_data().unwrap();
            assert!(data.iter().zip(at..).all(|(got, at)| *got == byte(at)));
            at += data.len() as u64;
            assert_eq!(body.size_hint().exact(), Some(5 + frames * STEP + 17 - at));
        }
        assert_eq!(at, 5 + frames * STEP + 17);
        assert_eq!(reads.load(Ordering::SeqCst), 1 + AHEAD as usize);
    }

    #[tokio::test]
    async fn a_failed_read_ends_the_body_with_its_error() {
        let mut body = ReadBody::new(0..3 * FRAME as u64, |at, buffer| match at {
            0 => fill(at, buffer),
            _ => Err(io::Error::other("bad sector")),
        });
        assert!(body.frame().await.unwrap().is_ok());
        assert_eq!(body.frame().await.unwrap().unwrap_err().to_string(), "bad sector");
        assert!(body.frame().await.is_none());
        assert!(!body.is_end_stream());
    }

    #[tokio::test]
    async fn at_most_one_frame_is_read_ahead() {
        let reads = Arc::new(AtomicUsize::new(0));
        let (counted, channel) = (reads.clone(), mpsc::channel());
        let mut body = ReadBody::new(0..100 * FRAME as u64, move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            channel.0.send(()).map_err(io::Error::other)
        });
        body.frame().await.unwrap().unwrap();
        channel.1.recv().unwrap();
        channel.1.recv().unwrap();
        drop(body);
        // The function is dropped with the body, and was not called again.
        assert!(channel.1.recv().is_err());
        assert_eq!(reads.load(Ordering::SeqCst), 2);
    }
}
