//! Ranges of bytes in HTTP requests.
#![no_main]
#![allow(dead_code)] // the module's tests

use gristmill_fuzz as _;
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/server/src/range.rs"]
mod range;

fuzz_target!(|bytes: &[u8]| {
    let Some((length, header)) = bytes.split_first_chunk::<8>() else { return };
    let length = u64::from_le_bytes(*length) >> (length[0] % 64);
    let Ok(header) = std::str::from_utf8(header) else { return };
    if let range::RequestedRange::Part(part) = range::requested_range(Some(header), length) {
        assert!(part.start < part.end && part.end <= length, "{part:?} of {length}");
    }
});
