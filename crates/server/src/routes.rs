//! All routes of a node, behind the door that identifies clients.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;

use crate::shared::Shared;
use crate::{
    cluster, door, files, flight, fsck, load, members, metrics, no_route, object_page, objects, page,
    reductionist, scrub, status,
};

/// The service of a node.
pub(crate) fn router(shared: &Arc<Shared>) -> Router {
    objects::routes()
        .merge(scrub::routes())
        .merge(files::routes())
        .merge(members::routes())
        .merge(load::routes())
        .merge(metrics::routes())
        .merge(status::routes())
        .merge(cluster::routes())
        .merge(fsck::routes())
        .merge(reductionist::routes())
        .merge(object_page::routes())
        .merge(page::routes())
        .fallback(no_route::no_path)
        .method_not_allowed_fallback(no_route::no_method)
        .with_state(shared.clone())
        .route_service(&format!("{}{{*method}}", door::GRPC), flight::service(shared.clone()))
        .layer(from_fn_with_state(shared.clone(), door::enter))
}
