//! Bounds of a node: requests, memory, threads and times.

use std::time::Duration;

use gristmill_wire::{GRANT_SECONDS, MAX_PARTIAL_BYTES, MAX_REQUEST_BYTES};

/// Most levels of directories of a target whose permissions are changed. A store has four.
pub const MAX_TARGET_LEVELS: u32 = 16;

/// Most folds for a value that run at once; more wait for their turn. They wait without a thread: threads are for
/// running work, and for [`open`](gristmill_wire::action::names::OPEN) and reads, which must not wait for folds.
pub const MAX_FOLDS: usize = 8;

/// Most folds for a value of one principal, running or waiting; more are refused as busy. There are a third more places
/// for others: [`PLACES_FOR_EACH_FREE`].
pub const MAX_WAITING: usize = 4096;

/// Most places of a kind that a principal may have for each free one: alone three quarters of all. So the next
/// principal finds some, and the principal after it too.
pub const PLACES_FOR_EACH_FREE: usize = 3;

/// Most folds for a value that wait for other nodes at once, for each level of forwarded requests; more wait for their
/// turn. Each has a thread. A level waits only for the levels below it, so nodes never wait for each other in a circle.
pub const MAX_RELAYS: usize = 32;

/// Most folds for rows of one principal at once; more are refused as busy. There are a third more places for others.
/// Such folds never wait for each other, since a reader needs the rows of several nodes together.
pub const MAX_ROW_FOLDS: usize = 128;

/// Most requests by path that the entry node coordinates at once; more wait.
pub const MAX_RUNS: usize = 64;

/// Most requests by path of one principal, running or waiting; more are refused as busy. There are a third more places
/// for others: [`PLACES_FOR_EACH_FREE`].
pub const MAX_WAITING_RUNS: usize = 1024;

/// Most objects that one principal writes at once, and, on the entry node, whole files that it sends over HTTP; more
/// are refused as busy. There are a third more places for others. It is half of the connections of a port, so that the
/// other half is free for other requests.
pub const MAX_UPLOADS: usize = gristmill_transport::MAX_CONNECTIONS / 2;

/// Most whole files that one principal sends to the entry node over HTTP at once. Each has a connection, and another
/// one for its objects on the entry node.
pub const MAX_FILE_UPLOADS: usize = MAX_UPLOADS / 4;

/// Most whole files that one principal reads over HTTP at once, by path; more are refused as busy. There are a third
/// more places for others.
pub const MAX_FILE_READS: usize = MAX_UPLOADS / 4;

/// Most connections of one principal; requests on one more are refused as busy, and it is closed first if another
/// client waits. There are a third more for others: [`MAX_CONNECTIONS`](gristmill_transport::MAX_CONNECTIONS) in total.
pub const MAX_CONNECTIONS_OF_ONE: usize = gristmill_transport::MAX_CONNECTIONS / 4 * 3;

/// Number of all places of a kind, if one principal alone may have `of_one`.
pub(crate) const fn all_places(of_one: usize) -> usize {
    of_one + of_one / PLACES_FOR_EACH_FREE
}

/// Most threads for work that may wait for a disk or for other nodes. There is one for each request with a place of its
/// kind, and one for each connection, so that one kind of work that waits cannot take the threads of another. Threads
/// are created when they are needed.
pub const MAX_BLOCKING_THREADS: usize = gristmill_transport::MAX_CONNECTIONS
    + MAX_ACTIONS
    + MAX_FOLDS
    + MAX_RELAYS * gristmill_wire::MAX_DEPTH as usize
    + MAX_RUNS
    + 2 * all_places(MAX_ROW_FOLDS)
    + 2 * all_places(MAX_GROUP_WORK)
    + all_places(MAX_REDUCTIONS)
    + THREADS_OF_NODE;

/// Threads among [`MAX_BLOCKING_THREADS`] for the node's own work: removal of objects, recovery, and books of
/// statistics.
const THREADS_OF_NODE: usize = 64;

/// Most removed objects that a node remembers while a grant could still write them. Each takes about 150 bytes.
pub const MAX_REMOVED: usize = 65_536;

/// Most reductions of single chunks of one principal at once; more are refused as busy. There are a third more places for
/// others. Each has a thread while it waits for its source, and while it is computed.
pub const MAX_REDUCTIONS: usize = 128;

/// Most chunks that are reduced at once; more wait for their turn.
pub const MAX_REDUCING: usize = 8;

/// Bytes of memory for the chunks that requests reduce, stored and decoded, and for their answers.
pub const REDUCTION_MEMORY: usize = 768 << 20;

/// Longest wait of a reduction for room in [`REDUCTION_MEMORY`] before its client must try again. Clients send many requests
/// at once, and some never try again.
pub const REDUCTION_PATIENCE: Duration = Duration::from_secs(60);

/// Longest time in which the bytes of a chunk are read from their source.
pub const CHUNK_TIME: Duration = Duration::from_secs(120);

/// Longest request for the reduction of a chunk, in bytes.
pub const MAX_REDUCTION_BODY: usize = 64 << 10;

/// Most steps of scrubs of one principal, running or waiting; more are refused as busy. There are a third more places
/// for others.
pub const MAX_SCRUBS: usize = 64;

/// Most steps of `fsck` of one principal, running or waiting; more are refused as busy. There are a third more places
/// for others.
pub const MAX_FSCKS: usize = 64;

/// Most requests of one principal whose passes this node finishes together with other nodes at once; more are refused
/// as busy, since nodes that waited for places could wait for each other for ever. There are a third more places for
/// others. Each request has two threads.
pub const MAX_GROUP_WORK: usize = 64;

/// Most values that may wait for a member: of the current exchange and of the next one, each from at most 12 members.
pub const MAX_EARLY: usize = 32;

/// Most bytes of larger values that wait for their members.
pub const COLLECTIVE_MEMORY: usize = 256 << 20;

/// Longest wait of a larger value for room in [`COLLECTIVE_MEMORY`] before its sender must try again.
pub const ROOM_TIME: Duration = Duration::from_secs(2);

/// Time for which a failed job is remembered, so that other members can ask for the reason.
pub const REMEMBERED: Duration = Duration::from_secs(60);
/// Most failed jobs that are remembered.
pub const MAX_GONE: usize = 1024;

/// Time after which a waiting member checks again whether it must ask others, or was stopped.
pub const MEMBER_TICK: Duration = Duration::from_millis(100);

/// Longest time for which a value may wait for memory at its receiver.
pub const VALUE_TIME: Duration = Duration::from_secs(60);

/// Time after which a value is sent again to a node that did not take it.
pub const TELL_AGAIN: Duration = Duration::from_millis(20);

/// Bytes of rows that a lane collects before it passes them on.
pub const ROW_BYTES: usize = 128 << 10;

/// Most bytes of rows that the lanes of a fold are ahead of the network.
pub const ROWS_AHEAD: usize = 4 << 20;

/// Longest time in which a client reads nothing of the rows that wait for it: as for a connection.
pub const ROWS_STALL: Duration = gristmill_transport::CLIENT_STALL;

/// Bytes of a fold's output that are collected before they are written to this node's object.
pub const KEEP_BYTES: usize = 1 << 20;

/// Bytes of memory for gRPC requests: bytes that arrived, decoded requests, and waiting answers.
pub const REQUEST_MEMORY: usize = 512 << 20;

/// Fewest bytes of [`REQUEST_MEMORY`] for each request.
pub const REQUEST_BYTES: usize = 32 << 10;

/// Longest body of a gRPC request, in bytes: the request with the headers of gRPC and Flight.
pub const MAX_BODY_BYTES: usize = MAX_REQUEST_BYTES + (128 << 10);

/// Bytes of [`REQUEST_MEMORY`] for each byte of a request while it is decoded: its texts, and the decoded table.
pub const READ_FACTOR: usize = 12;

/// Longest request, in bytes, that is decoded on a thread of the network; longer ones have a thread of their own.
pub const READ_AT_ONCE: usize = 64 << 10;

/// Divisor of the memory of the machine, or of the control group: this part is for chunks that folds decode. A lane
/// begins once there is memory for all chunks that it decodes. If there is little, only one lane of a fold begins. Only
/// one lane of a principal at a time has chunks that need more than three quarters of it. Several nodes may share a
/// machine.
pub const DECODE_SHARE: u64 = 8;
/// Fewest bytes of memory for chunks that folds decode; see [`DECODE_SHARE`].
pub const MIN_DECODE_MEMORY: usize = 256 << 20;

/// Most folds and requests by path that are checked at normal priority at once, before they have a turn; more wait,
/// without a thread. Each check has a thread that is not one of [`MAX_BLOCKING_THREADS`].
pub const MAX_CHECKS: usize = 8;

/// Most checks that begin at low priority at once, because their principals have used their time; more wait.
pub const MAX_LOW_CHECKS: usize = 4;

/// Most checks that go on with low priority without a turn after they have used their time. More keep their turns.
pub const MAX_LOWERED_CHECKS: usize = 64;

/// Most actions that are answered at once; more wait, without a thread.
pub const MAX_ACTIONS: usize = 64;

/// Bytes of [`REQUEST_MEMORY`] for each byte of a request after it was decoded.
pub const KEPT_FACTOR: usize = 4;

/// Bytes of [`REQUEST_MEMORY`] for a page of a listing.
pub const PAGE_BYTES: usize = 1 << 20;

/// Most bytes of a partial in one frame.
pub const PARTIAL_STRETCH: usize = 1 << 20;

/// Most frames of a fold that wait for the network.
pub const FRAMES_WAITING: usize = 256;

/// Most batches of rows of a request by path that wait for the network.
pub const BATCHES_WAITING: usize = 2;

/// Most bytes of frames of a fold that wait for the network, unless one frame has more.
pub const FRAME_BYTES_WAITING: usize = 1 << 20;

/// Time after which a working node sends a sign of life.
pub const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// Most extents of one message.
pub const MAX_EXTENTS: usize = 4096;

/// Most bytes of the answer to one message of extents.
pub const MAX_EXTENT_BYTES: u64 = 64 << 20;

/// Longest time without bytes in the upload of a whole file over HTTP.
pub const UPLOAD_STALL: Duration = Duration::from_secs(300);

/// Longest time without bytes in the upload of an object: as long as its grant is valid. It ends sooner if the lease of
/// its put is not renewed ([`PUT_LEASE`]), because the entry node then removes the object.
pub const OBJECT_STALL: Duration = Duration::from_secs(GRANT_SECONDS);

/// Longest time for the body of any other request. A gRPC request of [`MAX_BODY_BYTES`] arrives at 290 kB/s or faster.
pub const BODY_TIME: Duration = Duration::from_secs(60);

/// Longest time for which an object that is sent again waits for the end of its earlier connection.
pub const CUT_SEEN: Duration = Duration::from_secs(2);

/// Longest time between renewals of a put.
pub const PUT_LEASE: Duration = Duration::from_secs(60);

/// Time between heartbeats of a storage node to the entry node.
pub const HEARTBEAT: Duration = Duration::from_secs(5);

/// Longest time without a heartbeat after which files that name no targets are put on other nodes.
pub const SILENCE: Duration = Duration::from_secs(20);

/// Longest time for which a starting node tries to reach the entry node.
pub const JOIN_TIMEOUT: Duration = Duration::from_secs(30);

/// Largest age of the message of a joining node, in seconds. Clocks of nodes may differ by this much.
pub const JOIN_AGE: u64 = 300;

/// Most removed files in one round of removing their objects.
pub const COLLECT_AT_ONCE: usize = 256;

/// Time between rounds of removing the objects of removed files.
pub const COLLECT_EVERY: Duration = Duration::from_secs(10);

/// Most files whose objects are removed at the same time.
pub const CLEAR_AT_ONCE: usize = 16;

/// Longest file of tokens, and of users of storage, in bytes.
pub const MAX_TOKENS_BYTES: u64 = 1 << 20;

/// Shortest token, and shortest secret of storage that identifies a user, in bytes.
pub const MIN_TOKEN_BYTES: usize = 16;

/// Shortest time between checks for a change of the files of tokens and of users.
pub const FILE_LOOK: Duration = Duration::from_secs(1);

/// Age of the last change of these files from which the next change surely has another time.
pub const FILE_SETTLED: Duration = Duration::from_secs(2);

/// Longest time for which a node that stops waits for running requests.
pub const STOP_GRACE: Duration = Duration::from_secs(5);

/// Most bytes of answers to messages of extents in memory at once; more messages wait.
pub const EXTENT_MEMORY: usize = 128 << 20;

/// Longest wait of a message of extents for room in [`EXTENT_MEMORY`] before its sender must try again.
pub const EXTENT_TIME: Duration = Duration::from_secs(5);

/// Most bytes of answers of folds for values in memory until their clients have read them. More answers wait, and keep
/// the turns of their folds meanwhile.
pub const ANSWER_MEMORY: usize = 128 << 20;
const _: () = assert!(
    MAX_PARTIAL_BYTES <= ANSWER_MEMORY / (PLACES_FOR_EACH_FREE + 1) * PLACES_FOR_EACH_FREE,
    "the largest partial must fit, or it would wait for ever"
);
const _: () = assert!(
    MAX_EXTENT_BYTES as usize <= EXTENT_MEMORY / (PLACES_FOR_EACH_FREE + 1) * PLACES_FOR_EACH_FREE,
    "the largest answer must fit, or it would wait for ever"
);

/// Longest wait of an answer for room in [`ANSWER_MEMORY`] before its client must try again. It is long because the
/// work would be lost, and because the answers before it are read or dropped.
pub const ANSWER_TIME: Duration = Duration::from_secs(3600);

/// Longest answer, in bytes, that needs no room in [`ANSWER_MEMORY`].
pub const FREE_ANSWER_BYTES: usize = 64 << 10;

/// Longest time in which a client reads nothing of an answer that has room in [`ANSWER_MEMORY`], since others wait for
/// the room.
pub const ANSWER_STALL: Duration = Duration::from_secs(60);

/// Most attached trees that a node keeps open.
pub const MAX_OPEN_TREES: usize = 64;

/// Time after which the entry node asks again which nodes reach an attached tree.
pub const SEE_AGAIN: Duration = Duration::from_secs(30);

/// Time for which the entry node remembers that it does not reach an attached tree.
pub const SEE_FAILED: Duration = Duration::from_secs(5);

/// Longest wait of a request for the first answer about an attached tree, which another request asked for.
pub const SEE_PATIENCE: Duration = Duration::from_secs(10);

/// Longest wait of the entry node for the answer of a node whether it reaches an attached tree.
pub const SEE_TIME: Duration = Duration::from_secs(5);

/// Smallest stripe unit of a file of an attached tree, in bytes.
pub const MIN_TREE_STRIPE: u64 = 8 << 20;

/// Most stripes of a file of an attached tree.
pub const MAX_TREE_STRIPES: u64 = 16_384;

/// Shortest stripe of a file of a mount that is dealt to the nodes near it, in bytes.
pub const MIN_LOCATED_UNIT: u64 = 64 << 10;

/// Most targets in the cycle of such a file, unless its file system has more hosts in one.
pub const MAX_NEAR_CYCLE: usize = 512;

/// Most stripes of such a file if one request opens several files, or the stripes that it would have otherwise if they are more.
pub const MAX_NEAR_STRIPES: u64 = 128;

/// Longest wait for an answer of the program that tells where files of mounts lie (`--locate`).
pub const LOCATE_TIME: Duration = Duration::from_secs(2);

/// Longest time in which one message of a client asks the program of `--locate`. Its further files are dealt to all nodes in turn.
pub const LOCATE_PATIENCE: Duration = Duration::from_secs(5);

/// Time for which the program of `--locate` is not asked after it failed.
pub const LOCATE_AGAIN: Duration = Duration::from_secs(60);

/// Most questions that wait for the program of `--locate`. Further ones have no answer.
pub const MAX_LOCATE_WAITING: usize = 256;

/// Longest answer of the program of `--locate`, in bytes.
pub const MAX_LOCATE_LINE: u64 = 1 << 20;

/// Most ranges of a file of an attached tree that are noted for reading ahead while the file is not open. Further ones are read when they are
/// needed.
pub const MAX_EXPECTED_RANGES: usize = 1_024;

/// Most files and directories of an attached tree that are counted for its size.
pub const MAX_COUNTED: u64 = 1 << 18;

/// Most files of attached trees whose states the entry node looks up at once for one request.
pub const STATS_AT_ONCE: usize = 16;

/// Longest line that a request may allow, in bytes.
pub const MAX_MAX_RECORD: u64 = 32 << 20;

/// Longest wait of the entry node for the status of a node.
pub const ASK_TIME: Duration = Duration::from_secs(1);

/// Most nodes that the entry node asks for their status at once.
pub const ASKED_AT_ONCE: usize = 64;

/// Longest time for which the entry node continues to ask nodes for their status.
pub const ASK_ALL_TIME: Duration = Duration::from_secs(3);

/// Time for which the entry node gives the same answer about all nodes.
pub const REMEMBER_CLUSTER: Duration = Duration::from_millis(500);

/// Most bytes of memory for the statistics of the chunks of one object, about 45,000 chunks. Beyond it the oldest are
/// removed.
pub const MAX_BOOK_BYTES: usize = 8 << 20;

/// Most bytes of memory for the statistics of all objects. Beyond it the books that were not used for the longest time
/// leave the memory. If all are in use, no more statistics are stored.
pub const MAX_ALL_STATISTICS: usize = 64 << 20;

/// Most books of statistics in memory, one for each object.
pub const MAX_BOOKS: usize = 1024;

/// Longest file of users of mounts, in bytes.
pub const MAX_USERS_BYTES: u64 = 1 << 20;

/// Time for which an answer of the system about a user serves.
pub const USER_AGE: Duration = Duration::from_secs(60);

/// Most users whose answers of the system are kept.
pub const MAX_KNOWN_USERS: usize = 10_000;

/// Most bytes of memory of a reduction of a chunk that a thread of the connections does itself.
pub const INLINE_REDUCTION: u64 = 1 << 20;
