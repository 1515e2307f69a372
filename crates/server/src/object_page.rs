//! List of the objects of files on this node, for the entry node: `GET /objects/NAME/next`, with a grant to manage.
//!
//! The answer has the objects with names after NAME, at most [`MAX_OBJECTS_LISTED`].

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use gristmill_runtime::ErrorKind;
use gristmill_store::{ArrivalState, ObjectId, StoreError};
use gristmill_wire::{MAX_OBJECTS_LISTED, OBJECT_PREFIX, ObjectEntry, ObjectPage, ObjectState, Rights};
use http::{HeaderMap, header};

use crate::blocking::blocking;
use crate::error::{Answer, Refusal};
use crate::no_route::Named;
use crate::objects::object;
use crate::shared::Shared;

/// The route.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/objects/{name}/next", get(next))
}

async fn next(State(shared): State<Arc<Shared>>, Named(name): Named, headers: HeaderMap) -> Answer<Response> {
    let object = object(&shared, &name, &headers, Rights::Manage)?;
    let state = shared.clone();
    let page = blocking(move || page(&state, &object.id)).await?;
    let text = serde_json::to_vec(&page).map_err(|e| Refusal::new(ErrorKind::Failed, e.to_string()))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], Body::from(text)).into_response())
}

/// Lists the objects of files after this one. Blocks.
///
/// # Errors
/// Returns an error if the store cannot be read.
pub(crate) fn page(shared: &Shared, after: &ObjectId) -> Answer<ObjectPage> {
    let names = shared.store.list(OBJECT_PREFIX, Some(after), MAX_OBJECTS_LISTED)?;
    let mut page = ObjectPage::default();
    for name in &names {
        let Some(id) = name.as_str().strip_prefix(OBJECT_PREFIX) else { continue };
        let state = match shared.store.examine(name) {
            Ok(stat) if stat.state == ArrivalState::Closed => {
                ObjectState::Complete { version: stat.version.0, length: stat.length }
            }
            Ok(stat) => ObjectState::Incomplete { length: stat.length },
            Err(StoreError::NotFound { .. }) => continue,
            Err(error) => ObjectState::Unreadable(error.to_string()),
        };
        page.objects.push(ObjectEntry { id: id.to_owned(), state });
    }
    let last = names.last().filter(|_| names.len() == MAX_OBJECTS_LISTED);
    page.end = last.and_then(|last| last.as_str().strip_prefix(OBJECT_PREFIX)).map(str::to_owned);
    Ok(page)
}
