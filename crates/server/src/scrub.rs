//! A step of a scrub, with a grant to read the file: `POST /objects/NAME/scrub/BYTE`.
//!
//! The node stores nothing about a scrub. The client asks for each step, and so determines the speed. The steps of all
//! scrubs run one after the other.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use gristmill_runtime::ErrorKind;
use gristmill_store::ReadOptions;
use gristmill_wire::{Rights, ScrubStep};
use http::{HeaderMap, header};

use crate::blocking::blocking;
use crate::error::{Answer, Refusal};
use crate::objects::object;
use crate::shared::Shared;

/// The route.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/objects/{name}/scrub/{from}", post(scrub))
}

async fn scrub(
    State(shared): State<Arc<Shared>>,
    Path((name, from)): Path<(String, u64)>,
    headers: HeaderMap,
) -> Answer<Response> {
    let object = object(&shared, &name, &headers, Rights::Read)?;
    let _permit = shared.permit(&shared.scrubs, &object.grant.principal.as_str().into())?;
    let _turn = shared.scrubbing.lock().await;
    let state = shared.clone();
    let step = blocking(move || {
        let at = ReadOptions::at(object.version);
        let path = &object.grant.file.path;
        // Only the object at the version of the grant is compared.
        let found = state.store.read_at(&object.id, 0, &mut [], at);
        let found = found.and_then(|_| state.store.scrub(&object.id, from));
        found.map_err(|error| state.store_refusal(path, error))
    });
    let step = step.await?;
    let step = ScrubStep {
        next: step.next,
        checked: step.checked,
        learnt: step.learnt,
        damaged: step.damaged.into_iter().map(|range| (range.start, range.end)).collect(),
    };
    let text = serde_json::to_vec(&step).map_err(|e| Refusal::new(ErrorKind::Failed, e.to_string()))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], Body::from(text)).into_response())
}
