//! Requests that let a node compare a range of an object with its checksums.

use bytes::Bytes;
use gristmill_runtime::RunError;
use gristmill_wire::{FileMap, GRANT_HEADER, MAX_SCRUB_BYTES, ScrubStep};
use http::{Method, Request};

use crate::Peers;
use crate::bytes::{node_name, refusal};
use crate::error::{transport_error, unavailable};
use crate::peers::parse_address;

impl Peers {
    /// Checks a range that begins at byte `from` of the object on the target with the index `target` of a file.
    ///
    /// # Errors
    /// It fails if the file has no such target, and if its node cannot be reached, is silent, refuses, or sends an
    /// answer that cannot be decoded.
    pub async fn scrub(
        &self,
        file: &FileMap,
        target: usize,
        grant: &str,
        from: u64,
    ) -> Result<ScrubStep, RunError> {
        let Some(place) = file.targets.get(target) else {
            return Err(RunError::Internal { what: "a request named a target that the file does not have" });
        };
        let (address, node) = (parse_address(&place.address)?, node_name(place.number, &place.address));
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("/objects/{}/scrub/{from}", file.object()))
            .header(GRANT_HEADER, grant)
            .body(Bytes::new())
            .map_err(|e| unavailable(&node, e))?;
        let mut response =
            self.dialer().http(&address).send(request).await.map_err(|e| transport_error(&node, &e))?;
        if !response.status().is_success() {
            return Err(refusal(&node, &mut response).await);
        }
        let text = response.bytes(MAX_SCRUB_BYTES).await.map_err(|e| transport_error(&node, &e))?;
        serde_json::from_slice(&text)
            .map_err(|e| unavailable(&node, format_args!("its answer cannot be decoded: {e}")))
    }
}
