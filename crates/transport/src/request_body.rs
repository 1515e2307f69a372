//! The body of a request, and its progress.

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

/// The body of a request: bytes in memory, or a stream of bytes.
///
/// Bytes in memory can be sent again if a kept connection is found closed. A stream that was begun cannot.
pub struct RequestBody(Inner);

enum Inner {
    Whole(Bytes),
    Stream(UnsyncBoxBody<Bytes, BoxError>),
}

impl RequestBody {
    /// An empty body.
    pub fn empty() -> Self {
        Self(Inner::Whole(Bytes::new()))
    }

    /// A stream. With an exact size hint it is sent with a length, otherwise in chunks.
    pub fn stream<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(Inner::Stream(body.map_err(Into::into).boxed_unsync()))
    }

    pub(crate) fn try_clone(&self) -> Option<Self> {
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

/// The reason why a request waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waiting {
    /// The next bytes from the source of the body. The other side does not cause this wait.
    Source,
    /// The other side must take more of the body.
    Transfer,
    /// The other side must answer.
    Answer,
}

/// Progress of a request. The body, inside the connection, and the task that waits for the answer share it.
pub(crate) struct Progress {
    began: Instant,
    last_millis: AtomicU64,
    waiting: AtomicU8,
}

impl Progress {
    fn set(&self, waiting: Waiting) {
        let millis = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_millis.store(millis, Ordering::Relaxed);
        self.waiting.store(waiting as u8, Ordering::Relaxed);
    }

    /// Returns the reason why the request waits, and the time at which the wait began.
    pub fn waiting(&self) -> (Waiting, Instant) {
        let waiting = match self.waiting.load(Ordering::Relaxed) {
            0 => Waiting::Source,
            1 => Waiting::Transfer,
            _ => Waiting::Answer,
        };
        let last = std::time::Duration::from_millis(self.last_millis.load(Ordering::Relaxed));
        (waiting, self.began + last)
    }
}

/// A body that is being sent.
pub(crate) struct OutgoingBody {
    body: UnsyncBoxBody<Bytes, BoxError>,
    progress: Arc<Progress>,
}

impl OutgoingBody {
    pub fn new(body: RequestBody) -> Self {
        let body = match body.0 {
            Inner::Whole(bytes) => Full::new(bytes).map_err(|never| match never {}).boxed_unsync(),
            Inner::Stream(body) => body,
        };
        let began = Instant::now();
        let waiting = if body.is_end_stream() { Waiting::Answer } else { Waiting::Transfer };
        let progress =
            Progress { began, last_millis: AtomicU64::new(0), waiting: AtomicU8::new(waiting as u8) };
        Self { body, progress: Arc::new(progress) }
    }

    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, BoxError>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        self.progress.set(match &frame {
            Poll::Pending => Waiting::Source,
            Poll::Ready(Some(Ok(_))) if !self.body.is_end_stream() => Waiting::Transfer,
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
