//! Measured rates at which this machine receives and folds. They are kept between calls in a small file in the user's
//! cache.
//!
//! Nothing depends on the file. A file that is damaged, too long or of another version is ignored, and so is an error
//! when it is written. It has names of kernels and rates, and no names of files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gristmill_peers::{ClientCapacity, ReceiveCounts};
use gristmill_schedule::{MAX_KERNELS, MeasuredRate};
use serde::{Deserialize, Serialize};

/// Longest file that is read, in bytes.
pub const MAX_RATES_BYTES: u64 = 64 << 10;

/// Longest name of a kernel that is kept.
const MAX_NAME: usize = 64;

/// Version of the file.
const VERSION: u32 = 1;

/// Least bytes received and folded from which rates are learned.
const LEAST_BYTES: u64 = 4 << 20;

/// A rate in the file, in bytes per second of one core.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct StoredRate {
    rate: f64,
    /// Seconds of work in which the rate was measured.
    seconds: f64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct RatesFile {
    version: u32,
    receives: Option<StoredRate>,
    kernels: BTreeMap<String, StoredRate>,
}

/// Rates of this machine. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnRates(Arc<Mutex<Rates>>);

#[derive(Debug, Default)]
struct Rates {
    /// Path of the file, if there is a cache.
    path: Option<PathBuf>,
    /// Whether the file was read.
    read: bool,
    receives: Option<MeasuredRate>,
    kernels: BTreeMap<String, MeasuredRate>,
}

/// Measurements of one request that the client folded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientFold {
    /// Bytes that were folded.
    pub bytes: u64,
    /// Seconds of all lanes, including their waits for bytes.
    pub seconds: f64,
    /// Counts of this request and of all others in the same time.
    pub received: ReceiveCounts,
}

impl OwnRates {
    /// Rates in the user's cache: `$XDG_CACHE_HOME/gristmill`, or `~/.cache/gristmill`. Without a home they are not
    /// kept.
    pub fn of_user() -> OwnRates {
        let folder = |name: &str| {
            let path = PathBuf::from(std::env::var_os(name)?);
            path.is_absolute().then_some(path)
        };
        let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
        OwnRates::at(cache.map(|cache| cache.join("gristmill").join("rates.json")))
    }

    fn at(path: Option<PathBuf>) -> OwnRates {
        OwnRates(Arc::new(Mutex::new(Rates { path, ..Rates::default() })))
    }

    /// Returns the rates. The first call reads the file.
    fn rates(&self) -> MutexGuard<'_, Rates> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut known.read, true)
            && let Some(content) = known.path.as_deref().and_then(read_file)
        {
            let learned = |kept: StoredRate| MeasuredRate::from_measurement(kept.rate, kept.seconds).ok();
            known.receives = content.receives.and_then(learned);
            let each = content.kernels.into_iter().take(MAX_KERNELS);
            known.kernels = each
                .filter_map(|(name, kept)| Some((name, learned(kept)?)))
                .filter(|(name, _)| name.len() <= MAX_NAME)
                .collect();
        }
        known
    }

    /// Describes this process, with `lanes` threads, as a client that may fold with a kernel.
    pub fn asking(&self, kernel: &str, lanes: usize) -> ClientCapacity {
        let known = self.rates();
        let rate = known.kernels.get(kernel).map(MeasuredRate::rate);
        ClientCapacity::now(lanes, rate, known.receives.map(|receives| 1.0 / receives.rate()))
    }

    /// Learns from a request that the client folded, and writes the file.
    pub fn learn(&self, kernel: &str, folded: ClientFold) {
        let ClientFold { bytes, seconds, received } = folded;
        if bytes < LEAST_BYTES || received.bytes < LEAST_BYTES || kernel.len() > MAX_NAME {
            return;
        }
        // Other requests received the rest of the bytes in the same time.
        let own = (bytes as f64 / received.bytes as f64).min(1.0);
        let waiting = received.waiting.as_secs_f64();
        let (receiving, folding) = (received.driving.as_secs_f64() + waiting, seconds - waiting * own);
        let mut known = self.rates();
        observe(&mut known.receives, received.bytes, receiving);
        if known.kernels.len() < MAX_KERNELS || known.kernels.contains_key(kernel) {
            let mut rate = known.kernels.get(kernel).copied();
            observe(&mut rate, bytes, folding);
            if let Some(rate) = rate {
                known.kernels.insert(kernel.to_owned(), rate);
            }
        }
        // Without a file the rates last as long as the process.
        let _ = known.save();
    }
}

/// Adds a measurement. The first one sets the rate; later ones are weighted by their time.
fn observe(known: &mut Option<MeasuredRate>, bytes: u64, seconds: f64) {
    match known {
        Some(rate) => rate.observe(bytes, seconds),
        None if seconds > 0.0 => {
            *known = MeasuredRate::from_measurement(bytes as f64 / seconds, seconds).ok()
        }
        None => {}
    }
}

impl Rates {
    /// Writes the file as a whole, or not at all.
    fn save(&self) -> std::io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let Some(folder) = path.parent() else { return Ok(()) };
        let kept = |rate: &MeasuredRate| StoredRate { rate: rate.rate(), seconds: rate.seconds() };
        let kernels = self.kernels.iter().map(|(name, rate)| (name.clone(), kept(rate))).collect();
        let content = RatesFile { version: VERSION, receives: self.receives.as_ref().map(kept), kernels };
        let text = serde_json::to_vec(&content)?;
        fs::create_dir_all(folder)?;
        let whole = folder.join(format!(".rates-{}-{:016x}", std::process::id(), fastrand::u64(..)));
        let written = File::create_new(&whole).and_then(|mut file| file.write_all(&text));
        let placed = written.and_then(|()| fs::rename(&whole, path));
        if placed.is_err() {
            let _ = fs::remove_file(&whole);
        }
        placed
    }
}

fn read_file(path: &Path) -> Option<RatesFile> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(MAX_RATES_BYTES + 1).read_to_end(&mut text).ok()?;
    if text.len() as u64 > MAX_RATES_BYTES {
        return None;
    }
    serde_json::from_slice(&text).ok().filter(|content: &RatesFile| content.version == VERSION)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use super::*;

    const GB: u64 = 1_000_000_000;

    /// A gigabyte folded in one second of lanes, of which a quarter was waiting; connections took another quarter.
    fn folded() -> ClientFold {
        let quarter = Duration::from_millis(250);
        let received = ReceiveCounts { bytes: GB, driving: quarter, waiting: quarter };
        ClientFold { bytes: GB, seconds: 1.0, received }
    }

    fn near(found: Option<f64>, expected: f64) {
        assert!((found.unwrap() / expected - 1.0).abs() < 1e-3, "{found:?}, expected {expected}");
    }

    #[test]
    fn what_was_measured_is_known_in_the_next_call() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cache/gristmill/rates.json");
        let first = OwnRates::at(Some(path.clone()));
        assert_eq!(first.asking("sum", 2).rate, None);
        first.learn("sum", folded());
        let second = OwnRates::at(Some(path.clone()));
        let asking = second.asking("sum", 2);
        near(asking.rate, 1e9 / 0.75);
        near(Some(asking.receiving), 0.5e-9);
        near(asking.rate_with_receiving(), 0.8e9);
        assert_eq!(second.asking("grep", 2).rate, None);
        // Nothing else is left in the folder.
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn little_says_nothing_and_others_have_their_part() {
        let rates = OwnRates::at(None);
        rates.learn("sum", ClientFold { bytes: 1000, ..folded() });
        assert_eq!(rates.asking("sum", 1).rate, None);
        let both = ReceiveCounts { bytes: 2 * GB, ..folded().received };
        rates.learn("sum", ClientFold { received: both, ..folded() });
        near(rates.asking("sum", 1).rate, 1e9 / 0.875);
        near(Some(rates.asking("sum", 1).receiving), 0.25e-9);
    }

    #[test]
    fn a_file_that_is_damaged_is_as_good_as_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rates.json");
        let long = vec![b' '; MAX_RATES_BYTES as usize + 1];
        let wrong: [&[u8]; 6] = [
            b"",
            b"{",
            b"\xff\x00",
            br#"{"version":2,"receives":null,"kernels":{"sum":{"rate":1e9,"seconds":1}}}"#,
            br#"{"version":1,"receives":{"rate":-1,"seconds":1},"kernels":{"sum":{"rate":0,"seconds":1e99}}}"#,
            &long,
        ];
        for text in wrong {
            fs::write(&path, text).unwrap();
            let asking = OwnRates::at(Some(path.clone())).asking("sum", 1);
            assert_eq!((asking.rate, asking.receiving), (None, ClientCapacity::now(1, None, None).receiving));
        }
        // The next measurement replaces the file.
        OwnRates::at(Some(path.clone())).learn("sum", folded());
        assert!(OwnRates::at(Some(path)).asking("sum", 1).rate.is_some());
    }

    #[test]
    fn a_place_that_cannot_be_written_does_no_harm() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("gristmill"), b"a file").unwrap();
        let rates = OwnRates::at(Some(dir.path().join("gristmill/rates.json")));
        rates.learn("sum", folded());
        assert!(rates.asking("sum", 1).rate.is_some());
    }
}
