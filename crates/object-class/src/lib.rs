//! The object class `gristmill` of Ceph: kernels that run inside the storage daemons (OSDs), each over one object.
//!
//! An OSD loads `libcls_gristmill.so` from its folder of classes when a client first calls it. The class has one method, `fold`. Its input is
//! a message of the crate `object-fold`, and its output the states of the folds. The method reads the object and changes nothing.
//! The class uses only C functions that an OSD has for its classes, so it needs no header of Ceph. It was tested with Ceph 16.
//!
//! # What an administrator does
//! ```text
//! cargo build --release -p gristmill-object-class
//! install -m 644 target/release/libcls_gristmill.so /usr/lib/x86_64-linux-gnu/rados-classes/
//! ```
//! `docs/rados.md` says the rest.
//!
//! # Bounds
//! - A call ends after [`CALL_TIME`], or one block later. The client asks for the rest again.
//! - It holds [`LONGEST_READ`](gristmill_object_fold::LONGEST_READ) bytes of the object, or one record, and states of together [`MAX_ANSWER`](gristmill_object_fold::MAX_ANSWER) bytes in its answer.
//! - Only built-in kernels run. A panic ends the call, and not the OSD.
//!
//! # Errors
//! | Number | Meaning |
//! |---|---|
//! | `EPROTO` | the client is of another version of Gristmill |
//! | `EINVAL` | the message cannot be read, or its kernel does not run here |
//! | `E2BIG` | the states are too large |
//! | `ENOTRECOVERABLE` | a kernel panicked |

use std::time::{Duration, Instant};

use gristmill_object_fold::{FoldError, FoldOrder, ReadObject, fold_object};
use rustix::io::Errno;

mod osd;

/// Time after which a call ends. It stays well below the time after which an OSD warns of slow operations (30 seconds), because other
/// operations on the same placement group wait meanwhile.
pub const CALL_TIME: Duration = Duration::from_millis(100);

/// Folds what a message asks for, over an object. The result is the answer.
fn answer(message: &[u8], read: &mut impl ReadObject) -> Result<Vec<u8>, Errno> {
    let begun = Instant::now();
    let folded = FoldOrder::decode(message)
        .and_then(|(order, spans)| fold_object(&order, &spans, read, &mut || begun.elapsed() >= CALL_TIME));
    folded.and_then(|folded| folded.encode()).map_err(|error| match error {
        FoldError::OtherForm { .. } => Errno::PROTO,
        FoldError::TooLong { .. } => Errno::TOOBIG,
        FoldError::Malformed(_) | FoldError::NotFoldable(_) | FoldError::Kernel(_) => Errno::INVAL,
    })
}
