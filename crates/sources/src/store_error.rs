//! Errors of the crate `object_store` as errors of a backend.

use std::error::Error;

use gristmill_backend::BackendError;
use object_store::Error as StoreError;

use crate::SourceUrl;
use crate::addresses::refused_address;

/// Most characters of the answer of a server in a message.
const MAX_ANSWER: usize = 1_000;

/// The error of a request about an object or a folder.
pub(crate) fn explain(url: &SourceUrl, error: StoreError) -> BackendError {
    let name = url.to_string();
    if let Some(refused) = refused_address(&error) {
        return BackendError::Denied { name, why: refused.to_string() };
    }
    match error {
        StoreError::NotFound { .. } => BackendError::NotFound { name },
        StoreError::Precondition { .. } | StoreError::NotModified { .. } => BackendError::Changed { name },
        StoreError::PermissionDenied { .. } => BackendError::Denied {
            name,
            why:
                "the object store denies it (Access Denied) to these credentials, or to requests without any; check them, or ask the \
                 owner of the bucket"
                    .into(),
        },
        StoreError::Unauthenticated { .. } => BackendError::Denied {
            name,
            why: "the object store does not accept the credentials; check the key, the secret and the token of the session"
                .into(),
        },
        StoreError::InvalidPath { source } => {
            let why = format!("a name there cannot be that of a file ({source}), so the folder cannot be listed");
            BackendError::Io { verb: "list", name, source: std::io::Error::other(why) }
        }
        error if asks_machine(&error) => BackendError::Denied {
            name,
            why: "the environment has no credentials, and this machine gives none; set them (for S3 AWS_ACCESS_KEY_ID and \
                  AWS_SECRET_ACCESS_KEY), or AWS_SKIP_SIGNATURE=true for a public bucket"
                .into(),
        },
        error => match refused(&innermost(&error)) {
            Some(why) => {
                let source = std::io::Error::other(why);
                BackendError::Io { verb: "read", name, source }
            }
            None => BackendError::Unavailable { name, why: told(&innermost(&error)) },
        },
    }
}

/// The error of a request for a list. For those the crate does not tell whether a bucket is missing or denied.
pub(crate) fn explain_list(url: &SourceUrl, error: StoreError) -> BackendError {
    let text = innermost(&error);
    // The answer of the store about a list has its code; that of a service for credentials has not.
    match (status(&text), text.contains("<Code>")) {
        (Some(404), true) => BackendError::NotFound { name: url.to_string() },
        (Some(401 | 403), true) => BackendError::Denied { name: url.to_string(), why: told(&text) },
        _ => explain(url, error),
    }
}

/// Whether the request for the credentials of a machine in a cloud failed.
fn asks_machine(error: &dyn Error) -> bool {
    let names = ["169.254.169.254", "metadata.google.internal", "MetadataAuthentication"];
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        if names.iter().any(|name| text.contains(name)) {
            return true;
        }
        next = error.source();
    }
    false
}

/// The start of the message about a status that is no success.
const STATUS: &str = "Server returned non-2xx status code: ";

/// The status in a message of the crate `object_store`.
fn status(text: &str) -> Option<u16> {
    text.strip_prefix(STATUS)?.get(..3)?.parse().ok()
}

/// The message for a status that will not pass: a redirect, or a fault of the request.
fn refused(text: &str) -> Option<String> {
    if text.contains("non-partial response") {
        return Some("the object store cannot send a part of an object (no range requests)".to_owned());
    }
    if text.contains("redirect without LOCATION") {
        return Some("the bucket is in another region; set AWS_REGION to it".to_owned());
    }
    let status = status(text)?;
    let may_pass = status >= 500 || matches!(status, 408 | 429);
    (!may_pass).then(|| told(text))
}

/// A message without the body of an answer, of which only the code and the message of the store are kept. The rest may hold
/// credentials.
fn told(text: &str) -> String {
    let split = match text.strip_prefix(STATUS) {
        // The status has no colon.
        Some(rest) => rest.find(':').map(|at| text.split_at(STATUS.len() + at)),
        None => text.find('<').map(|at| text.split_at(at)),
    };
    let Some((head, body)) = split else { return text.to_owned() };
    let element = |name: &str| {
        let rest = body.split_once(&format!("<{name}>"))?.1;
        Some(rest.split_once('<')?.0.to_owned()).filter(|text| !text.is_empty())
    };
    let parts: Vec<String> = ["Code", "Message"].into_iter().filter_map(element).collect();
    format!("{} {}", head.trim_end(), parts.join(": ")).trim_end().to_owned()
}

/// The deepest reason, which says most, in one line.
pub(crate) fn innermost(error: &dyn Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    let text: String = deepest.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MAX_ANSWER) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_the_code_of_the_store_and_no_credentials() {
        let text = format!(
            "{STATUS}400 Bad Request: <?xml version=\"1.0\"?><Error><Code>ExpiredToken</Code><Message>The token has \
             expired.</Message><Token-0>SECRET</Token-0></Error>"
        );
        let why = refused(&text).unwrap_or_default();
        assert!(why.contains("ExpiredToken: The token has expired."), "{why}");
        assert!(!why.contains("SECRET"), "{why}");
        assert_eq!(refused(&format!("{STATUS}503 Slow Down: ")), None);
        assert!(refused("Received non-partial response when range requested").is_some());
        assert_eq!(told("connection refused"), "connection refused");
        let missing =
            format!("{STATUS}404 Not Found: <Error><Code>NoSuchBucket</Code><Message></Message></Error>");
        assert_eq!(told(&missing), format!("{STATUS}404 Not Found NoSuchBucket"));
        assert_eq!((status(&missing), status("connection refused")), (Some(404), None));
        assert_eq!(told(&format!("{STATUS}500 Bad: token SECRET")), format!("{STATUS}500 Bad"));
    }
}
