//! What a client sends, and how far that has come.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use tokio::time::Instant;

use crate::{BoxError, ReadBody};

/// The body of a request: all bytes at once, or a stream of them.
///
/// Bytes can be sent again when a kept connection turns out closed; a stream that was begun cannot.
pub struct RequestBody(Inner);

enum Inner {
    Whole(Bytes),
    Stream(UnsyncBoxBody<Bytes, BoxError>),
}

impl RequestBody {
    /// No body.
    pub fn empty() -> Self {
        Self(Inner::Whole(Bytes::new()))
    }

    /// Any body. With an exact size hint it is sent with a length, without one in chunks.
    pub fn stream<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(Inner::Stream(body.map_err(Into::into).boxed_unsync()))
    }

    pub(crate) fn again(&self) -> Option<Self> {
        match &self.0 {
            Inner::Whole(bytes) => Some(Self(Inner::Whole(bytes.clone()))),
            Inner::Stream(_) => None,
        }
    }
}

impl From<()> for RequestBody {
    fn from((): ()) -> Self {
        Self::empty()
    }
}

impl From<Bytes> for RequestBody {
    fn from(bytes: Bytes) -> Self {
        Self(Inner::Whole(bytes))
    }
}

impl From<Vec<u8>> for RequestBody {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<ReadBody> for RequestBody {
    fn from(body: ReadBody) -> Self {
        Self::stream(body)
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self.0, Inner::Whole(_)) {
            "RequestBody(bytes)"
        } else {
            "RequestBody(stream)"
        })
    }
}

/// Whom a request waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waiting {
    /// The source of the body: not the other side's fault.
    Source,
    /// The other side, to take more of the body.
    Taking,
    /// The other side, to answer.
    Answer,
}

/// Shared by the body, inside the connection, and by the one who waits for the answer.
pub(crate) struct Progress {
    began: Instant,
    last_millis: AtomicU64,
    waiting: AtomicU8,
}

impl Progress {
    fn note(&self, waiting: Waiting) {
        let millis = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_millis.store(millis, Ordering::Relaxed);
        self.waiting.store(waiting as u8, Ordering::Relaxed);
    }

    /// Whom for, and since when.
    pub fn look(&self) -> (Waiting, Instant) {
        let waiting = match self.waiting.load(Ordering::Relaxed) {
            0 => Waiting::Source,
            1 => Waiting::Taking,
            _ => Waiting::Answer,
        };
        let last = std::time::Duration::from_millis(self.last_millis.load(Ordering::Relaxed));
        (waiting, self.began + last)
    }
}

/// A body on its way out.
pub(crate) struct Outgoing {
    body: UnsyncBoxBody<Bytes, BoxError>,
    progress: Arc<Progress>,
}

impl Outgoing {
    pub fn new(body: RequestBody) -> Self {
        let body = match body.0 {
            Inner::Whole(bytes) => Full::new(bytes).map_err(|never| match never {}).boxed_unsync(),
            Inner::Stream(body) => body,
        };
        let began = Instant::now();
        let waiting = if body.is_end_stream() { Waiting::Answer } else { Waiting::Taking };
        let progress =
            Progress { began, last_millis: AtomicU64::new(0), waiting: AtomicU8::new(waiting as u8) };
        Self { body, progress: Arc::new(progress) }
    }

    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, BoxError>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        self.progress.note(match &frame {
            Poll::Pending => Waiting::Source,
            Poll::Ready(Some(Ok(_))) if !self.body.is_end_stream() => Waiting::Taking,
            Poll::Ready(_) => Waiting::Answer,
        });
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
