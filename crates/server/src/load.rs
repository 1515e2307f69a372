//! Load of this node, for clients with a grant.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use gristmill_runtime::ErrorKind;
use gristmill_wire::NodeLoad;
use http::{HeaderMap, header};

use crate::error::{Answer, Refusal};
use crate::shared::Shared;
use crate::status::with_grant;

/// The route.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/load/{kernel}", get(load))
}

async fn load(
    State(shared): State<Arc<Shared>>,
    Path(kernel): Path<String>,
    headers: HeaderMap,
) -> Answer<Response> {
    with_grant(&shared, &headers)?;
    let load = NodeLoad { target: shared.number()?, ..shared.contention.load(&kernel) };
    let text =
        serde_json::to_vec(&load).map_err(|error| Refusal::new(ErrorKind::Failed, error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], Body::from(text)).into_response())
}
