//! The body of a request on the server, with a bound on its silence, and a drain at its end.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};

use crate::{BoxError, DRAIN_BYTES, DRAIN_TIME};

/// A body that fails when the client sends nothing for the bound. Time in which the handler does not poll does not
/// count. Bytes that the handler leaves unread are read and dropped for some time. A socket that is closed with unread
/// bytes is reset, and the client would often lose the answer with the reason of the refusal.
pub(crate) struct Upload {
    body: Option<Incoming>,
    drain: bool,
    bound: Duration,
    silent: Option<Pin<Box<Sleep>>>,
}

impl Upload {
    /// Makes the body. `drain` must be false if the client waits for `100 Continue`, because a read would send that,
    /// and over HTTP/2, where one stream ends without the others.
    pub fn new(body: Incoming, bound: Duration, drain: bool) -> Self {
        Self { body: Some(body), drain, bound, silent: None }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, BoxError>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(cx) {
            self.silent = None;
            if matches!(frame, None | Some(Err(_))) {
                self.body = None;
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from)));
        }
        let bound = self.bound;
        let silent =
            self.silent.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + bound)));
        match silent.as_mut().poll(cx) {
            Poll::Ready(()) => {
                self.body = None;
                Poll::Ready(Some(Err(format!("the client has sent nothing for {bound:?}").into())))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or(SizeHint::with_exact(0), Incoming::size_hint)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let unread = self.body.take().filter(|body| self.drain && !body.is_end_stream());
        if let (Some(body), Ok(runtime)) = (unread, tokio::runtime::Handle::try_current()) {
            runtime.spawn(tokio::time::timeout(DRAIN_TIME, drain(body)));
        }
    }
}

/// Reads and drops the body. It ends when the connection ends, or earlier.
async fn drain(mut body: Incoming) {
    let mut remaining = DRAIN_BYTES;
    while let Some(Ok(frame)) = body.frame().await {
        match remaining.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
            Some(rest) => remaining = rest,
            None => return,
        }
    }
}
