//! Two partials made of short descriptions, so that most are well formed: overlaps are refused, and the same
//! records joined in the other order give the same.
#![no_main]

use gristmill_fuzz::{kernel_of, piece};
use gristmill_kernel::{Block, Ctx, Kernel, RowBuffer, saved};
use gristmill_runtime::{ExtentSet, Partial, Piece};
use libfuzzer_sys::fuzz_target;

/// Positions of the whole.
const COUNT: u64 = 64;

/// Up to eight pieces, each three bytes: start, length, and what its records are made of.
fn partial(kernel: &dyn Kernel, ctx: &Ctx, description: &[u8]) -> Option<Partial> {
    let mut partial = Partial::empty(ctx.round);
    let mut at = 0;
    for part in description.chunks_exact(3).take(8) {
        let start = at + u64::from(part[0] % 8);
        at = start + 1 + u64::from(part[1] % 8);
        let bytes = usize::try_from(kernel.spec().record.bytes()).ok()?;
        let mut data = vec![part[2]; bytes * usize::try_from(at - start).ok()?];
        if kernel.spec().record.bytes() == 1 {
            *data.last_mut()? = b'\n';
        }
        let mut fold = kernel.begin(ctx).ok()?;
        fold.update(&Block::new(start, at - start, &data), &mut RowBuffer::new(usize::MAX)).ok()?;
        partial.pieces.push(Piece { covered: ExtentSet::from_range(start..at), state: saved(&*fold) });
    }
    let mut bytes = Vec::new();
    partial.encode(&mut bytes);
    Partial::decode(&bytes).ok()
}

fuzz_target!(|bytes: &[u8]| {
    let Some((kernel, mut rest)) = kernel_of(bytes) else { return };
    let ctx = Ctx::first(0..COUNT);
    let (one, other) = (piece(&mut rest), piece(&mut rest));
    let (Some(one), Some(other)) = (partial(kernel, &ctx, one), partial(kernel, &ctx, other)) else { return };
    let covered = |partial: &Partial| partial.covered().expect("no record is in two pieces");
    let mut apart = covered(&one);
    let apart = apart.union(&covered(&other)).is_ok();
    // As every runtime does: into nothing, one after the other.
    let joined = |first: &Partial, second: &Partial| {
        let mut sink = RowBuffer::new(usize::MAX);
        let mut both = Partial::empty(ctx.round);
        both.join(kernel, &ctx, first.clone(), &mut sink)?;
        both.join(kernel, &ctx, second.clone(), &mut sink).map(|()| both)
    };
    let (forth, back) = (joined(&one, &other), joined(&other, &one));
    assert!(apart || forth.is_err() && back.is_err(), "records were taken twice: {forth:?} {back:?}");
    match (forth, back) {
        (Ok(forth), Ok(back)) => assert_eq!(forth, back),
        (Err(_), Err(_)) => {}
        (forth, back) => panic!("only one order works: {forth:?} {back:?}"),
    }
});
