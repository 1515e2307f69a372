//! The body of a gRPC request while it arrives, with a time limit and in memory of its account.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};
use tokio::time::{Sleep, sleep};
use tonic::Status;

use crate::door::Caller;
use crate::limits::{BODY_TIME, MAX_BODY_BYTES, REQUEST_BYTES};

/// Body that fails with a [`Status`] if the rest does not arrive in time, is too long, or finds no memory.
pub(crate) struct ArrivingBody {
    body: Body,
    caller: Caller,
    arrived: usize,
    late: Pin<Box<Sleep>>,
}

impl ArrivingBody {
    /// Wraps a body before its first bytes. The caller has [`REQUEST_BYTES`] already.
    pub fn new(body: Body, caller: Caller) -> ArrivingBody {
        ArrivingBody { body, caller, arrived: 0, late: Box::pin(sleep(BODY_TIME)) }
    }

    fn take_in(&mut self, bytes: usize) -> Result<(), Status> {
        let before = self.arrived.max(REQUEST_BYTES);
        self.arrived = self.arrived.saturating_add(bytes);
        if self.arrived > MAX_BODY_BYTES {
            return Err(Status::invalid_argument(format!("a request has at most {MAX_BODY_BYTES} bytes")));
        }
        let more = self.arrived.saturating_sub(before);
        if more > 0 { self.caller.grow(more).map_err(Status::from) } else { Ok(()) }
    }
}

impl http_body::Body for ArrivingBody {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                let taken = self.take_in(frame.data_ref().map_or(0, Bytes::len));
                Poll::Ready(Some(taken.map(|()| frame).map_err(axum::BoxError::from)))
            }
            Poll::Ready(other) => Poll::Ready(other.map(|frame| frame.map_err(axum::BoxError::from))),
            Poll::Pending => {
                std::task::ready!(self.late.as_mut().poll(cx));
                let text = format!("send the whole request within {} s", BODY_TIME.as_secs());
                Poll::Ready(Some(Err(Status::deadline_exceeded(text).into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
