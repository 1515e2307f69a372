//! Partials as bytes, two of them joined, and the answer taken from the whole: never a panic, never a record twice.
#![no_main]

use gristmill_fuzz::kernel_of;
use gristmill_kernel::{Ctx, RowBuffer};
use gristmill_runtime::Partial;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((kernel, rest)) = kernel_of(bytes) else { return };
    let Some((length, rest)) = rest.split_first_chunk::<2>() else { return };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (one, other) = rest.split_at(length);
    let Ok(one) = Partial::decode(one) else { return };
    let mut encoded = Vec::new();
    one.encode(&mut encoded);
    assert_eq!(Partial::decode(&encoded).expect("what was encoded can be decoded"), one);
    let Ok(other) = Partial::decode(other) else { return };
    let count = |partial: &Partial| partial.covered().expect("no record is in two pieces").count();
    let (a, b) = (count(&one), count(&other));
    let ctx = Ctx { round: one.round, ..Ctx::first(0..a.saturating_add(b)) };
    // As every runtime does: into nothing, one after the other.
    let mut both = Partial::empty(one.round);
    let sink = &mut RowBuffer::new(usize::MAX);
    if both.join(kernel, &ctx, one, sink).and_then(|()| both.join(kernel, &ctx, other, sink)).is_err() {
        return;
    }
    let covered = count(&both);
    assert!(u128::from(covered) <= u128::from(a) + u128::from(b), "{covered} records of {a} and {b}");
    if both.enough_at.is_none() {
        assert_eq!(u128::from(covered), u128::from(a) + u128::from(b));
    }
    if let Ok(whole) = both.whole(kernel, &ctx) {
        let _ = kernel.advance(&ctx, &whole);
    }
});
