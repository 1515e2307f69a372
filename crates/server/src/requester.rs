//! The requester of files: a principal with the credentials that came with the request.

use gristmill_namespace::Principal;
use gristmill_wire::{SOURCE_HEADER, SourceAccess};

use crate::error::Answer;

/// The principal that asks for files, and the credentials for storage outside the cluster that came with the request.
#[derive(Clone, Copy)]
pub(crate) struct Requester<'a> {
    pub principal: &'a Principal,
    pub access: Option<&'a SourceAccess>,
}

impl<'a> From<&'a Principal> for Requester<'a> {
    fn from(principal: &'a Principal) -> Requester<'a> {
        Requester { principal, access: None }
    }
}

/// The text `ID:SECRET` of Basic credentials (RFC 7617), as a header has them behind `Basic `. `None` if they are malformed.
pub(crate) fn basic_pair(encoded: &[u8]) -> Option<String> {
    use base64::Engine;
    let decoded = base64::engine::general_purpose::STANDARD.decode(encoded.trim_ascii()).ok()?;
    String::from_utf8(decoded).ok().filter(|pair| pair.contains(':'))
}

/// The credentials for storage outside in the headers of a request.
///
/// # Errors
/// It fails if they are malformed. The error does not show them.
pub(crate) fn source_access(headers: &http::HeaderMap) -> Answer<Option<SourceAccess>> {
    let Some(value) = headers.get(SOURCE_HEADER) else { return Ok(None) };
    Ok(Some(SourceAccess::from_header(value.as_bytes())?))
}
