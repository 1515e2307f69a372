//! Who asks: the peer of a Unix socket, the bearer of a token, or whoever is on this machine.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use gristmill_namespace::Principal;
use gristmill_runtime::ErrorKind;
use gristmill_transport::{Origin, Peer};
use http::{Extensions, HeaderMap, header};
use ring::digest;

use crate::ServerError;
use crate::error::{Answer, Refusal};
use crate::limits::MAX_TOKENS_BYTES;

/// SHA-256 of a token: looking one up takes the same time whatever it shares with others.
type Hash = [u8; 32];

/// Names by token, and what is done about those without.
#[derive(Debug, Default)]
pub(crate) struct Identities {
    tokens: HashMap<Hash, Principal>,
    required: bool,
}

fn hash(token: &str) -> Hash {
    let mut out = [0; 32];
    out.copy_from_slice(digest::digest(&digest::SHA256, token.as_bytes()).as_ref());
    out
}

impl Identities {
    /// Reads a file of tokens: `NAME TOKEN` a line; empty lines and those that begin with # count for nothing.
    pub fn load(path: Option<&Path>, required: bool) -> Result<Identities, ServerError> {
        let mut identities = Identities { tokens: HashMap::new(), required };
        let Some(path) = path else { return Ok(identities) };
        let failed = |source| ServerError::File { verb: "read", path: path.to_owned(), source };
        let meta = std::fs::metadata(path).map_err(failed)?;
        let usage = |text: &str| Err(ServerError::Usage(format!("{}: {text}", path.display())));
        if meta.mode() & 0o077 != 0 {
            return usage(
                "others may read these tokens; make the file readable by its owner only (chmod 600)",
            );
        }
        if meta.len() > MAX_TOKENS_BYTES {
            return usage("a file of tokens is never so long; check its name");
        }
        for (n, line) in std::fs::read_to_string(path).map_err(failed)?.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, token) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let Ok(principal) = name.parse::<Principal>() else {
                return usage(&format!("line {}: the name is none; write NAME TOKEN", n + 1));
            };
            if token.trim().len() < 16 {
                return usage(&format!(
                    "line {}: a token has at least 16 characters; write NAME TOKEN",
                    n + 1
                ));
            }
            identities.tokens.insert(hash(token.trim()), principal);
        }
        Ok(identities)
    }

    /// Who asks.
    pub fn principal(&self, extensions: &Extensions, headers: &HeaderMap) -> Answer<Principal> {
        let denied = |text: &str| Err(Refusal::new(ErrorKind::Denied, text));
        let Some(peer) = extensions.get::<Peer>() else {
            return denied("the connection says nothing of its peer");
        };
        let local = match &peer.origin {
            Origin::Unix { .. } => true,
            Origin::Tcp(ip) => ip.is_loopback(),
        };
        if let Some(value) = headers.get(header::AUTHORIZATION) {
            if !peer.encrypted && !local {
                return denied("tokens are taken over TLS only");
            }
            let token = value.to_str().ok().and_then(|value| value.strip_prefix("Bearer "));
            let known = token.and_then(|token| self.tokens.get(&hash(token.trim())));
            return match known {
                Some(principal) => Ok(principal.clone()),
                None => denied(
                    "the token is not known here; check GRISTMILL_TOKEN or ask the administrator for one",
                ),
            };
        }
        match &peer.origin {
            Origin::Unix { uid, .. } => {
                let name = format!("uid:{uid}").parse::<Principal>();
                name.map_err(|e| Refusal::new(ErrorKind::Denied, e.to_string()))
            }
            Origin::Tcp(_) if local && !self.required && !named_so(headers) => {
                denied("the request was meant for another host; write 127.0.0.1 or localhost")
            }
            Origin::Tcp(_) if local && !self.required => Ok(Principal::anonymous()),
            Origin::Tcp(_) => {
                denied("this node wants to know who asks: set GRISTMILL_TOKEN, or use its Unix socket")
            }
        }
    }
}

/// Whether a request over loopback was meant for this machine: a page of somewhere else, whose name was made to lead here,
/// must not act as its reader.
fn named_so(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST) else { return true };
    let Ok(host) = host.to_str() else { return false };
    let name = host
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()))
        .map_or(host, |(name, _)| name);
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
