//! Answers to requests without a route: an error as JSON.

use axum::extract::{FromRequestParts, Path};
use gristmill_runtime::ErrorKind;
use http::request::Parts;
use http::{Method, StatusCode, Uri};

use crate::error::Refusal;

/// Largest number of bytes of a path that an error repeats.
const MAX_PATH_SHOWN: usize = 200;

/// Answers an unknown path.
pub(crate) async fn no_path(uri: Uri) -> Refusal {
    let text = format!(
        "there is nothing at {}; files are at /files/PATH of the entry node, directories at /files/DIR/",
        shown(&uri)
    );
    Refusal::new(ErrorKind::NotFound, text)
}

/// Answers a method that the path does not support.
pub(crate) async fn no_method(method: Method, uri: Uri) -> (StatusCode, Refusal) {
    let method: String = method.as_str().chars().take(MAX_PATH_SHOWN).collect();
    let text = format!(
        "{} does not support {method}; the header Allow names the methods that it supports",
        shown(&uri)
    );
    (StatusCode::METHOD_NOT_ALLOWED, Refusal::new(ErrorKind::Usage, text))
}

/// The path, or its beginning.
fn shown(uri: &Uri) -> String {
    uri.path().chars().take(MAX_PATH_SHOWN).collect()
}

/// Extractor of the name in a route's path, without percent escapes.
pub(crate) struct Named(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Named, Refusal> {
        let named = Path::<String>::from_request_parts(parts, state).await;
        let why = |_| format!("{} is no path: write it as UTF-8, escaped where needed", shown(&parts.uri));
        Ok(Named(named.map_err(|error| Refusal::new(ErrorKind::Usage, why(error)))?.0))
    }
}
