//! Checks one law after the other, so that the first to fail is the one to mend first.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use fastrand::Rng;
use gristmill_kernel::{Ctx, Kernel, KernelError, Lines, NoRows, Record, saved};

use crate::answer::{Answer, hexadecimal};
use crate::case::Case;
use crate::drive::{Freedom, World};
use crate::law::{Broken, Law};
use crate::placement;

/// Longest line in a case over lines.
pub(crate) const MAX_LINE: u64 = 1 << 20;

/// Tests all laws, each in `worlds` random worlds drawn from `seed`: first that the answer is that of the reference, if
/// the case has one.
///
/// # Errors
/// The error is [`Broken`] for the first law that the kernel does not keep.
pub fn check(case: &Case, seed: u64, worlds: u32) -> Result<(), Broken> {
    // Every world would give the same error, and agree.
    let alone = World::new(case, &*case.kernel, Freedom::default(), 0).run();
    if let Err(KernelError::Contract { .. } | KernelError::BadState { .. }) = &alone.value {
        let expected = "an answer, or an error about the data".into();
        let world = "one fold over one block".into();
        let kernel = case.kernel.spec().name;
        return Err(Broken { kernel, law: Law::Contract, world, expected, got: alone.show(&alone) });
    }
    if let Some(reference) = &case.reference {
        let expected = (reference.answer)(&case.data);
        if !expected.near(&alone, reference.within, case.input.element) {
            return Err(told(case, Law::Reference, String::new(), &expected, &alone));
        }
    }
    // A kernel over lines is judged as it is, cut between lines, and in the adaptor, cut anywhere.
    if case.kernel.spec().record == Record::Line {
        let adapted: Arc<dyn Kernel> = Arc::new(Lines::new(case.kernel.clone(), MAX_LINE));
        by_hand(case, &*adapted, seed, worlds)?;
    }
    by_hand(case, &*case.kernel.clone(), seed, worlds)?;
    let expected = World::new(case, &*case.kernel, Freedom::default(), 0).run();
    let mut rng = Rng::with_seed(seed);
    for _ in 0..worlds {
        let (world, got) = placement::run(case, &mut rng);
        compare(case, Law::Place, world, &expected, &got)?;
        let (world, got) = placement::run_by_crew(case, &mut rng);
        compare(case, Law::Place, world, &expected, &got)?;
    }
    Ok(())
}

fn by_hand(case: &Case, kernel: &dyn Kernel, seed: u64, worlds: u32) -> Result<(), Broken> {
    let expected = World::new(case, &*case.kernel, Freedom::default(), 0).run();
    let none = Freedom::default();
    let laws = [
        (Law::Blocks, Freedom { blocks: true, ..none }),
        (Law::Save, Freedom { blocks: true, saves: true, ..none }),
        (Law::Identity, Freedom { identities: true, ..none }),
        (Law::Merge, Freedom { blocks: true, extents: true, ..none }),
        (Law::Order, Freedom { blocks: true, extents: true, order: true, ..none }),
        (Law::Merge, Freedom { blocks: true, saves: true, extents: true, order: true, identities: true }),
    ];
    for (law, freedom) in laws {
        for n in 0..worlds {
            let mut world = World::new(case, kernel, freedom, seed.wrapping_mul(1_000_003) + u64::from(n));
            let got = world.run();
            compare(case, law, world.told.join(" and "), &expected, &got)?;
        }
    }
    states(case, kernel, seed, worlds)
}

fn compare(case: &Case, law: Law, world: String, expected: &Answer, got: &Answer) -> Result<(), Broken> {
    if expected.same(got) {
        return Ok(());
    }
    Err(told(case, law, world, expected, got))
}

fn told(case: &Case, law: Law, world: String, expected: &Answer, got: &Answer) -> Broken {
    let kernel = case.kernel.spec().name;
    Broken { kernel, law, world, expected: expected.show(got), got: got.show(expected) }
}

/// Damaged states must be refused or used, never panic.
fn states(case: &Case, kernel: &dyn Kernel, seed: u64, worlds: u32) -> Result<(), Broken> {
    let mut rng = Rng::with_seed(seed);
    let ctx = Ctx { side: case.side.clone(), ..Ctx::first(0..case.positions()) };
    let Ok(fold) = kernel.begin(&ctx) else { return Ok(()) };
    let mut states = vec![saved(&*fold)];
    let mut world = World::new(case, kernel, Freedom { extents: true, ..Freedom::default() }, seed);
    states.extend(world.some_state(&ctx));
    for _ in 0..worlds {
        let mut state = states[rng.usize(0..states.len())].clone();
        match rng.u8(0..4) {
            0 => state.truncate(rng.usize(0..=state.len())),
            1 => state.extend((0..rng.usize(1..20)).map(|_| rng.u8(..))),
            2 if !state.is_empty() => {
                let at = rng.usize(0..state.len());
                state[at] ^= 1 << rng.u8(0..8);
            }
            _ => state = (0..rng.usize(0..80)).map(|_| rng.u8(..)).collect(),
        }
        let attempt = catch_unwind(AssertUnwindSafe(|| {
            if let Ok(mut fold) = kernel.restore(&ctx, &state) {
                let _ = fold.merge(&state, &mut NoRows);
                let _ = saved(&*fold);
            }
            let _ = kernel.advance(&ctx, &state);
        }));
        if attempt.is_err() {
            return Err(Broken {
                kernel: case.kernel.spec().name,
                law: Law::State,
                world: format!("the state of the bytes {}", hexadecimal(&state)),
                expected: "an error or an answer".into(),
                got: "a panic".into(),
            });
        }
    }
    Ok(())
}
