//! A request to run a kernel over a file by path. Any Flight client can send it.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::bounded::map_of_at_most;
use crate::{InputSpec, MAX_PARAMS, MAX_REQUEST_BYTES, PROTOCOL, Param, WireError};

/// The place where folds run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FoldPlace {
    /// On the storage nodes.
    Storage,
    /// At the client, which reads the bytes.
    Client,
    /// In the storage daemons of Ceph, which hold the objects of the nodes.
    Osd,
    /// On the storage nodes unless they would move more than a plain read, and in storage daemons that can fold.
    #[default]
    Auto,
}

/// A request by path as JSON: `{"gristmill": 1, "kernel": "sum", "path": "/data.f64", "type": "f64"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// Version of the protocol: 1.
    pub gristmill: u32,
    /// The kernel's name.
    pub kernel: String,
    /// The file.
    pub path: String,
    /// Type of the elements. Without it the file is text.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<String>,
    /// Bytes of a record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<u64>,
    /// Bytes before the first record.
    #[serde(default)]
    pub skip: u64,
    /// Whether the elements are big-endian.
    #[serde(default)]
    pub big_endian: bool,
    /// First byte of a range and its length, or null for the rest of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(u64, Option<u64>)>,
    /// Parameters by name.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "map_of_at_most::<_, _, MAX_PARAMS>"
    )]
    pub params: BTreeMap<String, Param>,
    /// The place where folds run.
    #[serde(default)]
    pub place: FoldPlace,
}

impl RunRequest {
    /// Reads and checks a request.
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] if the bytes are more than [`MAX_REQUEST_BYTES`], [`WireError::Version`] if
    /// the request is of another version of the protocol, and [`WireError::Malformed`] if it is not such a request.
    pub fn decode(bytes: &[u8]) -> Result<RunRequest, WireError> {
        if bytes.len() > MAX_REQUEST_BYTES {
            return Err(WireError::TooLong { what: "request", bytes: bytes.len(), max: MAX_REQUEST_BYTES });
        }
        let request: RunRequest = decode_versioned("request", bytes)?;
        if request.gristmill != PROTOCOL {
            let version = request.gristmill;
            return Err(WireError::Version { what: "request", version, supported: PROTOCOL });
        }
        Ok(request)
    }

    /// The description of the records.
    pub fn input(&self) -> InputSpec {
        InputSpec {
            dtype: self.dtype.clone(),
            record: self.record,
            skip: self.skip,
            big_endian: self.big_endian,
        }
    }

    /// The parameters as text.
    pub fn params(&self) -> Vec<(String, String)> {
        self.params.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect()
    }
}

/// Reads JSON. A message of another version may have other fields, so the error names the version.
pub(crate) fn decode_versioned<T: DeserializeOwned>(
    what: &'static str,
    bytes: &[u8],
) -> Result<T, WireError> {
    #[derive(Deserialize)]
    struct Version {
        gristmill: Option<u32>,
        fold: Option<Box<Version>>,
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let message = serde_json::from_slice::<Version>(bytes).ok();
        let version = message.and_then(|v| v.gristmill.or_else(|| v.fold.and_then(|fold| fold.gristmill)));
        match version {
            Some(version) if version != PROTOCOL => WireError::Version { what, version, supported: PROTOCOL },
            _ => WireError::Malformed { what, why: error.to_string() },
        }
    })
}
