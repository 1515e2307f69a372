//! The request for one pass over the records of a node.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::bounded::at_most;
use crate::run::decode_versioned;
use crate::{
    ArraySpec, FoldPlace, InputSpec, MAX_DEPTH, MAX_FILE_TARGETS, MAX_FILES_OF_REQUEST, MAX_PARAMS,
    MAX_REQUEST_BYTES, PROTOCOL, WireError, is_processors_name,
};

/// Targets that one node folds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeShard {
    /// The address on which the node listens.
    pub address: String,
    /// Its targets, as indices in the layout of the file.
    #[serde(deserialize_with = "at_most::<_, _, MAX_FILE_TARGETS>")]
    pub targets: Vec<u32>,
}

/// The group of nodes that run several passes together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSpec {
    /// Name of the work: 32 hexadecimal digits. The client sends an empty name to rank 0, which makes a random name.
    #[serde(default)]
    pub job: String,
    /// All nodes, in the order of their ranks. The client asks rank 0.
    #[serde(deserialize_with = "at_most::<_, _, MAX_FILE_TARGETS>")]
    pub members: Vec<NodeShard>,
}

/// Longest name of a client, in bytes.
pub const MAX_ASKER_NAME: usize = 64;

/// The process of the client, which can fold records itself. Nodes bound the speeds that it states.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asker {
    /// Name of the process, at most [`MAX_ASKER_NAME`] bytes. It is the same in all requests of the process, and no
    /// other process has it.
    pub name: String,
    /// Number of threads that fold.
    pub lanes: u32,
    /// Thousandths of a processor that the threads may use, if that is less than the number of threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub millicores: Option<u32>,
    /// Bytes per second that one thread receives and folds with this kernel, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
    /// Bytes per second that its link receives, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<u64>,
    /// Name of the processors that it runs on, if known; see [`is_processors_name`](crate::is_processors_name).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<String>,
}

/// A request to fold the targets of a node and of other nodes. The node asks these, and joins their answers with its
/// own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoldRequest {
    /// Version of the protocol.
    pub gristmill: u32,
    /// The sealed grant: the file, the locations of its parts, and the principal.
    pub grant: String,
    /// Grants for further files. Their bytes follow the bytes of the first file in this order.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "at_most::<_, _, MAX_FILES_OF_REQUEST>"
    )]
    pub more: Vec<String>,
    /// Name of the kernel.
    pub kernel: String,
    /// Parameters of the kernel.
    #[serde(deserialize_with = "at_most::<_, _, MAX_PARAMS>")]
    pub params: Vec<(String, String)>,
    /// Description of the records.
    pub input: InputSpec,
    /// The request over an array, if the records are its chunks. Then `kernel` is the name of the operation, and
    /// `input` has its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<Arc<ArraySpec>>,
    /// Longest line, in bytes.
    pub max_record: u64,
    /// Targets of the node that is asked, as indices in the layout of the file.
    #[serde(deserialize_with = "at_most::<_, _, MAX_FILE_TARGETS>")]
    pub targets: Vec<u32>,
    /// Other nodes, which the node asks.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "at_most::<_, _, MAX_FILE_TARGETS>"
    )]
    pub rest: Vec<NodeShard>,
    /// Number of nodes that forwarded the request.
    #[serde(default)]
    pub depth: u32,
    /// Number of the pass.
    pub round: u32,
    /// Broadcast of the previous pass, in base64.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    shared: String,
    /// The group of nodes that finish all passes for values, if the nodes do that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<GroupSpec>,
    /// Whether this is the last of several passes: the pass that gives rows or bytes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub last: bool,
    /// The sealed grant to write a segments file, if the bytes that are made stay on the nodes and become that file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The process that folds parts that nodes hand back, begun or not. Without it, nodes hand nothing back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<Asker>,
    /// The first selected record, and the record after the last one.
    pub select: (u64, u64),
    /// Whether the folds run in the storage daemons behind a node, or on it: `osd`, `storage`, or where it is faster.
    #[serde(default, skip_serializing_if = "is_auto")]
    pub place: FoldPlace,
    /// Whether nodes may use and store statistics of chunks.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub statistics: bool,
    /// Whether all bytes are compared with their checksums, also those that were compared lately.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verify: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_auto(place: &FoldPlace) -> bool {
    *place == FoldPlace::Auto
}

const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_yes(is: &bool) -> bool {
    *is
}

impl FoldRequest {
    /// A request for pass 0 without targets and with an empty selection. The caller sets the other fields.
    pub fn new(
        grant: String,
        kernel: String,
        params: Vec<(String, String)>,
        input: InputSpec,
    ) -> FoldRequest {
        FoldRequest {
            gristmill: PROTOCOL,
            grant,
            more: Vec::new(),
            kernel,
            params,
            input,
            array: None,
            max_record: gristmill_kernel::DEFAULT_MAX_RECORD,
            targets: Vec::new(),
            rest: Vec::new(),
            depth: 0,
            round: 0,
            shared: String::new(),
            together: None,
            last: false,
            output: None,
            asker: None,
            select: (0, 0),
            place: FoldPlace::Auto,
            statistics: true,
            verify: false,
        }
    }

    /// The broadcast of the previous pass.
    ///
    /// # Errors
    /// The error is [`WireError::Malformed`] if it is not base64.
    pub fn shared(&self) -> Result<Vec<u8>, WireError> {
        STANDARD_NO_PAD.decode(&self.shared).map_err(|e| malformed(e.to_string()))
    }

    /// Sets the broadcast of the previous pass.
    pub fn set_shared(&mut self, bytes: &[u8]) {
        self.shared = STANDARD_NO_PAD.encode(bytes);
    }

    /// Encodes the request as the bytes of a ticket.
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] if the bytes are more than [`MAX_REQUEST_BYTES`], and
    /// [`WireError::Malformed`] if the request cannot be written as JSON.
    pub fn encode(&self) -> Result<Vec<u8>, WireError> {
        let bytes = serde_json::to_vec(&Envelope { fold: self }).map_err(|e| malformed(e.to_string()))?;
        if bytes.len() > MAX_REQUEST_BYTES {
            return Err(WireError::TooLong { what: "request", bytes: bytes.len(), max: MAX_REQUEST_BYTES });
        }
        Ok(bytes)
    }

    /// Decodes and checks the output of [`encode`](FoldRequest::encode). Returns `None` for another kind of ticket.
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] if the bytes are more than [`MAX_REQUEST_BYTES`], [`WireError::Version`] if
    /// the request is of another version of the protocol, and [`WireError::Malformed`] if it is not such a request or
    /// exceeds a bound.
    pub fn decode(bytes: &[u8]) -> Result<Option<FoldRequest>, WireError> {
        if bytes.len() > MAX_REQUEST_BYTES {
            return Err(WireError::TooLong { what: "request", bytes: bytes.len(), max: MAX_REQUEST_BYTES });
        }
        if !bytes.starts_with(br#"{"fold":"#) {
            return Ok(None);
        }
        let OwnedEnvelope { fold } = decode_versioned("fold request", bytes)?;
        let received = fold.gristmill;
        if received != PROTOCOL {
            return Err(WireError::Version { what: "fold request", version: received, supported: PROTOCOL });
        }
        let shards = fold.rest.len() + 1;
        let targets = fold.targets.len() + fold.rest.iter().map(|shard| shard.targets.len()).sum::<usize>();
        if fold.depth > MAX_DEPTH {
            return Err(malformed(format!(
                "it was forwarded {} times; at most {MAX_DEPTH} times are possible",
                fold.depth
            )));
        }
        if shards > MAX_FILE_TARGETS || targets > MAX_FILE_TARGETS {
            return Err(malformed(format!(
                "it has {shards} nodes and {targets} targets; at most {MAX_FILE_TARGETS} of each are possible"
            )));
        }
        if let Some(GroupSpec { job, members }) = &fold.together {
            let is_hex = job.len() == 32 && job.bytes().all(|b| b.is_ascii_hexdigit());
            let member_targets: usize = members.iter().map(|member| member.targets.len()).sum();
            if !(is_hex || job.is_empty()) || members.is_empty() || member_targets > MAX_FILE_TARGETS {
                return Err(malformed("its group has a wrong name, no members or too many targets".into()));
            }
        }
        if let Some(asker) = &fold.asker
            && (asker.name.len() > MAX_ASKER_NAME || asker.lanes == 0)
        {
            return Err(malformed(format!(
                "its client has a name of {} bytes and {} threads; at most {MAX_ASKER_NAME} bytes and at least \
                 1 thread are possible",
                asker.name.len(),
                asker.lanes
            )));
        }
        if fold
            .asker
            .iter()
            .filter_map(|asker| asker.processors.as_deref())
            .any(|name| !is_processors_name(name))
        {
            return Err(malformed("the name of the client's processors is not 16 hexadecimal digits".into()));
        }
        if fold.more.len() >= MAX_FILES_OF_REQUEST {
            return Err(malformed(format!("it has {} files, which are too many", fold.more.len() + 1)));
        }
        if fold.select.0 > fold.select.1 {
            return Err(malformed(format!("it selects records {} to {}", fold.select.0, fold.select.1)));
        }
        Ok(Some(fold))
    }
}

#[derive(Serialize)]
struct Envelope<'a> {
    fold: &'a FoldRequest,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnedEnvelope {
    fold: FoldRequest,
}

fn malformed(why: String) -> WireError {
    WireError::Malformed { what: "fold request", why }
}
