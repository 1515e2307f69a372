//! One pass over one node's records.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::bounded::at_most;
use crate::run::decode_versioned;
use crate::{
    ArraySpec, InputSpec, MAX_DEPTH, MAX_FILE_TARGETS, MAX_FILES_OF_REQUEST, MAX_PARAMS, MAX_REQUEST_BYTES,
    PROTOCOL, WireError, names_processors,
};

/// Targets that one node folds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeShard {
    /// Where the node listens.
    pub address: String,
    /// Its targets, as places in the file's layout.
    #[serde(deserialize_with = "at_most::<_, _, MAX_FILE_TARGETS>")]
    pub targets: Vec<u32>,
}

/// Has nodes finish several passes among themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Together {
    /// Names the work among the nodes: 32 hexadecimal digits, drawn by the node that is asked first; empty until then.
    #[serde(default)]
    pub job: String,
    /// All nodes, in the order of their ranks; the one that is asked first is rank 0.
    #[serde(deserialize_with = "at_most::<_, _, MAX_FILE_TARGETS>")]
    pub members: Vec<NodeShard>,
}

/// Longest name of an asker, in bytes.
pub const MAX_ASKER_NAME: usize = 64;

/// A process that asks, and that can fold records itself. What it says of its speed is believed within bounds only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asker {
    /// The same in all its requests, and nobody else's; at most [`MAX_ASKER_NAME`] bytes.
    pub name: String,
    /// Threads that it folds with.
    pub lanes: u32,
    /// Thousandths of a processor that they may use, where that is less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub millicores: Option<u32>,
    /// Bytes a second that one of them takes in and folds with this kernel, if it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
    /// Bytes a second that its link takes in, if it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<u64>,
    /// The processors that it runs on, if it can tell; see [`names_processors`](crate::names_processors).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<String>,
}

/// Asks a node to fold its targets, and other nodes theirs: it joins what they send back with its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoldRequest {
    /// Version of the protocol.
    pub gristmill: u32,
    /// The sealed grant: which file, where its parts are, who asks.
    pub grant: String,
    /// Grants for further files, whose bytes follow on those of the first in this order.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "at_most::<_, _, MAX_FILES_OF_REQUEST>"
    )]
    pub more: Vec<String>,
    /// The kernel's name.
    pub kernel: String,
    /// Its parameters.
    #[serde(deserialize_with = "at_most::<_, _, MAX_PARAMS>")]
    pub params: Vec<(String, String)>,
    /// What the records are.
    pub input: InputSpec,
    /// The records are chunks of an array; the kernel's name is that of the operation, and `input` says its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<Arc<ArraySpec>>,
    /// Longest line, in bytes.
    pub max_record: u64,
    /// Targets of the node that is asked, as places in the file's layout.
    #[serde(deserialize_with = "at_most::<_, _, MAX_FILE_TARGETS>")]
    pub targets: Vec<u32>,
    /// Nodes that it is to ask in turn.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "at_most::<_, _, MAX_FILE_TARGETS>"
    )]
    pub rest: Vec<NodeShard>,
    /// How many nodes have passed this on.
    #[serde(default)]
    pub depth: u32,
    /// Number of the pass.
    pub round: u32,
    /// What the pass before broadcast, base64.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    shared: String,
    /// All passes for values are to be finished among these nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<Together>,
    /// Whether it is the last of several passes: the one that gives rows or bytes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub last: bool,
    /// The bytes that are made stay on the nodes: the sealed grant to write the segments file that they become.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Who takes the parts of nodes over that hand them back, begun or not; nothing may be handed back without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<Asker>,
    /// First record wanted, and the one after the last.
    pub select: (u64, u64),
    /// Whether nodes may use, and keep, statistics of chunks.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub statistics: bool,
    /// Whether all bytes are compared with their checksums, also those that were compared lately.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verify: bool,
}

const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_yes(is: &bool) -> bool {
    *is
}

/// What of a request stays the same from pass to pass and from node to node.
impl FoldRequest {
    /// A request of pass 0 with nothing folded anywhere yet; fill in the rest.
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
            statistics: true,
            verify: false,
        }
    }

    /// What the pass before broadcast.
    ///
    /// # Errors
    /// The error is [`WireError::Malformed`] if it is no base64.
    pub fn shared(&self) -> Result<Vec<u8>, WireError> {
        STANDARD_NO_PAD.decode(&self.shared).map_err(|e| malformed(e.to_string()))
    }

    /// Sets what the pass before broadcast.
    pub fn set_shared(&mut self, bytes: &[u8]) {
        self.shared = STANDARD_NO_PAD.encode(bytes);
    }

    /// As the bytes of a ticket.
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

    /// Reads and checks what [`encode`](FoldRequest::encode) wrote; `None` if it is another kind of ticket.
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] if the bytes are more than [`MAX_REQUEST_BYTES`], [`WireError::Version`] if
    /// the request is of another version of the protocol, and [`WireError::Malformed`] if it is no such request or
    /// passes a bound.
    pub fn decode(bytes: &[u8]) -> Result<Option<FoldRequest>, WireError> {
        if bytes.len() > MAX_REQUEST_BYTES {
            return Err(WireError::TooLong { what: "request", bytes: bytes.len(), max: MAX_REQUEST_BYTES });
        }
        if !bytes.starts_with(br#"{"fold":"#) {
            return Ok(None);
        }
        let Owned { fold } = decode_versioned("fold request", bytes)?;
        let version = fold.gristmill;
        if version != PROTOCOL {
            return Err(WireError::Version { what: "fold request", given: version, speaks: PROTOCOL });
        }
        let shards = fold.rest.len() + 1;
        let targets = fold.targets.len() + fold.rest.iter().map(|shard| shard.targets.len()).sum::<usize>();
        if fold.depth > MAX_DEPTH {
            return Err(malformed(format!(
                "passed on {} times; at most {MAX_DEPTH} are possible",
                fold.depth
            )));
        }
        if shards > MAX_FILE_TARGETS || targets > MAX_FILE_TARGETS {
            return Err(malformed(format!("{shards} nodes and {targets} targets are too many")));
        }
        if let Some(Together { job, members }) = &fold.together {
            let hex = job.len() == 32 && job.bytes().all(|b| b.is_ascii_hexdigit());
            let named: usize = members.iter().map(|member| member.targets.len()).sum();
            if !(hex || job.is_empty()) || members.is_empty() || named > MAX_FILE_TARGETS {
                return Err(malformed("members of a group that cannot be".into()));
            }
        }
        if let Some(asker) = &fold.asker
            && (asker.name.len() > MAX_ASKER_NAME || asker.lanes == 0)
        {
            return Err(malformed(format!(
                "an asker with a name of {} bytes and {} threads",
                asker.name.len(),
                asker.lanes
            )));
        }
        if fold
            .asker
            .iter()
            .filter_map(|asker| asker.processors.as_deref())
            .any(|name| !names_processors(name))
        {
            return Err(malformed("an asker on processors whose name is not 16 hexadecimal digits".into()));
        }
        if fold.more.len() >= MAX_FILES_OF_REQUEST {
            return Err(malformed(format!("it is about {} files", fold.more.len() + 1)));
        }
        if fold.select.0 > fold.select.1 {
            return Err(malformed(format!("records {} to {}", fold.select.0, fold.select.1)));
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
struct Owned {
    fold: FoldRequest,
}

fn malformed(why: String) -> WireError {
    WireError::Malformed { what: "fold request", why }
}
