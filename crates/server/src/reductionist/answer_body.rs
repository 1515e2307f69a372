//! The body of an answer: bytes in memory, and what is held until the last of them is sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use gristmill_transport::FRAME;
use http_body::{Body, Frame, SizeHint};

/// Bytes in memory that are sent frame by frame. The first frame is there at once, so it leaves with the head of the answer.
pub(crate) struct AnswerBody(Bytes);

/// The bytes, with the memory and the permit of their request.
struct Owned<H> {
    bytes: Vec<u8>,
    _held: H,
}

impl<H> AsRef<[u8]> for Owned<H> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl AnswerBody {
    /// Sends `bytes`. `held` is dropped when the connection has let go of the last frame, or ends.
    pub fn new(bytes: Vec<u8>, held: impl Send + 'static) -> AnswerBody {
        AnswerBody(Bytes::from_owner(Owned { bytes, _held: held }))
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.0.len().min(FRAME);
        Poll::Ready((length > 0).then(|| Ok(Frame::data(self.0.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn what_is_held_is_dropped_after_the_last_byte() {
        let (held, bytes) = (Arc::new(()), (0..FRAME + 7).map(|at| at as u8).collect::<Vec<u8>>());
        let mut body = AnswerBody::new(bytes.clone(), held.clone());
        assert_eq!(body.size_hint().exact(), Some(bytes.len() as u64));
        let mut got = Vec::new();
        while let Some(frame) = body.frame().await {
            let data = frame.unwrap().into_data().unwrap();
            assert!(!data.is_empty() && data.len() <= FRAME);
            assert_eq!(Arc::strong_count(&held), 2);
            got.extend_from_slice(&data);
        }
        assert!(got == bytes && body.is_end_stream());
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[tokio::test]
    async fn an_empty_answer_has_no_frame() {
        let mut body = AnswerBody::new(Vec::new(), ());
        assert!(body.is_end_stream() && body.frame().await.is_none());
    }
}
