//! Credentials of users for storage outside the cluster. They travel with requests to the entry node, which encrypts them into grants. So
//! each node that folds has them for the time of the request, and nobody else.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use crate::{Key, WireError};

/// Header that carries credentials from a client to the entry node.
pub const SOURCE_HEADER: &str = "x-gristmill-source";

/// Most bytes of the header with credentials.
pub const MAX_ACCESS_BYTES: usize = 8 << 10;

/// Most bytes of encrypted credentials. Encryption makes them a little longer.
pub const MAX_SEALED_ACCESS_BYTES: usize = MAX_ACCESS_BYTES + 64;

/// The label of the key that encrypts credentials, which is derived from the key of a cluster. No text that is signed begins with a
/// zero byte.
const LABEL: &[u8] = b"\0credentials of sources: AES-256-GCM";

/// The access key of a user of an object store, or the name and the password of a user of a web server. It is never written to a
/// disk or a log.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceAccess {
    /// The name of the key.
    pub id: String,
    /// The secret.
    pub secret: String,
    /// The token of a session that has an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

impl fmt::Debug for SourceAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SourceAccess(..)")
    }
}

impl SourceAccess {
    /// The value of the header: JSON in base64.
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] if it is longer than [`MAX_ACCESS_BYTES`].
    pub fn to_header(&self) -> Result<String, WireError> {
        let header = URL_SAFE_NO_PAD.encode(self.json()?);
        if header.len() > MAX_ACCESS_BYTES {
            Err(too_long(header.len(), MAX_ACCESS_BYTES))
        } else {
            Ok(header)
        }
    }

    /// The credentials in a header.
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] or [`WireError::Malformed`]. It does not show the value.
    pub fn from_header(value: &[u8]) -> Result<SourceAccess, WireError> {
        if value.len() > MAX_ACCESS_BYTES {
            return Err(too_long(value.len(), MAX_ACCESS_BYTES));
        }
        let json = URL_SAFE_NO_PAD.decode(value).map_err(|_| malformed())?;
        serde_json::from_slice(&json).map_err(|_| malformed())
    }

    fn json(&self) -> Result<Vec<u8>, WireError> {
        serde_json::to_vec(self).map_err(|_| malformed())
    }
}

impl Key {
    /// Encrypts credentials for the nodes of the cluster. They can be decrypted only for the same `purpose`.
    ///
    /// ```
    /// use gristmill_wire::{Key, SourceAccess};
    ///
    /// let access = SourceAccess { id: "alice".into(), secret: "s".into(), token: None };
    /// let key = Key::random()?;
    /// let sealed = key.seal_access(&access, b"s3://bucket/x")?;
    /// assert_eq!(key.open_access(&sealed, b"s3://bucket/x")?, access);
    /// assert!(key.open_access(&sealed, b"s3://bucket/y").is_err());
    /// # Ok::<(), gristmill_wire::WireError>(())
    /// ```
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] if the text would be longer than [`MAX_SEALED_ACCESS_BYTES`], and [`WireError::Random`] if the system
    /// gives no random numbers.
    pub fn seal_access(&self, access: &SourceAccess, purpose: &[u8]) -> Result<String, WireError> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| WireError::Random)?;
        let mut text = access.json()?;
        let cipher = self.cipher()?;
        let sealed = cipher.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(purpose),
            &mut text,
        );
        sealed.map_err(|_| malformed())?;
        let sealed = URL_SAFE_NO_PAD.encode([&nonce[..], &text].concat());
        match sealed.len() {
            bytes if bytes > MAX_SEALED_ACCESS_BYTES => Err(too_long(bytes, MAX_SEALED_ACCESS_BYTES)),
            _ => Ok(sealed),
        }
    }

    /// The credentials in an encrypted text.
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] if the text is longer than [`MAX_SEALED_ACCESS_BYTES`], and [`WireError::Seal`] if this cluster did not
    /// encrypt it for this purpose.
    pub fn open_access(&self, sealed: &str, purpose: &[u8]) -> Result<SourceAccess, WireError> {
        if sealed.len() > MAX_SEALED_ACCESS_BYTES {
            return Err(too_long(sealed.len(), MAX_SEALED_ACCESS_BYTES));
        }
        let bytes = URL_SAFE_NO_PAD.decode(sealed).map_err(|_| WireError::Seal)?;
        let (nonce, text) = bytes.split_first_chunk::<NONCE_LEN>().ok_or(WireError::Seal)?;
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let json = self.cipher()?.open_in_place(nonce, Aad::from(purpose), &mut text);
        serde_json::from_slice(json.map_err(|_| WireError::Seal)?).map_err(|_| WireError::Seal)
    }

    fn cipher(&self) -> Result<LessSafeKey, WireError> {
        let key = UnboundKey::new(&AES_256_GCM, self.derive(LABEL).as_ref()).map_err(|_| malformed())?;
        Ok(LessSafeKey::new(key))
    }
}

fn too_long(bytes: usize, max: usize) -> WireError {
    WireError::TooLong { what: "credentials of a source", bytes, max }
}

fn malformed() -> WireError {
    WireError::Malformed { what: "credentials of a source", why: "they are not JSON in base64".into() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn access() -> SourceAccess {
        SourceAccess { id: "alice".into(), secret: "very secret".into(), token: Some("t".into()) }
    }

    #[test]
    fn only_the_cluster_can_read_what_it_sealed() {
        let key = Key::random().unwrap();
        let sealed = key.seal_access(&access(), b"purpose").unwrap();
        assert_eq!(key.open_access(&sealed, b"purpose").unwrap(), access());
        assert_ne!(sealed, key.seal_access(&access(), b"purpose").unwrap());
        assert!(Key::random().unwrap().open_access(&sealed, b"purpose").is_err());
        assert!(key.open_access(&sealed, b"other").is_err());
        for at in 0..sealed.len() {
            let mut other = sealed.clone().into_bytes();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            let other = String::from_utf8(other).unwrap();
            assert!(other == sealed || key.open_access(&other, b"purpose").is_err(), "{at}");
        }
        for short in ["", "A", "AAAAAAAAAAAAAAAA"] {
            assert!(matches!(key.open_access(short, b""), Err(WireError::Seal)));
        }
        assert!(key.open_access(&"A".repeat(MAX_SEALED_ACCESS_BYTES + 1), b"").is_err());
    }

    #[test]
    fn a_header_has_credentials_and_messages_have_none() {
        let header = access().to_header().unwrap();
        assert_eq!(SourceAccess::from_header(header.as_bytes()).unwrap(), access());
        assert!(!format!("{:?}", access()).contains("secret"));
        for wrong in
            ["", "e30", "!", &URL_SAFE_NO_PAD.encode("{\"id\":\"a\",\"secret\":\"very secret\",\"x\":1}")]
        {
            let error = SourceAccess::from_header(wrong.as_bytes()).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        // What passes as a header can be encrypted.
        for length in 6_000..6_200 {
            let long = SourceAccess { token: Some("x".repeat(length)), ..access() };
            assert!(long.to_header().is_err() || Key::random().unwrap().seal_access(&long, b"").is_ok());
        }
        let long = SourceAccess { token: Some("x".repeat(MAX_ACCESS_BYTES)), ..access() };
        assert!(long.to_header().is_err() && Key::random().unwrap().seal_access(&long, b"").is_err());
    }
}
