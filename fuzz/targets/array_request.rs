//! Requests over arrays and the states of their folds, as they come from the network.
#![no_main]

use gristmill_array::{ArrayReduce, EdgeChunks, EncodedRequest, Grid};
use gristmill_kernel::{Block, Ctx, DType, Kernel, NoRows, saved};
use libfuzzer_sys::fuzz_target;

const GRIDS: [(&[u64], &[u64]); 4] =
    [(&[], &[]), (&[7], &[3]), (&[6, 5], &[4, 5]), (&[3, 4, 5], &[1, 2, 2])];

fuzz_target!(|bytes: &[u8]| {
    let [kind, round, low, high, rest @ ..] = bytes else { return };
    let (shape, chunk) = GRIDS[usize::from(*kind) % GRIDS.len()];
    let edges = if kind & 64 == 0 { EdgeChunks::Whole } else { EdgeChunks::Clipped };
    let dtype = DType::ALL[usize::from(kind >> 2) % DType::ALL.len()];
    let grid = Grid::new(shape.to_vec(), chunk.to_vec(), edges).expect("a small grid");
    let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
    let (encoded, state) = rest.split_at(length);
    let Ok(encoded) = EncodedRequest::decode(encoded) else { return };
    let again = encoded.encode().expect("it is small");
    let again = EncodedRequest::decode(&again).expect("what was encoded can be decoded");
    assert_eq!(format!("{again:?}"), format!("{encoded:?}"));
    let mut types = vec![dtype; encoded.variables()];
    // The other variables have types of their own.
    types.iter_mut().skip(1).zip(rest).for_each(|(other, byte)| {
        *other = DType::ALL[usize::from(*byte) % DType::ALL.len()];
    });
    let width: usize = types.iter().map(|dtype| dtype.size()).sum();
    let Ok(request) = encoded.request(grid.clone(), &types) else { return };
    let Ok(kernel) = ArrayReduce::bind(request) else { return };
    let mut ctx = Ctx::first(0..grid.chunks());
    if round & 1 == 1 {
        // What the pass before broadcast may be anything too.
        (ctx.round, ctx.shared) = (u32::from(*round), state.into());
    }
    let Ok(mut fold) = kernel.begin(&ctx) else { return };
    let elements = |number| grid.stored(number).iter().product::<u64>() as usize * width;
    for number in 0..grid.chunks().min(2) {
        let data: Vec<u8> = state.iter().copied().cycle().chain([0; 8]).take(elements(number)).collect();
        if data.len() == elements(number) && fold.update(&Block::new(number, 1, &data), &mut NoRows).is_err() {
            return;
        }
    }
    let own = saved(&*fold);
    if fold.merge(state, &mut NoRows).is_ok() {
        let whole = saved(&*fold);
        let _ = kernel.advance(&ctx, &whole);
    }
    let restored = kernel.restore(&ctx, &own).expect("what was saved can be restored");
    assert_eq!(saved(&*restored), own);
});
