//! Stored chunks of any array: exactly as many bytes as the chunk has, or an error.
#![no_main]

use gristmill_format::Decoder;
use gristmill_format::wire::{Head, with_sum};
use libfuzzer_sys::fuzz_target;

/// Most bytes of a chunk that is decoded.
const MAX_CHUNK: u64 = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let Some((length, rest)) = bytes.split_first() else { return };
    let (head, rest) = rest.split_at(usize::from(*length).min(rest.len()));
    let Ok(head) = Head::decode(&with_sum(head.to_vec())) else { return };
    let Some((&[number, mask], stored)) = rest.split_first_chunk::<2>() else { return };
    let array = head.array;
    if array.chunk_bytes() > MAX_CHUNK {
        return;
    }
    let mut decoder = Decoder::new(&array).expect("an array that was checked can be decoded");
    let mut out = Vec::new();
    if decoder.decode(u64::from(number), stored, u32::from(mask), &mut out).is_ok() {
        let held = array.extent(u64::from(number)).expect("there is such a chunk").held;
        assert_eq!(out.len() as u64, held.iter().product::<u64>() * array.dtype.size() as u64);
    }
});
