//! Bounds of messages.

/// Version of all messages. Other versions are refused.
pub const PROTOCOL: u32 = 1;

/// Longest request, in bytes: a Flight ticket or the body of an action.
pub const MAX_REQUEST_BYTES: usize = 16 << 20;

/// Longest request over an array in base64, in bytes. The rest of a request needs space too.
pub const MAX_ARRAY_SPEC_BYTES: usize = 14 << 20;

/// Most chunks of one request, stored or not.
pub const MAX_ASKED_CHUNKS: usize = 4 << 20;

/// Most files of one request.
pub const MAX_FILES_OF_REQUEST: usize = 8192;

/// Longest sealed grant, in bytes. Grants travel in a header of byte requests.
pub const MAX_GRANT_BYTES: usize = 256 << 10;

/// How long a grant is valid, in seconds. A request that runs longer must be made again.
pub const GRANT_SECONDS: u64 = 12 * 3600;

/// Most targets of a file, and of a cluster.
pub const MAX_FILE_TARGETS: usize = 1024;

/// Most nodes that a client or a node asks at once. These ask the other nodes, so that no link has more senders.
pub const FAN_IN: usize = 16;

/// Most levels of nodes that ask nodes.
pub const MAX_DEPTH: u32 = 8;

/// Longest partial of one shard, in bytes.
pub const MAX_PARTIAL_BYTES: usize = 64 << 20;

/// Parameters of a request, at most.
pub const MAX_PARAMS: usize = 64;

/// Header that carries the sealed grant of a byte request.
pub const GRANT_HEADER: &str = "x-gristmill-grant";

/// Header of a byte request. All its bytes are compared with their checksums, also those that were compared lately.
pub const VERIFY_HEADER: &str = "x-gristmill-verify";
