//! `gristmill put` killed with SIGKILL: the file is whole or not there, and the next put cleans up.
#![allow(clippy::unwrap_used)] // in functions that tests share

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const BIN: &str = env!("CARGO_BIN_EXE_gristmill");
const LENGTH: usize = 24 << 20;
const TARGETS: usize = 3;

/// A put of this length makes progress within this time even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

fn put(dir: &Path) -> Child {
    let targets: Vec<_> = (0..TARGETS).map(|n| dir.join(format!("t{n}")).display().to_string()).collect();
    Command::new(BIN)
        .args(["put", "source", "f.grist", "--stripe", "64KiB", "--on", &targets.join(",")])
        .current_dir(dir)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn objects(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left: Vec<PathBuf> = (0..TARGETS).map(|n| dir.join(format!("t{n}/objects"))).collect();
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { left.push(path) } else { found.push(path) }
        }
    }
    found
}

#[test]
fn a_killed_put_leaves_a_whole_file_or_none() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let bytes: Vec<u8> = (0..LENGTH).map(|i| (i % 251) as u8).collect();
    fs::write(dir.join("source"), &bytes).unwrap();
    let mut interrupted = 0;
    for eighth in 0..8 {
        let mut child = put(dir);
        // Kill it once this many bytes have arrived.
        let wanted = (LENGTH / 8 * eighth) as u64;
        let begun = Instant::now();
        loop {
            let arrived: u64 =
                objects(dir).iter().filter_map(|path| fs::metadata(path).ok()).map(|m| m.len()).sum();
            if arrived > wanted || child.try_wait().unwrap().is_some() {
                break;
            }
            assert!(begun.elapsed() < TIMEOUT, "only {arrived} bytes arrived");
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let visible = dir.join("f.grist").exists();
        interrupted += u32::from(!visible);
        if visible {
            let copied =
                Command::new(BIN).args(["get", "f.grist", "copy"]).current_dir(dir).status().unwrap();
            assert!(copied.success());
            assert_eq!(fs::read(dir.join("copy")).unwrap(), bytes);
            let removed = Command::new(BIN).args(["rm", "f.grist"]).current_dir(dir).status().unwrap();
            assert!(removed.success());
        }
    }
    assert!(interrupted > 0, "every put was faster than the kill");
    // The next put removes what the killed puts left.
    assert!(put(dir).wait().unwrap().success());
    assert_eq!(objects(dir).len(), TARGETS);
}
