//! Fewer processors for active work where something else than processors runs short.

use super::sample::Sample;

/// Share of the memory below which active work gets fewer processors: folds hold blocks, and what they take of the page
/// cache is missing to those who read and write.
pub(crate) const MEMORY_LOW: f64 = 0.10;

/// Share of the last ten seconds in which something waited for I/O from which active work gets fewer processors while
/// somebody reads or writes here: lanes that wait for the same disks stand in their way. Without them only folds wait, and
/// whoever folded elsewhere would wait for the same disks.
pub(crate) const IO_HIGH: f64 = 0.6;

/// Share of its processors that active work has left at least, so that what is here comes to an end.
pub(crate) const LEAST: f64 = 0.25;

/// Share of the processors that active work may use of those it else could: all as long as nothing runs short, then less
/// in proportion, [`LEAST`] where there is no memory or everything waits for I/O. The worse of the two counts; what is not
/// known counts for nothing. `normal`: reads and writes that are served.
pub(crate) fn left(sample: &Sample, normal: u64) -> f64 {
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

    fn of(available: u64, waits: f64) -> f64 {
        left(&Sample { memory: Some((available, 100 * GIB)), io: Some(waits), ..Sample::default() }, 1)
    }

    #[test]
    fn all_of_them_until_something_runs_short() {
        assert_eq!(left(&Sample::default(), 1), 1.0);
        assert_eq!(of(10 * GIB, IO_HIGH), 1.0);
        assert_eq!(of(5 * GIB, 0.0), LEAST + (1.0 - LEAST) / 2.0);
        assert!((of(100 * GIB, 0.8) - of(5 * GIB, 0.0)).abs() < 1e-9);
        assert_eq!(of(0, 0.0), LEAST);
        assert_eq!(of(100 * GIB, 1.0), LEAST);
        assert_eq!(left(&Sample { memory: Some((0, 0)), io: Some(f64::NAN), ..Sample::default() }, 1), 1.0);
        assert_eq!(left(&Sample { io: Some(1.0), ..Sample::default() }, 0), 1.0);
    }

    proptest! {
        #[test]
        fn the_less_there_is_the_fewer_they_are(
            more in 0u64..=100, less in 0u64..=100, waits in 0.0..=1.0f64, longer in 0.0..=1.0f64,
        ) {
            let (less, more) = (less.min(more) * GIB, less.max(more) * GIB);
            let (waits, longer) = (waits.min(longer), waits.max(longer));
            prop_assert!(of(less, longer) <= of(more, waits));
            prop_assert!((LEAST..=1.0).contains(&of(less, longer)));
        }
    }
}
