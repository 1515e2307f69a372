//! Passes: who asks, sealed so that every node of the cluster can check it alone, and short enough for a header of any
//! request. A node reads the rest of a request only after that.
//!
//! A pass opens nothing. What may be done is said by a [`Grant`](crate::Grant), or decided by who has a token or a uid.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::{Key, WireError};

/// Header that carries a pass.
pub const PASS_HEADER: &str = "x-gristmill-pass";

/// Longest pass, in bytes.
pub const MAX_PASS_BYTES: usize = 4 << 10;

/// Who asks, and until when this holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pass {
    /// For whom.
    pub principal: String,
    /// Until when, in seconds since 1970.
    pub expires: u64,
}

impl Key {
    /// The pass as text: its JSON and the signature of that, both base64, with a dot between.
    ///
    /// # Errors
    /// [`WireError::TooLong`] for a principal with too long a name.
    pub fn seal_pass(&self, pass: &Pass) -> Result<String, WireError> {
        let json = serde_json::to_vec(pass).map_err(|e| malformed(e.to_string()))?;
        let body = URL_SAFE_NO_PAD.encode(json);
        let seal = self.sign(&signed(&body));
        let sealed = format!("{body}.{seal}");
        if sealed.len() > MAX_PASS_BYTES {
            return Err(too_long(&sealed));
        }
        Ok(sealed)
    }

    /// The pass behind a sealed text, if this cluster gave it and it has not run out at `now` (seconds since 1970).
    ///
    /// # Errors
    /// Texts that are too long or not sealed with this key, and passes that have run out.
    pub fn open_pass(&self, sealed: &str, now: u64) -> Result<Pass, WireError> {
        if sealed.len() > MAX_PASS_BYTES {
            return Err(too_long(sealed));
        }
        let (body, seal) = sealed.split_once('.').ok_or(WireError::Seal)?;
        if !self.signed(&signed(body), seal) {
            return Err(WireError::Seal);
        }
        let json = URL_SAFE_NO_PAD.decode(body).map_err(|e| malformed(e.to_string()))?;
        let pass: Pass = serde_json::from_slice(&json).map_err(|e| malformed(e.to_string()))?;
        if pass.expires < now {
            return Err(WireError::Expired);
        }
        Ok(pass)
    }
}

/// What is signed. No grant begins so, and no other text that is signed with the key of a cluster.
fn signed(body: &str) -> Vec<u8> {
    format!("pass {body}").into_bytes()
}

fn too_long(sealed: &str) -> WireError {
    WireError::TooLong { what: "pass", bytes: sealed.len(), max: MAX_PASS_BYTES }
}

fn malformed(why: String) -> WireError {
    WireError::Malformed { what: "pass", why }
}
