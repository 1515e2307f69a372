//! Reading a file with as little as possible around it: what any run over the same bytes is measured against.
//!
//! Threads take units of the file from one counter and read them in blocks into one page-aligned buffer each.
//! Units and blocks are as large as the runtime's defaults.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use bytemuck::{Pod, Zeroable};
use gristmill_runtime::MAX_LANES;

use crate::answer::Answer;
use crate::command::Scan;

const UNIT: u64 = 4 << 20;
const PAGE: usize = 4096;
const BLOCK_PAGES: usize = 64;
const BLOCK: usize = BLOCK_PAGES * PAGE;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(4096))]
struct Page([u8; PAGE]);

/// A block that begins at a page.
pub struct Pages(Vec<Page>);

impl Pages {
    pub fn new() -> Pages {
        Pages(vec![Page::zeroed(); BLOCK_PAGES])
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

/// Reads and does nothing.
pub fn floor(scan: &Scan) -> Result<Answer, String> {
    let begun = Instant::now();
    let (bytes, _) = over(scan, |_| 0.0)?;
    Ok(Answer::timed(begun.elapsed(), bytes))
}

/// Reads and adds f64 up, in any order.
pub fn plain(scan: &Scan) -> Result<Answer, String> {
    let begun = Instant::now();
    let (bytes, sum) = over(scan, |block| crate::plain::sum(bytemuck::cast_slice(block)))?;
    let elapsed = begun.elapsed();
    if bytes % 8 != 0 {
        return Err(format!("{} bytes are no whole number of f64", bytes));
    }
    let result = Some(serde_json::json!({ "sum": sum }));
    Ok(Answer { result, ..Answer::timed(elapsed, bytes) })
}

/// Bytes read, and the sum of what `each` made of the blocks. A block has a whole number of 8-byte words.
fn over(scan: &Scan, each: impl Fn(&[u8]) -> f64 + Sync) -> Result<(u64, f64), String> {
    if !(1..=MAX_LANES).contains(&scan.lanes) {
        return Err(format!("{} lanes are not 1 to {MAX_LANES}", scan.lanes));
    }
    let mut files = Vec::new();
    // Units of the files before.
    let mut first = 0;
    for path in std::iter::once(&scan.path).chain(&scan.also) {
        let failed = |e: std::io::Error| format!("{}: {e}", path.display());
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        files.push((first, length, file));
        first += length.div_ceil(UNIT);
    }
    let failed = |e: std::io::Error| format!("{}: {e}", scan.path.display());
    let next = AtomicU64::new(0);
    let lane = || -> std::io::Result<(u64, f64)> {
        let mut pages = Pages::new();
        let buffer = pages.bytes();
        let (mut bytes, mut sum) = (0, 0.0);
        loop {
            let unit = next.fetch_add(1, Ordering::Relaxed);
            let Some((first, length, file)) = files.iter().rfind(|(first, ..)| *first <= unit) else {
                return Ok((bytes, sum));
            };
            let mut at = (unit - first) * UNIT;
            let end = (*length).min(at + UNIT);
            if at >= end {
                return Ok((bytes, sum));
            }
            while at < end {
                let block = &mut buffer[..BLOCK.min((end - at) as usize)];
                file.read_exact_at(block, at)?;
                at += block.len() as u64;
                bytes += block.len() as u64;
                sum += each(&block[..block.len() / 8 * 8]);
            }
        }
    };
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..scan.lanes).map(|_| scope.spawn(lane)).collect();
        let mut total = (0, 0.0);
        for lane in lanes {
            let (bytes, sum) = lane.join().map_err(|_| "a thread panicked".to_owned())?.map_err(failed)?;
            total = (total.0 + bytes, total.1 + sum);
        }
        Ok(total)
    })
}
