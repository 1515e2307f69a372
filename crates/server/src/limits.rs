//! Bounds of a node.

use std::time::Duration;

use gristmill_wire::{GRANT_SECONDS, MAX_PARTIAL_BYTES, MAX_REQUEST_BYTES};

/// Levels of directories of a target that are closed to others. A store has four.
pub const MAX_TARGET_LEVELS: u32 = 16;

/// Folds for a value that run at once; more wait for their turn. They wait without a thread: threads are for what
/// works, and for [`open`](gristmill_wire::action::names::OPEN) and reads, which must not wait for folds.
pub const MAX_FOLDS: usize = 8;

/// Folds for a value of one principal, at work or waiting; more are refused as busy. A third more is there for others:
/// [`PLACES_FOR_EACH_FREE`].
pub const MAX_WAITING: usize = 4096;

/// Places among those that wait that a principal may have for each that is free: alone three quarters of all. However
/// many it asks for, the next principal finds some, and so does the one after it.
pub const PLACES_FOR_EACH_FREE: usize = 3;

/// Folds for a value that other nodes are asked for at once, on each level of nodes asking nodes; more wait. Each has
/// a thread. A level waits only for those below it, so nodes that ask each other never wait in a circle.
pub const MAX_RELAYS: usize = 32;

/// Folds for rows of one principal at once; a third more is there for others. They never wait for each other, since a
/// reader needs the rows of several nodes together; more are refused as busy.
pub const MAX_ROW_FOLDS: usize = 128;

/// Requests by path that the entry node coordinates at once; more wait.
pub const MAX_RUNS: usize = 64;

/// Requests by path of one principal, at work or waiting; more are refused as busy. A third more is there for others:
/// [`PLACES_FOR_EACH_FREE`].
pub const MAX_WAITING_RUNS: usize = 1024;

/// Objects that one principal writes at once, and, on the entry node, whole files that it sends over HTTP; more are
/// refused as busy. A third more is there for others. Half of the connections of a port, so that the other half is there
/// for whoever else asks.
pub const MAX_UPLOADS: usize = gristmill_transport::MAX_CONNECTIONS / 2;

/// Of these on the entry node, whole files that come over HTTP, of one principal. Each has a connection and makes another
/// one for its objects on this node.
pub const MAX_FILE_UPLOADS: usize = MAX_UPLOADS / 4;

/// Whole files that one principal reads over HTTP at once, by path; more are refused as busy. A third more is there for
/// others.
pub const MAX_FILE_READS: usize = MAX_UPLOADS / 4;

/// Connections of one principal; one more is refused as busy, and is the first to be closed when somebody waits. A third
/// more is there for others: [`MAX_CONNECTIONS`](gristmill_transport::MAX_CONNECTIONS) in all.
pub const MAX_CONNECTIONS_OF_ONE: usize = gristmill_transport::MAX_CONNECTIONS / 4 * 3;

/// All places of a kind of which one principal alone may have so many.
pub(crate) const fn all_places(of_one: usize) -> usize {
    of_one + of_one / PLACES_FOR_EACH_FREE
}

/// Threads for what may wait for a disk or for other nodes. There is one for each request that has a place of its kind, and one
/// for each connection, so that no kind of work that stands still takes the threads of another. They are made when they are
/// needed.
pub const MAX_BLOCKING_THREADS: usize = gristmill_transport::MAX_CONNECTIONS
    + MAX_CHECKS
    + MAX_ACTIONS
    + MAX_FOLDS
    + MAX_RELAYS * gristmill_wire::MAX_DEPTH as usize
    + MAX_RUNS
    + 2 * all_places(MAX_ROW_FOLDS)
    + 2 * all_places(MAX_GROUP_WORK)
    + THREADS_OF_NODE;

/// Threads among these for the node's own work: clearing away, recovering, its books of statistics.
const THREADS_OF_NODE: usize = 64;

/// Removed objects that a node remembers while they could still be written. Each takes some 150 bytes.
pub const MAX_REMOVED: usize = 65_536;

/// Steps of scrubs of one principal that are under way or wait for theirs; more are refused as busy. A third more is there
/// for others.
pub const MAX_SCRUBS: usize = 64;

/// Requests of one principal whose passes this node finishes together with others, at once; more are refused as busy,
/// since nodes that waited for a place could wait for each other's for ever. A third more is there for others. Each has
/// two threads.
pub const MAX_GROUP_WORK: usize = 64;

/// Values that may wait for a member: of the exchange under way and of the next one, from at most 12 others each.
pub const MAX_EARLY: usize = 32;

/// Bytes of larger values that wait for their members.
pub const COLLECTIVE_MEMORY: usize = 256 << 20;

/// How long a larger value waits for room among these before its sender is told to try again.
pub const ROOM_TIME: Duration = Duration::from_secs(2);

/// How long, and how much of, work that failed is remembered for those who ask.
pub const REMEMBERED: Duration = Duration::from_secs(60);
/// See [`REMEMBERED`].
pub const MAX_GONE: usize = 1024;

/// How often a member that waits looks whether it should ask, or was given up.
pub const MEMBER_TICK: Duration = Duration::from_millis(100);

/// How long a value may wait for memory at the node that it is for.
pub const VALUE_TIME: Duration = Duration::from_secs(60);

/// How soon a value is sent again to a node that did not take it.
pub const TELL_AGAIN: Duration = Duration::from_millis(20);

/// Bytes of rows that a lane gathers before it hands them over.
pub const ROW_BYTES: usize = 128 << 10;

/// Bytes of rows that the lanes of a fold are ahead of the network.
pub const ROWS_AHEAD: usize = 4 << 20;

/// How long a client may take nothing of the rows that wait for it: as long as it may take nothing of a connection.
pub const ROWS_STALL: Duration = gristmill_transport::CLIENT_STALL;

/// Bytes that a fold makes and that stay here, before they are written.
pub const KEEP_BYTES: usize = 1 << 20;

/// Bytes of memory of gRPC requests: what arrived of them, what they were read to, and what answers them while it waits.
pub const REQUEST_MEMORY: usize = 512 << 20;

/// Bytes of [`REQUEST_MEMORY`] that every request has, however short it is.
pub const REQUEST_BYTES: usize = 32 << 10;

/// Longest body of a gRPC request, in bytes: the request and what gRPC and Flight put around it.
pub const MAX_BODY_BYTES: usize = MAX_REQUEST_BYTES + (128 << 10);

/// Bytes of [`REQUEST_MEMORY`] for each byte of a request that is read: its texts, and the table that they become.
pub const READ_FACTOR: usize = 12;

/// Requests up to this length, in bytes, are read at once; longer ones on a thread that may take its time.
pub const READ_AT_ONCE: usize = 64 << 10;

/// Of the memory of the machine, or of the control group, one part of so many is for chunks that folds decode, and so many
/// bytes at least. A lane begins once there is memory for all that it decodes; of a fold that finds little only one does. Of
/// a principal one lane at a time has chunks that need more than three quarters of it. Several nodes may share a machine.
pub const DECODE_SHARE: u64 = 8;
/// See [`DECODE_SHARE`].
pub const MIN_DECODE_MEMORY: usize = 256 << 20;

/// Folds and requests by path that are checked at once, before they have a turn; more wait, without a thread.
pub const MAX_CHECKS: usize = 8;

/// Actions that are answered at once; more wait, without a thread.
pub const MAX_ACTIONS: usize = 64;

/// Bytes of [`REQUEST_MEMORY`] that are kept for each byte of a request once it was read.
pub const KEPT_FACTOR: usize = 4;

/// Bytes of [`REQUEST_MEMORY`] that a page of a listing takes.
pub const PAGE_BYTES: usize = 1 << 20;

/// Bytes of a stretch of a partial in one frame.
pub const PARTIAL_STRETCH: usize = 1 << 20;

/// Frames of a fold that wait for the network, and batches of rows of a request by path.
pub const FRAMES_WAITING: usize = 256;
/// See [`FRAMES_WAITING`].
pub const BATCHES_WAITING: usize = 2;

/// Bytes of frames of a fold that wait for the network, unless one frame has more.
pub const FRAME_BYTES_WAITING: usize = 1 << 20;

/// How often a node at work gives a sign of life.
pub const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// Extents of one message, at most.
pub const MAX_EXTENTS: usize = 4096;

/// Bytes of the answer to one message of extents, at most.
pub const MAX_EXTENT_BYTES: u64 = 64 << 20;

/// How long the upload of a whole file over HTTP may stand still before it is given up.
pub const UPLOAD_STALL: Duration = Duration::from_secs(300);

/// How long the upload of an object may stand still: as long as its grant holds. It ends sooner with its put, which
/// somebody must renew ([`PUT_LEASE`]), because the entry node then has the object removed.
pub const OBJECT_STALL: Duration = Duration::from_secs(GRANT_SECONDS);

/// How long any other request may take to send its body: a gRPC request of [`MAX_BODY_BYTES`] comes with 290 kB/s at least.
pub const BODY_TIME: Duration = Duration::from_secs(60);

/// How long an object that is sent again waits for the end of the connection it was sent over before.
pub const CUT_SEEN: Duration = Duration::from_secs(2);

/// How long a put may go on without saying so.
pub const PUT_LEASE: Duration = Duration::from_secs(60);

/// How often a storage node makes itself known to the entry node.
pub const HEARTBEAT: Duration = Duration::from_secs(5);

/// How long a storage node may be silent before files that name no targets are put elsewhere.
pub const SILENCE: Duration = Duration::from_secs(20);

/// How long a node that starts tries to reach the entry node.
pub const JOIN_TIMEOUT: Duration = Duration::from_secs(30);

/// How old the word of a joining node may be, in seconds: clocks of nodes may differ by so much.
pub const JOIN_AGE: u64 = 300;

/// Files that are cleared away at once, and how often the entry node looks for some.
pub const COLLECT_AT_ONCE: usize = 256;
/// See [`COLLECT_AT_ONCE`].
pub const COLLECT_EVERY: Duration = Duration::from_secs(10);

/// Files whose objects are being removed at a time.
pub const CLEAR_AT_ONCE: usize = 16;

/// Longest file of tokens, in bytes.
pub const MAX_TOKENS_BYTES: u64 = 1 << 20;

/// How often, at most, it is looked whether that file changed.
pub const TOKENS_LOOK: Duration = Duration::from_secs(1);

/// How old the last change of that file is before it is believed that the next one has another time.
pub const TOKENS_SETTLED: Duration = Duration::from_secs(2);

/// How long a node that stops waits for requests at work.
pub const STOP_GRACE: Duration = Duration::from_secs(5);

/// Bytes of answers to messages of extents that are in memory at once; more messages wait.
pub const EXTENT_MEMORY: usize = 128 << 20;

/// How long a message of extents waits for room among these before its sender is told to try again.
pub const EXTENT_TIME: Duration = Duration::from_secs(5);

/// Bytes of answers of folds for values that are in memory until their clients took them. More answers wait, and keep
/// the turns of their folds meanwhile.
pub const ANSWER_MEMORY: usize = 128 << 20;
const _: () = assert!(
    MAX_PARTIAL_BYTES <= ANSWER_MEMORY / (PLACES_FOR_EACH_FREE + 1) * PLACES_FOR_EACH_FREE,
    "or the largest would wait for ever"
);
const _: () = assert!(
    MAX_EXTENT_BYTES as usize <= EXTENT_MEMORY / (PLACES_FOR_EACH_FREE + 1) * PLACES_FOR_EACH_FREE,
    "or the largest would wait for ever"
);

/// How long an answer waits for room among these before its client is told to try again: long, as all that was done for it would
/// be lost, and those before it get on or are dropped.
pub const ANSWER_TIME: Duration = Duration::from_secs(3600);

/// Answers up to this length, in bytes, need no room among [`ANSWER_MEMORY`].
pub const FREE_ANSWER_BYTES: usize = 64 << 10;

/// How long a client may take nothing of an answer that has room among [`ANSWER_MEMORY`], for which others wait.
pub const ANSWER_STALL: Duration = Duration::from_secs(60);

/// Longest line that a request may allow, in bytes.
pub const MAX_MAX_RECORD: u64 = 32 << 20;

/// How long the entry node waits for what a node says of itself to those who watch.
pub const ASK_TIME: Duration = Duration::from_secs(1);

/// Nodes that it asks at once for this, and how long it goes on to ask more.
pub const ASKED_AT_ONCE: usize = 64;
/// See [`ASKED_AT_ONCE`].
pub const ASK_ALL_TIME: Duration = Duration::from_secs(3);

/// How long it gives the same answer to all who watch.
pub const REMEMBER_CLUSTER: Duration = Duration::from_millis(500);

/// Bytes of memory of the statistics that a node keeps of the chunks of one object: some 45,000 chunks. Of more those go
/// that came first.
pub const MAX_BOOK_BYTES: usize = 8 << 20;

/// Bytes of memory of such statistics of all objects, and how many objects: of more those go from memory that were not
/// asked for the longest, and where all are in use no more are kept.
pub const MAX_ALL_STATISTICS: usize = 64 << 20;
/// See [`MAX_ALL_STATISTICS`].
pub const MAX_BOOKS: usize = 1024;
