//! Load of the machine, from `/proc`. A value whose file is missing is unknown. Nothing fails.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::lane_allotments::SHARE;

/// Bytes of a file of `/proc` that are read. The needed lines are at its beginning, and there is a line for each processor.
const MAX_BYTES: u64 = 256 << 10;

/// Load of the machine since the sample before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    /// Share of all processors that was used, 0 to 1.
    pub cpu: f64,
    /// Share of all processors that was used by anything but active work of this node.
    pub others: f64,
    /// Share of all processors that was used by active work of this node.
    pub ours: f64,
    /// Bytes of available memory, and of all memory.
    pub memory: Option<(u64, u64)>,
    /// Share of the last ten seconds in which a thread waited for I/O, 0 to 1.
    pub io: Option<f64>,
    /// Number of processors of the machine, as far as the system lists them; 0 without a sample before.
    pub processors: usize,
}

impl Sample {
    /// Whether lanes of idle priority would have got as many processors as starving lanes get: a tenth of all, and at least one, or
    /// half of the only one. False if this process may use only some of the machine's processors, because the sample is of all.
    /// `own`: processors that this process may use.
    pub fn has_free_processor(&self, own: usize) -> bool {
        let all = self.processors as f64;
        let needed = (all / 2.0).min((all * SHARE).max(1.0));
        self.processors == own && own > 0 && (1.0 - self.cpu) * all >= needed
    }
}

/// Takes samples.
pub(crate) struct Sampler {
    proc: PathBuf,
    /// Used ticks and all ticks at the last sample.
    ticks: Option<(u64, u64)>,
}

impl Sampler {
    pub fn new(proc: &Path) -> Sampler {
        Sampler { proc: proc.to_owned(), ticks: None }
    }

    pub fn sample(&mut self) -> Sample {
        let stat = self.text("stat");
        let ticks = stat.as_deref().and_then(ticks);
        let (mut cpu, mut listed) = (0.0, 0);
        match (self.ticks, ticks) {
            // Counters of sleeping processors may run backwards.
            (Some((used, all)), Some((used_now, all_now))) if all_now > all => {
                cpu = (used_now.saturating_sub(used) as f64 / (all_now - all) as f64).min(1.0);
                listed = stat.as_deref().map_or(0, processors);
            }
            _ => {}
        }
        self.ticks = ticks.or(self.ticks);
        let memory = self.text("meminfo").as_deref().and_then(memory);
        let io = self.text("pressure/io").as_deref().and_then(pressure);
        Sample { cpu, others: cpu, ours: 0.0, memory, io, processors: listed }
    }

    fn text(&self, name: &str) -> Option<String> {
        let mut text = Vec::new();
        File::open(self.proc.join(name)).ok()?.take(MAX_BYTES).read_to_end(&mut text).ok()?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }
}

/// `cpu  user nice system idle iowait irq softirq steal ...`, in ticks since the machine started.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let fields: Vec<u64> =
        stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().map_while(|n| n.parse().ok()).collect();
    // The time of users includes that of guests.
    let all = fields.get(..8)?.iter().fold(0u64, |sum, n| sum.saturating_add(*n));
    let idle = fields.get(3)?.saturating_add(*fields.get(4)?);
    Some((all.saturating_sub(idle), all))
}

/// The number of lines `cpu0 ...`, `cpu1 ...` and so on.
fn processors(stat: &str) -> usize {
    let is_one = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()))
    };
    stat.lines().filter(is_one).count()
}

fn memory(meminfo: &str) -> Option<(u64, u64)> {
    let kib = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    Some((kib("MemAvailable:")?, kib("MemTotal:")?))
}

/// `some avg10=1.23 avg60=...`, in percent.
fn pressure(io: &str) -> Option<f64> {
    let percent: f64 =
        io.lines().next()?.strip_prefix("some avg10=")?.split_whitespace().next()?.parse().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_used_share_is_of_the_ticks_since_the_last_sample() {
        let proc = tempfile::tempdir().unwrap();
        let mut sampler = Sampler::new(proc.path());
        assert_eq!(sampler.sample(), Sample::default());
        fs::write(proc.path().join("stat"), "cpu  10 0 10 70 10 0 0 0 0 0\ncpu0 1 1 1 1\n").unwrap();
        fs::write(proc.path().join("meminfo"), "MemTotal:  2000 kB\nMemFree: 1 kB\nMemAvailable:   500 kB\n")
            .unwrap();
        fs::create_dir(proc.path().join("pressure")).unwrap();
        fs::write(proc.path().join("pressure/io"), "some avg10=12.50 avg60=1.00 avg300=0.10 total=99\n")
            .unwrap();
        let first = sampler.sample();
        assert_eq!(
            first,
            Sample { memory: Some((512_000, 2_048_000)), io: Some(0.125), ..Sample::default() }
        );
        assert!(!first.has_free_processor(1));
        fs::write(proc.path().join("stat"), "cpu  40 0 20 130 10 0 0 0 0 0\ncpu0 1 1\ncpu1 1 1\nintr 1\n")
            .unwrap();
        let second = sampler.sample();
        assert_eq!((second.cpu, second.processors), (0.4, 2));
        assert!(second.has_free_processor(2));
        // The free time may belong to processors that this process may not use.
        assert!(!second.has_free_processor(1) && !second.has_free_processor(3));
        let busy = Sample { cpu: 0.6, ..second };
        assert!(!busy.has_free_processor(2));
        assert!(Sample { cpu: 0.5, processors: 1, ..second }.has_free_processor(1));
        // Starving lanes get a tenth of 64 processors. One free processor is no reason to take that from them.
        assert!(!Sample { cpu: 0.95, processors: 64, ..second }.has_free_processor(64));
        assert!(Sample { cpu: 0.85, processors: 64, ..second }.has_free_processor(64));
        // A counter that runs backwards says nothing.
        fs::write(proc.path().join("stat"), "cpu  1 0 1 1 1 0 0 0 0 0\n").unwrap();
        assert_eq!(sampler.sample().cpu, 0.0);
    }

    proptest! {
        #[test]
        fn malformed_text_gives_no_value_out_of_range(text in "(cpu |MemTotal:|MemAvailable:|some avg10=)?[ -~\n]{0,80}") {
            if let Some((used, all)) = ticks(&text) {
                prop_assert!(used <= all);
            }
            let _ = memory(&text);
            prop_assert!(pressure(&text).is_none_or(|share| (0.0..=1.0).contains(&share)));
        }
    }
}
