//! The check of all laws, in the order in which broken laws should be repaired.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use fastrand::Rng;
use gristmill_kernel::{Ctx, Kernel, KernelError, Lines, NoRows, Record, saved};

use crate::answer::{Answer, hexadecimal};
use crate::case::Case;
use crate::fold_trial::{Trial, Variation};
use crate::law::{BrokenLaw, Law};
use crate::placement;

/// Longest line in a case over lines, in bytes.
pub(crate) const MAX_LINE: u64 = 1 << 20;

/// Checks all laws, each in `trials` random trials that are drawn from `seed`. It first compares the answer with the
/// reference, if the case has one.
///
/// # Errors
/// The error is the [`BrokenLaw`] for the first law that the kernel does not keep.
pub fn check(case: &Case, seed: u64, trials: u32) -> Result<(), BrokenLaw> {
    // Every trial would give the same error, so the comparison of trials would not find it.
    let alone = Trial::new(case, &*case.kernel, Variation::default(), 0).run();
    if let Err(KernelError::Contract { .. } | KernelError::BadState { .. }) = &alone.value {
        let expected = "an answer, or an error about the data".into();
        let setup = "one fold over one block".into();
        let kernel = case.kernel.spec().name;
        return Err(BrokenLaw { kernel, law: Law::Contract, setup, expected, got: alone.show(&alone) });
    }
    if let Some(reference) = &case.reference {
        let expected = (reference.answer)(&case.data);
        if !expected.near(&alone, reference.tolerance, case.input.element) {
            return Err(broken_law(case, Law::Reference, String::new(), &expected, &alone));
        }
    }
    // A kernel over lines is checked by itself, with cuts between lines, and in the adaptor, with cuts anywhere.
    if case.kernel.spec().record == Record::Line {
        let adapted: Arc<dyn Kernel> = Arc::new(Lines::new(case.kernel.clone(), MAX_LINE));
        check_without_runtime(case, &*adapted, seed, trials)?;
    }
    check_without_runtime(case, &*case.kernel.clone(), seed, trials)?;
    let expected = Trial::new(case, &*case.kernel, Variation::default(), 0).run();
    let mut rng = Rng::with_seed(seed);
    for _ in 0..trials {
        let (setup, got) = placement::run_in_process(case, &mut rng);
        compare(case, Law::Place, setup, &expected, &got)?;
        let (setup, got) = placement::run_by_crew(case, &mut rng);
        compare(case, Law::Place, setup, &expected, &got)?;
    }
    Ok(())
}

fn check_without_runtime(case: &Case, kernel: &dyn Kernel, seed: u64, trials: u32) -> Result<(), BrokenLaw> {
    let expected = Trial::new(case, &*case.kernel, Variation::default(), 0).run();
    let none = Variation::default();
    let laws = [
        (Law::Blocks, Variation { blocks: true, ..none }),
        (Law::Save, Variation { blocks: true, saves: true, ..none }),
        (Law::Identity, Variation { identities: true, ..none }),
        (Law::Merge, Variation { blocks: true, extents: true, ..none }),
        (Law::Order, Variation { blocks: true, extents: true, order: true, ..none }),
        (Law::Merge, Variation { blocks: true, saves: true, extents: true, order: true, identities: true }),
    ];
    for (law, variation) in laws {
        for n in 0..trials {
            let mut trial = Trial::new(case, kernel, variation, seed.wrapping_mul(1_000_003) + u64::from(n));
            let got = trial.run();
            compare(case, law, trial.setup.join(" and "), &expected, &got)?;
        }
    }
    check_states(case, kernel, seed, trials)
}

fn compare(case: &Case, law: Law, setup: String, expected: &Answer, got: &Answer) -> Result<(), BrokenLaw> {
    if expected.same(got) {
        return Ok(());
    }
    Err(broken_law(case, law, setup, expected, got))
}

fn broken_law(case: &Case, law: Law, setup: String, expected: &Answer, got: &Answer) -> BrokenLaw {
    let kernel = case.kernel.spec().name;
    BrokenLaw { kernel, law, setup, expected: expected.show(got), got: got.show(expected) }
}

/// Checks that damaged states are refused or used, and never panic.
fn check_states(case: &Case, kernel: &dyn Kernel, seed: u64, trials: u32) -> Result<(), BrokenLaw> {
    let mut rng = Rng::with_seed(seed);
    let ctx = Ctx { side: case.side.clone(), ..Ctx::first(0..case.positions()) };
    let Ok(fold) = kernel.begin(&ctx) else { return Ok(()) };
    let mut states = vec![saved(&*fold)];
    let mut trial = Trial::new(case, kernel, Variation { extents: true, ..Variation::default() }, seed);
    states.extend(trial.first_state(&ctx));
    for _ in 0..trials {
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
            return Err(BrokenLaw {
                kernel: case.kernel.spec().name,
                law: Law::State,
                setup: format!("the state of the bytes {}", hexadecimal(&state)),
                expected: "an error or an answer".into(),
                got: "a panic".into(),
            });
        }
    }
    Ok(())
}
