//! What this node says of its load, to whoever has a grant.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use gristmill_runtime::ErrorKind;
use gristmill_wire::{GRANT_HEADER, NodeLoad, Rights};
use http::{HeaderMap, header};

use crate::error::{Answer, Refusal};
use crate::node::Shared;

/// The route.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/load/{kernel}", get(load))
}

async fn load(
    State(shared): State<Arc<Shared>>,
    Path(kernel): Path<String>,
    headers: HeaderMap,
) -> Answer<Response> {
    let sealed = headers.get(GRANT_HEADER).and_then(|sealed| sealed.to_str().ok());
    let sealed = sealed.ok_or_else(|| {
        let text = format!("this needs a grant in the header {GRANT_HEADER}; /metrics says how a node does");
        Refusal::new(ErrorKind::Denied, text)
    })?;
    shared.grant(sealed, Rights::Read)?;
    let load = NodeLoad { target: shared.number()?, ..shared.contention.load(&kernel) };
    let text =
        serde_json::to_vec(&load).map_err(|error| Refusal::new(ErrorKind::Failed, error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], Body::from(text)).into_response())
}
