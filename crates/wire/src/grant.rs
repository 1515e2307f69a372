//! Grants: signed permissions for one file. Every node of the cluster can check a grant alone.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use crate::{FileMap, MAX_GRANT_BYTES, Pass, WireError};

/// What a grant allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rights {
    /// Reading the objects, and folds over them.
    Read,
    /// Creating and writing objects that are not complete yet.
    Write,
    /// Removing objects and asking for their state. Only the entry node has this right.
    Manage,
}

/// The rights of a principal on a file, and a time limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The principal.
    pub principal: String,
    /// Rights of the principal.
    pub rights: Rights,
    /// The file with its versions.
    pub file: FileMap,
    /// The last second in which the grant is valid, in seconds since 1970.
    pub expires: u64,
}

/// The key of a cluster. With it anybody can make grants, so it never leaves the nodes.
#[derive(Clone)]
pub struct Key(hmac::Key);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

/// Bytes of a key.
const KEY_BYTES: usize = 32;

impl Key {
    /// A key of 32 bytes.
    pub fn from_bytes(bytes: &[u8; KEY_BYTES]) -> Key {
        Key(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// A random key, which cannot be saved.
    ///
    /// # Errors
    /// The error is [`WireError::Random`] if the system gives no random numbers.
    pub fn random() -> Result<Key, WireError> {
        Ok(Key::from_bytes(&Key::random_bytes()?))
    }

    /// Bytes for a new key.
    ///
    /// # Errors
    /// The error is [`WireError::Random`] if the system gives no random numbers.
    pub fn random_bytes() -> Result<[u8; KEY_BYTES], WireError> {
        let mut bytes = [0; KEY_BYTES];
        SystemRandom::new().fill(&mut bytes).map_err(|_| WireError::Random)?;
        Ok(bytes)
    }

    /// Reads the 64 hexadecimal digits of a key file.
    pub fn from_hex(text: &str) -> Option<Key> {
        let text = text.trim();
        // `from_str_radix` alone accepts signs.
        if text.len() != 2 * KEY_BYTES || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let mut bytes = [0; KEY_BYTES];
        for (n, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * n..2 * n + 2)?, 16).ok()?;
        }
        Some(Key::from_bytes(&bytes))
    }

    /// A key for another purpose, which tells nothing about this one.
    pub(crate) fn derive(&self, label: &[u8]) -> hmac::Tag {
        hmac::sign(&self.0, label)
    }

    /// Signs a message, as URL-safe base64 of HMAC-SHA256.
    pub fn sign(&self, message: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(hmac::sign(&self.0, message))
    }

    /// Whether [`sign`](Key::sign) gave this signature for this message.
    pub fn verify(&self, message: &[u8], signature: &str) -> bool {
        URL_SAFE_NO_PAD.decode(signature).is_ok_and(|tag| hmac::verify(&self.0, message, &tag).is_ok())
    }

    /// The grant as text: its JSON, the signature of the JSON, and the [`Pass`] of the principal, with dots between.
    /// JSON and signature are in base64.
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] if the text would be longer than [`MAX_GRANT_BYTES`] or the name of the
    /// principal is too long for a pass, and [`WireError::Malformed`] if the grant cannot be written as JSON.
    pub fn seal(&self, grant: &Grant) -> Result<String, WireError> {
        let json = serde_json::to_vec(grant).map_err(|e| malformed(e.to_string()))?;
        let body = URL_SAFE_NO_PAD.encode(json);
        let seal = self.sign(body.as_bytes());
        let pass = self.seal_pass(&Pass { principal: grant.principal.clone(), expires: grant.expires })?;
        let sealed = format!("{body}.{seal}.{pass}");
        if sealed.len() > MAX_GRANT_BYTES {
            return Err(WireError::TooLong { what: "grant", bytes: sealed.len(), max: MAX_GRANT_BYTES });
        }
        Ok(sealed)
    }

    /// Whether this cluster sealed the text. The grant is not read.
    pub fn is_sealed(&self, sealed: &str) -> bool {
        sealed.len() <= MAX_GRANT_BYTES
            && parts(sealed).is_some_and(|(body, seal)| self.verify(body.as_bytes(), seal))
    }

    /// The grant in a sealed text. `now`: seconds since 1970.
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] if the text is longer than [`MAX_GRANT_BYTES`], [`WireError::Seal`] if this
    /// cluster did not give it or its pass names another principal, [`WireError::Expired`] if it has expired, and
    /// [`WireError::Malformed`] if the sealed text is not a grant for a possible file.
    pub fn open(&self, sealed: &str, now: u64) -> Result<Grant, WireError> {
        if sealed.len() > MAX_GRANT_BYTES {
            return Err(WireError::TooLong { what: "grant", bytes: sealed.len(), max: MAX_GRANT_BYTES });
        }
        if !self.is_sealed(sealed) {
            return Err(WireError::Seal);
        }
        let (body, _) = parts(sealed).ok_or(WireError::Seal)?;
        let json = URL_SAFE_NO_PAD.decode(body).map_err(|e| malformed(e.to_string()))?;
        let grant: Grant = serde_json::from_slice(&json).map_err(|e| malformed(e.to_string()))?;
        grant.file.check()?;
        let pass = pass_of(sealed).ok_or(WireError::Seal)?;
        if self.open_pass(pass, now)?.principal != grant.principal {
            return Err(WireError::Seal);
        }
        if grant.expires < now {
            return Err(WireError::Expired);
        }
        Ok(grant)
    }
}

/// The JSON and the signature of a sealed grant.
fn parts(sealed: &str) -> Option<(&str, &str)> {
    let mut parts = sealed.splitn(3, '.');
    Some((parts.next()?, parts.next()?))
}

/// The pass in a sealed grant. It goes into a header of the request that contains the grant.
pub fn pass_of(sealed: &str) -> Option<&str> {
    sealed.splitn(3, '.').nth(2)
}

fn malformed(why: String) -> WireError {
    WireError::Malformed { what: "grant", why }
}
