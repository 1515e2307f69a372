//! The page of the cluster: `GET /` on the entry node. It gets its data from `/cluster`.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderName, StatusCode, header};

use crate::shared::Shared;

/// Security policy of the page: all content comes from this node, there are no inline scripts, and no other page may
/// show it in a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = include_str!("page/index.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");
const TABLE: &str = include_str!("page/table.js");
const ICON: &str = include_str!("page/icon.svg");

/// The routes.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    let parts = [
        ("/", "text/html; charset=utf-8", HTML),
        ("/page.css", "text/css; charset=utf-8", STYLE),
        ("/page.js", "text/javascript; charset=utf-8", SCRIPT),
        ("/table.js", "text/javascript; charset=utf-8", TABLE),
        ("/icon.svg", "image/svg+xml", ICON),
    ];
    parts.into_iter().fold(Router::new(), |router, (path, kind, text)| {
        let answer = move |State(shared): State<Arc<Shared>>| async move { part(&shared, kind, text) };
        router.route(path, get(answer))
    })
}

/// Returns a part of the page or, on other nodes, its address.
fn part(shared: &Shared, kind: &'static str, text: &'static str) -> Response {
    if let Some(entry) = &shared.entry {
        let text = format!("This is a storage node. The page of its cluster is at the entry node: {entry}\n");
        return (StatusCode::NOT_FOUND, headers("text/plain; charset=utf-8"), text).into_response();
    }
    (headers(kind), text).into_response()
}

fn headers(kind: &'static str) -> [(HeaderName, &'static str); 5] {
    [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ]
}
