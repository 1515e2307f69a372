//! What others may have written to a pool of Ceph: records in the heads of objects, and the texts of registered nodes.
#![no_main]

use gristmill_fuzz as _;
use gristmill_rados::{RegisteredNode, checked_record};
use libfuzzer_sys::fuzz_target;

/// Bytes of a record before the part with the checksum.
const HEAD: usize = 5;

fuzz_target!(|bytes: &[u8]| {
    // Most inputs would fail for their checksum alone, so it is made right.
    let mut sealed = bytes.to_vec();
    sealed.extend(crc32c::crc32c(bytes.get(HEAD..).unwrap_or_default()).to_le_bytes());
    for bytes in [bytes, &sealed] {
        if let Some(again) = checked_record(bytes) {
            assert_eq!(checked_record(&again).as_deref(), Some(&*again), "a record is not what was written");
        }
    }
    if let Ok(node) = String::from_utf8_lossy(bytes).parse::<RegisteredNode>() {
        assert_eq!(node.to_string().parse(), Ok(node));
    }
});
