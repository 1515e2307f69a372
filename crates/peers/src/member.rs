//! What members of a group that finishes several passes say to each other, over HTTP/1.1.
//!
//! - `POST /collectives/JOB/NUMBER/RANK`: a value of that rank in the collective of that number. Answered once it is
//!   taken.
//! - `GET /collectives/JOB`: is the node at work at it?
//!
//! The answer is 204 for yes, 404 if the node knows nothing of the work, 410 with the reason if it gave up.

use bytes::Bytes;
use gristmill_runtime::RunError;
use gristmill_wire::{ErrorBody, GRANT_HEADER};
use http::{Method, Request, StatusCode};

use crate::Peers;
use crate::bytes::refusal;
use crate::error::{transport, unavailable};
use crate::peers::parse;

/// What a node says of the work.
#[derive(Debug)]
pub enum MemberReply {
    /// It is at it.
    Here,
    /// It knows nothing of it.
    Unknown,
    /// It gave up, for this reason.
    Gone(RunError),
}

/// One node among those that finish passes together.
#[derive(Clone, Debug)]
pub struct MemberPlace {
    /// Where it listens.
    pub address: String,
    /// How errors name it.
    pub node: String,
}

impl Peers {
    /// Hands over a value.
    ///
    /// # Errors
    /// It fails if the node cannot be reached, does not answer in time, or answers anything but the three that a
    /// [`MemberReply`] can be.
    pub async fn tell_member(
        &self,
        to: &MemberPlace,
        path: &str,
        grant: &str,
        value: Bytes,
    ) -> Result<MemberReply, RunError> {
        self.member(to, Method::POST, path, grant, value).await
    }

    /// Asks whether a node is at work.
    ///
    /// # Errors
    /// It fails as [`tell_member`](Peers::tell_member) does.
    pub async fn ask_member(
        &self,
        to: &MemberPlace,
        path: &str,
        grant: &str,
    ) -> Result<MemberReply, RunError> {
        self.member(to, Method::GET, path, grant, Bytes::new()).await
    }

    async fn member(
        &self,
        to: &MemberPlace,
        method: Method,
        path: &str,
        grant: &str,
        body: Bytes,
    ) -> Result<MemberReply, RunError> {
        let request = Request::builder().method(method).uri(path).header(GRANT_HEADER, grant).body(body);
        let request = request.map_err(|error| unavailable(&to.node, error))?;
        let client = self.dialer().http(&parse(&to.address)?);
        let call = client.send(request);
        let mut response = match tokio::time::timeout(self.stall, call).await {
            Err(_) => {
                return Err(unavailable(
                    &to.node,
                    format_args!("no answer in {} s", self.stall.as_secs_f64()),
                ));
            }
            Ok(response) => response.map_err(|e| transport(&to.node, &e))?,
        };
        match response.status() {
            StatusCode::NO_CONTENT => Ok(MemberReply::Here),
            StatusCode::NOT_FOUND => {
                // Read, so that the connection serves again.
                let _ = refusal(&to.node, &mut response).await;
                Ok(MemberReply::Unknown)
            }
            StatusCode::GONE => Ok(MemberReply::Gone(refusal(&to.node, &mut response).await)),
            _ => Err(refusal(&to.node, &mut response).await),
        }
    }
}

/// A reason as the text that one member hands on to another.
pub fn reason(error: &ErrorBody) -> String {
    serde_json::to_string(error).unwrap_or_else(|_| error.message.clone())
}

/// The error of a [`reason`].
pub fn of_reason(text: &str) -> Option<RunError> {
    serde_json::from_str::<ErrorBody>(text).ok().map(ErrorBody::into_error)
}
