//! The answer to a request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::response::Parts;
use http::{HeaderMap, StatusCode};
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::pool::Connection;
use crate::request_body::{Progress, Waiting};
use crate::{Address, Dialer, Result, TransportError};

/// The head of an answer, and its body as it arrives.
///
/// The connection is used again if the bodies of request and answer came to their ends. Otherwise it is closed.
pub struct Response {
    head: Parts,
    body: Incoming,
    state: State,
    progress: Arc<Progress>,
    dialer: Dialer,
    address: Address,
}

enum State {
    Reading(Connection),
    Done,
    Failed,
}

impl Response {
    pub(crate) fn new(
        answer: http::Response<Incoming>,
        connection: Connection,
        progress: Arc<Progress>,
        dialer: Dialer,
        address: Address,
    ) -> Self {
        let (head, body) = answer.into_parts();
        let mut response = Self { head, body, state: State::Reading(connection), progress, dialer, address };
        if response.body.is_end_stream() {
            response.finish();
        }
        response
    }

    /// The status. No status is an error.
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// Number of bytes of the body that have not arrived, if the node sent its length.
    pub fn remaining(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// The next bytes of the body as they arrive, never empty; `None` at its end.
    ///
    /// # Errors
    /// The error is [`TransportError::Stalled`] if the node sends nothing for the dialer's `stall`, and
    /// [`TransportError::Closed`] if the body is cut short. A body that is cut short never looks complete. After an
    /// error every call fails.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>> {
        match self.state {
            State::Reading(_) => {}
            State::Done => return Ok(None),
            State::Failed => return Err(self.closed("an earlier read of the body failed")),
        }
        let stall = self.dialer.shared.options.stall;
        match self.next(stall).await {
            Ok(Some(data)) => Ok(Some(data)),
            Ok(None) => {
                self.finish();
                Ok(None)
            }
            Err(error) => {
                self.state = State::Failed;
                Err(error)
            }
        }
    }

    async fn next(&mut self, stall: Duration) -> Result<Option<Bytes>> {
        loop {
            let frame = tokio::time::timeout(stall, self.body.frame())
                .await
                .map_err(|_| TransportError::Stalled { address: self.address.clone(), waited: stall })?;
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| self.closed(error))?;
            // Trailers are ignored.
            if let Ok(data) = frame.into_data()
                && !data.is_empty()
            {
                if self.body.is_end_stream() {
                    self.finish();
                }
                return Ok(Some(data));
            }
        }
    }

    /// The rest of the body, at most `limit` bytes.
    ///
    /// # Errors
    /// The error is [`TransportError::TooLarge`] if there are more than `limit`. It also fails as
    /// [`chunk`](Self::chunk) does.
    pub async fn bytes(mut self, limit: usize) -> Result<Bytes> {
        let too_large = || TransportError::TooLarge { address: self.address.clone(), limit };
        if self.remaining().is_some_and(|length| length > limit as u64) {
            return Err(too_large());
        }
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        let mut all = BytesMut::from(first);
        while all.len() <= limit {
            match self.chunk().await? {
                Some(data) => all.extend_from_slice(&data),
                None => return Ok(all.freeze()),
            }
        }
        Err(TransportError::TooLarge { address: self.address.clone(), limit })
    }

    fn finish(&mut self) {
        let state = std::mem::replace(&mut self.state, State::Done);
        // After an early answer the upload has no more use. Without its sender the connection closes.
        if let State::Reading(connection) = state
            && self.progress.waiting().0 == Waiting::Answer
        {
            self.dialer.shared.pool.put(&self.address, connection);
        }
    }

    fn closed(&self, source: impl Into<crate::BoxError>) -> TransportError {
        TransportError::Closed { address: self.address.clone(), source: source.into() }
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response").field("address", &self.address).field("status", &self.head.status).finish()
    }
}
