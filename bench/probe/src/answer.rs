//! What is answered, as JSON.

use std::time::Duration;

use gristmill_kernel::Value;
use serde::Serialize;

/// Integers up to this size are the same number for every reader of JSON.
const MAX_PLAIN_INT: i128 = 1 << 53;

#[derive(Default, Serialize)]
pub struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The part of `seconds` that went into opening the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_seconds: Option<f64>,
    /// The part of `seconds` in which a rank of a program read its part into memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_seconds: Option<f64>,
    pub bytes_read: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_to_client: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_between_nodes: Option<u64>,
    /// Of the bytes that were folded, those that were folded by whoever asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_folded_here: Option<u64>,
    pub peak_rss_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<RowDigest>,
    /// Seconds of every single request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<f64>,
}

/// What tells rows from other rows, without sending them.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum RowDigest {
    /// Of collected rows of 8-byte elements.
    Columns {
        count: u64,
        /// Whether each index is larger than the one before.
        ascending: bool,
        /// Sum of index times the element's bits, modulo 2^64, in decimal.
        pairs: String,
    },
    /// Of bytes in their order.
    Bytes {
        bytes: u64,
        /// In hexadecimal.
        hash: String,
    },
}

impl Answer {
    pub fn timed(elapsed: Duration, bytes_read: u64) -> Answer {
        Answer {
            seconds: Some(elapsed.as_secs_f64()),
            bytes_read,
            peak_rss_bytes: peak_rss_bytes(),
            ..Answer::default()
        }
    }

    /// An answer that says nothing yet.
    pub fn now() -> Answer {
        Answer { peak_rss_bytes: peak_rss_bytes(), ..Answer::default() }
    }

    pub fn failed(error: String) -> Answer {
        Answer { error: Some(error), peak_rss_bytes: peak_rss_bytes(), ..Answer::default() }
    }
}

/// Integers beyond 2^53 and floats that are not finite become strings.
pub fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Int(n) => match i64::try_from(*n) {
            Ok(small) if n.abs() <= MAX_PLAIN_INT => small.into(),
            _ => n.to_string().into(),
        },
        Value::Float(x) if x.is_finite() => (*x).into(),
        Value::Float(x) => x.to_string().into(),
        Value::Text(text) => text.as_str().into(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into(),
        Value::List(values) => values.iter().map(json).collect(),
        Value::Array(array) => array.values().map(|value| json(&value)).collect(),
        Value::Map(entries) => {
            entries.iter().map(|(name, value)| ((*name).to_owned(), json(value))).collect()
        }
    }
}

/// Largest resident size so far, or 0 where the system does not say.
fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
