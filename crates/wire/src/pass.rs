//! Passes: sealed names of principals. Every node of the cluster can check a pass alone, and it is short enough for a
//! header of any request. A node reads the rest of a request only after it checked the pass.
//!
//! A pass gives no rights. Rights come from a [`Grant`](crate::Grant), or from a token or a uid.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::{Key, WireError};

/// Header that carries a pass.
pub const PASS_HEADER: &str = "x-gristmill-pass";

/// Longest pass, in bytes.
pub const MAX_PASS_BYTES: usize = 4 << 10;

/// The principal of a request, and a time limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pass {
    /// The principal.
    pub principal: String,
    /// The last second in which the pass is valid, in seconds since 1970.
    pub expires: u64,
}

impl Key {
    /// The pass as text: its JSON and the signature of the JSON, both base64, with a dot between.
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] if the text would be longer than [`MAX_PASS_BYTES`], and
    /// [`WireError::Malformed`] if the pass cannot be written as JSON.
    pub fn seal_pass(&self, pass: &Pass) -> Result<String, WireError> {
        let json = serde_json::to_vec(pass).map_err(|e| malformed(e.to_string()))?;
        let body = URL_SAFE_NO_PAD.encode(json);
        let seal = self.sign(&signed_text(&body));
        let sealed = format!("{body}.{seal}");
        if sealed.len() > MAX_PASS_BYTES {
            return Err(too_long(&sealed));
        }
        Ok(sealed)
    }

    /// The pass in a sealed text. `now`: seconds since 1970.
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] if the text is longer than [`MAX_PASS_BYTES`], [`WireError::Seal`] if it is
    /// not sealed with this key, [`WireError::Expired`] if the pass has expired, and [`WireError::Malformed`] if the
    /// sealed text is not a pass.
    pub fn open_pass(&self, sealed: &str, now: u64) -> Result<Pass, WireError> {
        if sealed.len() > MAX_PASS_BYTES {
            return Err(too_long(sealed));
        }
        let (body, seal) = sealed.split_once('.').ok_or(WireError::Seal)?;
        if !self.verify(&signed_text(body), seal) {
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

/// The text that is signed. No grant, and no other text that is signed with the key of a cluster, begins with `pass`.
fn signed_text(body: &str) -> Vec<u8> {
    format!("pass {body}").into_bytes()
}

fn too_long(sealed: &str) -> WireError {
    WireError::TooLong { what: "pass", bytes: sealed.len(), max: MAX_PASS_BYTES }
}

fn malformed(why: String) -> WireError {
    WireError::Malformed { what: "pass", why }
}
