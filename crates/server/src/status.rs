//! Status of this node, for monitoring: `GET /status`, with a grant. A user sees the names of others only as
//! [`ANOTHER_USER`](gristmill_wire::ANOTHER_USER). The entry node sees all of them, and decides who else does.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use gristmill_runtime::ErrorKind;
use gristmill_wire::{
    BytesStatus, FIRST_ID, GRANT_HEADER, Grant, KernelStatus, MAX_LISTED, NodeStatus, RequestState,
    RequestStatus, Rights,
};
use http::{HeaderMap, header};

use crate::collect::ENTRY;
use crate::contention::Contention;
use crate::contention::active::Active;
use crate::contention::counts::KernelCounts;
use crate::error::{Answer, Refusal};
use crate::shared::Shared;

/// The route.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/status", get(status))
}

/// The grant of a request. Any grant for reading is enough.
pub(crate) fn with_grant(shared: &Shared, headers: &HeaderMap) -> Answer<Grant> {
    let sealed = headers.get(GRANT_HEADER).and_then(|sealed| sealed.to_str().ok());
    let sealed = sealed.ok_or_else(|| {
        let text = format!("this needs a grant in the header {GRANT_HEADER}; /metrics needs none");
        Refusal::new(ErrorKind::Denied, text)
    })?;
    shared.grant(sealed, Rights::Read)
}

async fn status(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Answer<Response> {
    let grant = with_grant(&shared, &headers)?;
    let status = node_status(&shared)?;
    // No user has a grant for a file with this id.
    let of_entry = grant.principal == ENTRY && grant.file.id == FIRST_ID;
    let text = serde_json::to_vec(&if of_entry { status } else { status.seen_by(&grant.principal) });
    let text = text.map_err(|error| Refusal::new(ErrorKind::Failed, error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], Body::from(text)).into_response())
}

/// The current work of this node, and its counts since it started.
pub(crate) fn node_status(shared: &Shared) -> Answer<NodeStatus> {
    let (target, contention) = (shared.number()?, &shared.contention);
    let (counts, active) = contention.counts_and_active();
    // The counts are taken at the same moment as the list.
    let load = gristmill_wire::NodeLoad {
        target,
        active: active.len() as u64,
        running: active.iter().filter(|one| one.is_running()).count() as u64,
        ..contention.load("")
    };
    let mut kernels = counts.kernels;
    for one in &active {
        let kernel = kernels.entry(one.work.kernel.clone()).or_default();
        kernel.bytes = kernel.bytes.saturating_add(one.folded_in_all_passes());
    }
    let kernels = kernel_statuses(contention, kernels);
    let folded = kernels.iter().fold(0, |sum: u64, kernel| sum.saturating_add(kernel.folded));
    let handed_back = counts.handed_back.into_iter().map(|(mut gone, at)| {
        gone.ago_seconds = at.elapsed().as_secs_f64();
        gone
    });
    Ok(NodeStatus {
        target,
        address: shared.address.clone(),
        load: Some(load),
        error: None,
        silent_seconds: None,
        up_seconds: contention.up().as_secs_f64(),
        kernels,
        requests: active.iter().take(MAX_LISTED).map(|one| request_status(one)).collect(),
        handed_back: handed_back.collect(),
        bytes: BytesStatus { folded, sent: shared.sent.bytes() },
    }
    .limit_lists(MAX_LISTED))
}

fn kernel_statuses(contention: &Contention, kernels: BTreeMap<String, KernelCounts>) -> Vec<KernelStatus> {
    let of = |(kernel, counts): (String, KernelCounts)| {
        let (rate, measured) = contention.rate(&kernel);
        let KernelCounts { ended, handed_back, bytes } = counts;
        KernelStatus { kernel, rate, measured, ended, handed_back, folded: bytes }
    };
    kernels.into_iter().map(of).collect()
}

fn request_status(active: &Active) -> RequestStatus {
    let state = match (active.hand_off.why(), active.is_running()) {
        (Some(_), _) => RequestState::Leaving,
        (None, true) => RequestState::Running,
        (None, false) => RequestState::Waiting,
    };
    RequestStatus {
        number: active.number,
        kernel: active.work.kernel.clone(),
        state,
        bytes: active.work.bytes,
        folded: active.folded().min(active.work.bytes),
        principal: active.work.principal.clone(),
        asker: active.work.client_name.clone(),
        age_seconds: active.arrived.elapsed().as_secs_f64(),
    }
}
