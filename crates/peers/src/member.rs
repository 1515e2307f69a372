//! Messages between the members of a group that finishes several passes, over HTTP/1.1.
//!
//! - `POST /collectives/JOB/NUMBER/RANK`: a value of that rank in the collective of that number. The answer comes when the
//!   value is taken.
//! - `GET /collectives/JOB`: asks whether the node works on the job.
//!
//! The answer is 204 for yes, 404 if the node does not know the job, and 410 with the reason if it gave up.

use bytes::Bytes;
use gristmill_runtime::RunError;
use gristmill_wire::{ErrorBody, GRANT_HEADER};
use http::{Method, Request, StatusCode};

use crate::Peers;
use crate::bytes::refusal;
use crate::error::{transport_error, unavailable};
use crate::peers::parse_address;

/// The answer of a node about a job.
#[derive(Debug)]
pub enum MemberReply {
    /// The node works on it.
    Working,
    /// The node does not know it.
    Unknown,
    /// The node gave up, for this reason.
    GaveUp(RunError),
}

/// The address of a member of a group.
#[derive(Clone, Debug)]
pub struct MemberAddress {
    /// The address on which the node listens.
    pub address: String,
    /// The name of the node in errors.
    pub node: String,
}

impl Peers {
    /// Sends a value to a member.
    ///
    /// # Errors
    /// It fails if the node cannot be reached, does not answer in time, or gives an answer that is not one of the three of
    /// [`MemberReply`].
    pub async fn send_to_member(
        &self,
        to: &MemberAddress,
        path: &str,
        grant: &str,
        value: Bytes,
    ) -> Result<MemberReply, RunError> {
        self.member(to, Method::POST, path, grant, value).await
    }

    /// Asks whether a member works on a job.
    ///
    /// # Errors
    /// It fails as [`send_to_member`](Peers::send_to_member) does.
    pub async fn ask_member(
        &self,
        to: &MemberAddress,
        path: &str,
        grant: &str,
    ) -> Result<MemberReply, RunError> {
        self.member(to, Method::GET, path, grant, Bytes::new()).await
    }

    async fn member(
        &self,
        to: &MemberAddress,
        method: Method,
        path: &str,
        grant: &str,
        body: Bytes,
    ) -> Result<MemberReply, RunError> {
        let request = Request::builder().method(method).uri(path).header(GRANT_HEADER, grant).body(body);
        let request = request.map_err(|error| unavailable(&to.node, error))?;
        let client = self.dialer().http(&parse_address(&to.address)?);
        let call = client.send(request);
        let mut response = match tokio::time::timeout(self.stall, call).await {
            Err(_) => {
                return Err(unavailable(
                    &to.node,
                    format_args!("no answer in {} s", self.stall.as_secs_f64()),
                ));
            }
            Ok(response) => response.map_err(|e| transport_error(&to.node, &e))?,
        };
        match response.status() {
            StatusCode::NO_CONTENT => Ok(MemberReply::Working),
            StatusCode::NOT_FOUND => {
                // The body is read so that the connection can be used again.
                let _ = refusal(&to.node, &mut response).await;
                Ok(MemberReply::Unknown)
            }
            StatusCode::GONE => Ok(MemberReply::GaveUp(refusal(&to.node, &mut response).await)),
            _ => Err(refusal(&to.node, &mut response).await),
        }
    }
}

/// Encodes the reason of a failure as text, which one member sends on to another.
pub fn encode_reason(error: &ErrorBody) -> String {
    serde_json::to_string(error).unwrap_or_else(|_| error.message.clone())
}

/// Decodes the text of [`encode_reason`]. `None` for any other text.
pub fn decode_reason(text: &str) -> Option<RunError> {
    serde_json::from_str::<ErrorBody>(text).ok().map(ErrorBody::into_error)
}
