//! Principal of a request: the user of a Unix socket, the user of a token, or any user of this machine.

use std::path::Path;

use gristmill_namespace::Principal;
use gristmill_runtime::ErrorKind;
use gristmill_transport::{Origin, Peer};
use http::{Extensions, HeaderValue};

use crate::ServerError;
use crate::error::{Answer, Refusal};
use crate::tokens::TokenFile;

/// Names by token, and the rule for requests without a token.
#[derive(Debug, Default)]
pub(crate) struct Identities {
    tokens: Option<TokenFile>,
    required: bool,
}

impl Identities {
    /// Reads a file of tokens. It is read again when it changes.
    pub fn load(path: Option<&Path>, required: bool) -> Result<Identities, ServerError> {
        Ok(Identities { tokens: path.map(TokenFile::read).transpose()?, required })
    }

    /// The principal of a request. `authority`: the host that the request names. `token`: its header `Authorization`.
    pub fn principal(
        &self,
        extensions: &Extensions,
        authority: Option<&str>,
        token: Option<&HeaderValue>,
    ) -> Answer<Principal> {
        let denied = |text: &str| Err(Refusal::new(ErrorKind::Denied, text));
        let Some(peer) = extensions.get::<Peer>() else {
            return denied("the peer of the connection is unknown; please report it");
        };
        let local = match &peer.origin {
            Origin::Unix { .. } => true,
            Origin::Tcp(ip) => ip.is_loopback(),
        };
        if let Some(value) = token {
            if !peer.encrypted && !local {
                return denied("tokens are taken over TLS only");
            }
            let token = value.to_str().ok().and_then(|value| value.strip_prefix("Bearer "));
            let known =
                token.zip(self.tokens.as_ref()).and_then(|(token, file)| file.principal(token.trim()));
            return match known {
                Some(principal) => Ok(principal),
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
            Origin::Tcp(_) if local && !self.required && !authority.is_none_or(names_this_machine) => {
                denied("the request was meant for another host; write 127.0.0.1 or localhost")
            }
            Origin::Tcp(_) if local && !self.required => Ok(Principal::anonymous()),
            Origin::Tcp(_) => denied(
                "this node needs to know who you are: set GRISTMILL_TOKEN or GRISTMILL_TOKEN_FILE, or use its Unix socket",
            ),
        }
    }
}

/// Whether a host is this machine. A page of another site, whose name was made to lead to this node, must not act for
/// its reader.
fn names_this_machine(host: &str) -> bool {
    let name = host
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()))
        .map_or(host, |(name, _)| name);
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine_are_told_from_others() {
        for host in
            ["localhost", "LOCALHOST:7437", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:80", "127.1.2.3:5"]
        {
            assert!(names_this_machine(host), "{host}");
        }
        for host in
            ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "10.0.0.1", "::1:x"]
        {
            assert!(!names_this_machine(host), "{host}");
        }
    }
}
