//! How long the storage of the daemon takes for bytes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Storage counts as slow if it takes longer for a MiB, in microseconds. Memory takes about 100, as a fold does, and the fastest disks 400.
const SLOW: u32 = 350;

/// The most that one read counts, so that a thread that had to wait for a processor does not decide alone.
const MOST: u32 = 1_000;

/// How many reads the average is taken over.
const READS: u32 = 8;

/// The average time of the last reads in microseconds for each MiB. A daemon has one kind of storage, so all calls share it.
static AVERAGE: AtomicU32 = AtomicU32::new(0);

/// Whether the storage is slower than a fold.
pub(crate) fn is_slow() -> bool {
    AVERAGE.load(Ordering::Relaxed) > SLOW
}

/// Notes the time of a read of so many bytes.
pub(crate) fn note(time: Duration, bytes: usize) {
    let for_each_mib = time.as_secs_f64() * 1e6 * f64::from(1 << 20) / bytes.max(1) as f64;
    let sample = for_each_mib.min(f64::from(MOST)) as u32;
    let average = AVERAGE.load(Ordering::Relaxed);
    // If two calls note at once, one of them is lost, which does not matter to an average.
    AVERAGE.store((average * (READS - 1) + sample) / READS, Ordering::Relaxed);
}
