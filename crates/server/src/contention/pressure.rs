//! Share of the processors that active work has while memory or disks run short.

use super::sample::Sample;

/// Share of available memory below which active work gets fewer processors. Folds hold blocks, and take page cache from
/// reads and writes.
pub(crate) const MEMORY_LOW: f64 = 0.10;

/// Share of the last ten seconds with a wait for I/O, from which active work gets fewer processors during reads and
/// writes: lanes that wait for the same disks slow them down. Without reads and writes only folds wait, and a fold at a
/// client would wait for the same disks.
pub(crate) const IO_HIGH: f64 = 0.6;

/// Smallest share of its processors that active work keeps, so that the work on the node ends.
pub(crate) const LEAST: f64 = 0.25;

/// Share of its processors that active work may use, [`LEAST`] to 1. It is 1 while nothing runs short, falls in
/// proportion, and is [`LEAST`] without available memory or if everything waits for I/O. The lower of the two values
/// counts. Unknown values have no effect. `normal`: reads and writes under way.
pub(crate) fn available_share(sample: &Sample, normal: u64) -> f64 {
    let memory = match sample.memory {
        Some((available, total)) if total > 0 => available as f64 / total as f64 / MEMORY_LOW,
        _ => 1.0,
    };
    let io = sample.io.filter(|_| normal > 0).map_or(1.0, |waits| (1.0 - waits) / (1.0 - IO_HIGH));
    let short = memory.min(io);
    if short.is_nan() { 1.0 } else { LEAST + (1.0 - LEAST) * short.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GIB: u64 = 1 << 30;

    fn share(available: u64, waits: f64) -> f64 {
        available_share(
            &Sample { memory: Some((available, 100 * GIB)), io: Some(waits), ..Sample::default() },
            1,
        )
    }

    #[test]
    fn active_work_has_all_processors_until_memory_or_disks_run_short() {
        assert_eq!(available_share(&Sample::default(), 1), 1.0);
        assert_eq!(share(10 * GIB, IO_HIGH), 1.0);
        assert_eq!(share(5 * GIB, 0.0), LEAST + (1.0 - LEAST) / 2.0);
        assert!((share(100 * GIB, 0.8) - share(5 * GIB, 0.0)).abs() < 1e-9);
        assert_eq!(share(0, 0.0), LEAST);
        assert_eq!(share(100 * GIB, 1.0), LEAST);
        assert_eq!(
            available_share(&Sample { memory: Some((0, 0)), io: Some(f64::NAN), ..Sample::default() }, 1),
            1.0
        );
        assert_eq!(available_share(&Sample { io: Some(1.0), ..Sample::default() }, 0), 1.0);
    }

    proptest! {
        #[test]
        fn the_share_falls_with_less_memory_and_longer_waits(
            more in 0u64..=100, less in 0u64..=100, waits in 0.0..=1.0f64, longer in 0.0..=1.0f64,
        ) {
            let (less, more) = (less.min(more) * GIB, less.max(more) * GIB);
            let (waits, longer) = (waits.min(longer), waits.max(longer));
            prop_assert!(share(less, longer) <= share(more, waits));
            prop_assert!((LEAST..=1.0).contains(&share(less, longer)));
        }
    }
}
