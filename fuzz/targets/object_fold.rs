//! Requests for folds inside storage daemons, and their answers: never a panic, never a record that was not asked for.
#![no_main]

use gristmill_object_fold::{FoldOrder, Folded, fold_object};
use libfuzzer_sys::fuzz_target;

/// Blocks after which a call ends. Here no clock is looked at.
const BLOCKS: usize = 4;

fuzz_target!(|bytes: &[u8]| {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return };
    let (message, object) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
    if let Ok(folded) = Folded::decode(object, &[]) {
        assert_eq!(folded.count(), 0, "nothing was asked for");
    }
    let Ok((order, spans)) = FoldOrder::decode(message) else { return };
    let encoded = order.encode(&spans).expect("what was decoded can be encoded");
    assert_eq!(FoldOrder::decode(&encoded).expect("what was encoded can be decoded"), (order.clone(), spans.clone()));
    let mut read = |offset: u64, length: usize| {
        // The object goes on with zeros, so that records are read at any offset.
        let there = usize::try_from(offset).ok().and_then(|offset| object.get(offset..)).unwrap_or(&[]);
        let mut bytes = there[..there.len().min(length)].to_vec();
        bytes.resize(length, 0);
        Some(bytes)
    };
    let mut blocks = 0;
    let mut out_of_time = || {
        blocks += 1;
        blocks >= BLOCKS
    };
    let Ok(folded) = fold_object(&order, &spans, &mut read, &mut out_of_time) else { return };
    if let Ok(answer) = folded.encode() {
        assert_eq!(Folded::decode(&answer, &spans).expect("an answer fits its request"), folded);
    }
});
