//! A process that writes, flushes and reports is killed at random points. Everything that it reported must be there.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use gristmill_rados::{RadosLocation, RadosStore};
use gristmill_store::suite::{all_bytes, id};
use gristmill_store::{CreateOptions, ObjectStore, StoreError, WriteOptions};

use crate::{location, options};

const STORE: &str = "GRISTMILL_RADOS_TEST_STORE";
/// Longer than a piece after a few records, so that kills fall between changes of pieces, too.
const RECORD: usize = 700_000;
const KILLS: usize = 8;

fn record(serial: u64) -> Vec<u8> {
    serial.to_le_bytes().repeat(RECORD / 8 + 1).into_iter().take(RECORD).collect()
}

/// The child: appends records without end, cuts them off after some, and prints `serial version` after each flush. It does nothing unless the
/// parent below starts it with a store.
#[test]
fn child_appends_until_killed() {
    let Ok(store) = std::env::var(STORE) else { return };
    let store = RadosStore::open(&store.parse().unwrap(), &options()).unwrap();
    match store.create(&id("log"), &CreateOptions::default()) {
        Ok(_) | Err(StoreError::Exists { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    let mut serial = store.stat(&id("log")).unwrap().length / RECORD as u64;
    loop {
        serial += 1;
        let value = serial.to_le_bytes();
        let options = WriteOptions { attributes: &[("records", Some(&value))], if_version: None };
        // Something that is not flushed, and is cut off again.
        store.append(&id("log"), &[0xee; RECORD]).unwrap();
        store.truncate(&id("log"), (serial - 1) * RECORD as u64).unwrap();
        let at = (serial - 1) * RECORD as u64;
        let version = store.write_at(&id("log"), at, &record(serial), options).unwrap();
        store.flush(&id("log")).unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nflushed {serial} {}", version.0).unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn kill_at_any_point_loses_no_acknowledged_flush() {
    let location = location();
    let mut last_version = 0;
    for kill in 0..KILLS {
        let acknowledged = run_and_kill(&location, kill, &mut last_version);
        // The process is gone, and nobody waits for its lock.
        let store = RadosStore::open(&location, &options()).unwrap();
        let stat = store.stat(&id("log")).unwrap();
        let records = stat.length / RECORD as u64;
        assert_eq!(stat.length % RECORD as u64, 0);
        assert!(records >= acknowledged, "{records} records, {acknowledged} were acknowledged");
        assert!(stat.version.0 >= last_version, "a version was used again in a later life");
        let bytes = all_bytes(&store, &id("log"));
        for (serial, found) in bytes.chunks(RECORD).enumerate() {
            assert!(found == record(serial as u64 + 1), "record {serial}");
        }
        let counted = store.get_attribute(&id("log"), "records").unwrap();
        let counted = counted.map_or(0, |value| u64::from_le_bytes(value.try_into().unwrap()));
        assert_eq!(counted, records, "bytes and attributes are durable together");
        if kill % 2 == 0 {
            store.shut_down().unwrap();
        }
    }
}

/// Runs the child until it has reported some records, kills it, and returns how many it reported.
fn run_and_kill(location: &RadosLocation, kill: usize, last_version: &mut u64) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["kill::child_appends_until_killed", "--exact", "--nocapture"])
        .env(STORE, location.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut acknowledged = 0;
    let mut take = |line: &str| {
        let Some((serial, version)) = line.strip_prefix("flushed ").and_then(|rest| rest.split_once(' '))
        else {
            return false;
        };
        // The kill may cut the last line, which then does not count.
        if let (Ok(serial), Ok(version)) = (serial.parse::<u64>(), version.parse::<u64>()) {
            assert!(version > *last_version, "a version was used again in a later life");
            (acknowledged, *last_version) = (serial, version);
        }
        true
    };
    let mut reports = 0;
    while reports < kill * 3 % 7 + 1 {
        let line = lines.next().expect("the child ended by itself").unwrap();
        reports += usize::from(take(&line));
    }
    child.kill().unwrap();
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    // The last line may have a number that was cut. All lines before it are whole.
    rest.iter().take(rest.len().saturating_sub(1)).for_each(|line| {
        take(line);
    });
    child.wait().unwrap();
    acknowledged
}
