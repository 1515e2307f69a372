//! States of folds and broadcasts between passes, as other machines send them to every built-in kernel.
#![no_main]

use gristmill_fuzz::{kernel_of, piece};
use gristmill_kernel::{Block, Ctx, RowBuffer, saved};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((kernel, mut rest)) = kernel_of(bytes) else { return };
    let mut ctx = Ctx::first(0..1 << 20);
    let shared = piece(&mut rest);
    if !shared.is_empty() {
        ctx = ctx.next(shared.to_vec());
    }
    let mut sink = RowBuffer::new(usize::MAX);
    // What the broadcast says is believed by a fold over good records.
    if let Ok(mut fold) = kernel.begin(&ctx) {
        let unit = usize::try_from(kernel.spec().record.bytes()).unwrap_or(1);
        let records = rest.len() / unit;
        let mut data = rest[..records * unit].to_vec();
        if unit == 1
            && let Some(last) = data.last_mut()
        {
            *last = b'\n';
        }
        if records > 0 && fold.update(&Block::new(0, records as u64, &data), &mut sink).is_ok() {
            let state = saved(&*fold);
            kernel.restore(&ctx, &state).err().map(|e| panic!("refuses its own state: {e}"));
            let _ = kernel.advance(&ctx, &state);
        }
    }
    let (one, other) = (piece(&mut rest), rest);
    for state in [one, other] {
        let _ = kernel.advance(&ctx, state);
        let Ok(fold) = kernel.restore(&ctx, state) else { continue };
        let state = saved(&*fold);
        match kernel.restore(&ctx, &state) {
            Ok(again) => assert_eq!(saved(&*again), state),
            Err(e) => panic!("refuses the state that it saved: {e}"),
        }
        let _ = kernel.advance(&ctx, &state);
    }
    if let Ok(mut fold) = kernel.restore(&ctx, one)
        && fold.merge(other, &mut sink).is_ok()
    {
        let _ = kernel.advance(&ctx, &saved(&*fold));
    }
});
