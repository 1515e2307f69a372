//! Principal of a request: the user of a Unix socket, the user of a token or of credentials of storage, or
//! any user of this machine.

use std::path::Path;

use gristmill_namespace::Principal;
use gristmill_runtime::ErrorKind;
use gristmill_transport::{Origin, Peer};
use http::{Extensions, HeaderValue};

use crate::ServerError;
use crate::error::{Answer, Refusal};
use crate::tokens::{SourceUsersFile, TokenFile};

/// The credentials of a request.
#[derive(Clone, Copy)]
pub(crate) enum Credentials<'a> {
    /// Nothing.
    None,
    /// The value of the header `Authorization`.
    Token(&'a HeaderValue),
    /// The Basic credentials of storage that a request names, as the header has them behind `Basic `.
    Source(&'a [u8]),
}

/// Names by token and by credentials of storage, and the rule for requests without them.
#[derive(Debug, Default)]
pub(crate) struct Identities {
    tokens: Option<TokenFile>,
    source_users: Option<SourceUsersFile>,
    required: bool,
}

impl Identities {
    /// Reads the files of tokens and of users of storage. They are read again when they change.
    ///
    /// # Errors
    /// Returns an error if others may read a file, or if it is malformed.
    pub fn load(
        tokens: Option<&Path>,
        source_users: Option<&Path>,
        required: bool,
    ) -> Result<Identities, ServerError> {
        let tokens = tokens.map(TokenFile::read).transpose()?;
        let source_users = source_users.map(SourceUsersFile::read).transpose()?;
        Ok(Identities { tokens, source_users, required })
    }

    /// Whether Basic credentials of storage identify a user, as the header has them behind `Basic `.
    pub fn are_listed(&self, basic: &[u8]) -> bool {
        self.source_users.as_ref().is_some_and(|file| file.principal(basic).is_some())
    }

    /// The principal of a request. `authority`: the host that the request names.
    ///
    /// # Errors
    /// It is a refusal if nothing tells who sends the request, if its token is not known, or if a secret came without TLS from
    /// another machine.
    pub fn principal(
        &self,
        extensions: &Extensions,
        authority: Option<&str>,
        credentials: Credentials<'_>,
    ) -> Answer<Principal> {
        let denied = |text: &str| Err(Refusal::new(ErrorKind::Denied, text));
        let Some(peer) = extensions.get::<Peer>() else {
            return denied("the peer of the connection is unknown; please report it");
        };
        let local = match &peer.origin {
            Origin::Unix { .. } => true,
            Origin::Tcp(ip) => ip.is_loopback(),
        };
        if let Credentials::Token(value) = credentials {
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
        let mut unknown = "";
        if let Credentials::Source(basic) = credentials {
            match self.source_users.as_ref().and_then(|file| file.principal(basic)) {
                Some(_) if !peer.encrypted && !local => {
                    return denied("credentials identify users over TLS only");
                }
                Some(principal) => return Ok(principal),
                None => unknown = ", or ask its administrator to list your credentials (--source-users)",
            }
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
            Origin::Tcp(_) => denied(&format!(
                "this node needs to know who you are: set GRISTMILL_TOKEN or GRISTMILL_TOKEN_FILE, or use its Unix \
                 socket{unknown}"
            )),
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
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::PermissionsExt;

    use base64::Engine;

    use super::*;

    #[test]
    fn secrets_identify_users_over_tls_and_on_this_machine_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, line: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, line).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            path
        };
        let pair = "KEY:secret:of-sixteen-characters";
        let digest = ring::digest::digest(&ring::digest::SHA256, pair.as_bytes());
        let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
        let tokens = file("tokens", "bob token-of-bob-1234567");
        let users = file("users", &format!("alice {hex}"));
        let identities = Identities::load(Some(&tokens), Some(&users), true).unwrap();
        let token = HeaderValue::from_static("Bearer token-of-bob-1234567");
        let basic = base64::engine::general_purpose::STANDARD.encode(pair);
        let who = |origin: &str, encrypted: bool, credentials: Credentials<'_>| {
            let mut extensions = Extensions::new();
            extensions.insert(Peer { origin: Origin::Tcp(origin.parse().unwrap()), encrypted });
            let found = identities.principal(&extensions, Some("node"), credentials);
            found.map(|principal| principal.to_string()).map_err(|refusal| refusal.0.message)
        };
        for (credentials, name) in
            [(Credentials::Token(&token), "bob"), (Credentials::Source(basic.as_bytes()), "alice")]
        {
            assert_eq!(who("10.0.0.9", true, credentials).as_deref(), Ok(name));
            assert_eq!(who("127.0.0.1", false, credentials).as_deref(), Ok(name));
            assert!(who("10.0.0.9", false, credentials).is_err_and(|text| text.contains("over TLS only")));
        }
        for unknown in [&b"!"[..], b"", b"S0VZ"] {
            let refused = who("10.0.0.9", true, Credentials::Source(unknown));
            assert!(refused.is_err_and(|text| text.contains("list your credentials")));
        }
        assert!(who("10.0.0.9", true, Credentials::None).is_err_and(|text| text.contains("who you are")));
    }

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
