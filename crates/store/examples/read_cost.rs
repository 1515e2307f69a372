//! Cost of a read through the store, compared with the bare system call: 256 KiB reads of a page-cached object. The
//! kinds of reads take turns, and the times are medians over rounds. Prints one line for each kind, with the ratio to
//! the system call.
//!
//! `cargo run --release -p gristmill-store --example read_cost`
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use gristmill_store::{CreateOptions, LocalStore, ObjectId, ObjectStore, ReadOptions, WriteOptions};

const BLOCK: usize = 256 * 1024;
const BLOCKS: u64 = 512;
const ROUNDS: usize = 25;
const PAGE: usize = 4096;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let store = LocalStore::open(dir.path())?;
    let id = ObjectId::new("object")?;
    store.create(&id, &CreateOptions::default())?;
    for block in 0..BLOCKS {
        store.write_at(&id, block * BLOCK as u64, &vec![block as u8; BLOCK], WriteOptions::default())?;
    }
    store.flush(&id)?;
    let reader = LocalStore::open_read_only(dir.path())?;
    let options = ReadOptions::at(store.stat(&id)?.version);
    let path = std::fs::read_dir(dir.path().join("objects"))?.flatten().next().ok_or("no data file")?.path();
    let path = std::fs::read_dir(path)?.flatten().next().ok_or("no data file")?.path().join("object");
    let file = std::fs::File::open(path)?;

    let mut memory = vec![0u8; BLOCK + PAGE];
    let start = memory.as_ptr().align_offset(PAGE);
    let buffer = &mut memory[start..start + BLOCK];
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..ROUNDS {
        for (kind, times) in times.iter_mut().enumerate() {
            let begin = Instant::now();
            for block in 0..BLOCKS {
                let at = block * BLOCK as u64;
                let n = match kind {
                    0 => file.read_at(buffer, at)?,
                    1 => store.read_at(&id, at, buffer, options)?,
                    _ => reader.read_at(&id, at, buffer, options)?,
                };
                assert_eq!((n, buffer[0]), (BLOCK, block as u8));
            }
            times.push(begin.elapsed());
        }
    }
    let medians = times.map(|mut times| {
        times.sort();
        times[ROUNDS / 2].as_secs_f64()
    });
    let bytes = BLOCKS as f64 * BLOCK as f64;
    for (what, seconds) in ["pread", "LocalStore, if_version", "LocalReader, if_version"].iter().zip(medians)
    {
        let overhead = (seconds - medians[0]) / BLOCKS as f64 * 1e9;
        println!(
            "{what:25} {:6.2} GB/s  {:5.3} of pread's time  {overhead:+7.0} ns a read",
            bytes / seconds / 1e9,
            seconds / medians[0]
        );
    }
    Ok(())
}
