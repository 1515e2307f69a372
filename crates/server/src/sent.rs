//! Number of bytes that a node sends to clients and other nodes.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use gristmill_flight::FlightData;
use http_body::{Frame, SizeHint};

/// Counter of the bytes of bodies that are passed to connections. [`BytesStatus`](gristmill_wire::BytesStatus) defines
/// which are counted.
#[derive(Clone, Default)]
pub(crate) struct Sent(Arc<AtomicU64>);

impl Sent {
    /// Bytes since the node started.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Wraps a body so that its bytes are counted.
    pub fn body<B>(&self, body: B) -> Body
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<axum::BoxError>,
    {
        Body::new(Counted { body, sent: self.clone() })
    }

    /// Counts a message of an answer.
    pub fn message(&self, data: &FlightData) {
        self.add(data.data_header.len() + data.data_body.len() + data.app_metadata.len());
    }

    fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

struct Counted<B> {
    body: B,
    sent: Sent,
}

impl<B: http_body::Body<Data = Bytes> + Unpin> http_body::Body for Counted<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            self.sent.add(data.len());
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
