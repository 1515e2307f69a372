//! A process that writes, flushes and reports is killed at random points. Everything that it reported must be there.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test: a panic is a failure")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use gristmill_store::{
    CreateOptions, LocalStore, ObjectId, ObjectStore, ReadOptions, StoreError, WriteOptions,
};

const DIR: &str = "GRISTMILL_STORE_TEST_DIR";
const RECORD: usize = 64;
const KILLS: usize = 25;
const OBJECTS: usize = 3;

fn id(object: usize) -> ObjectId {
    ObjectId::new(&format!("log{object}")).unwrap()
}

fn record(object: usize, serial: u64) -> [u8; RECORD] {
    let mut record = [object as u8; RECORD];
    record[..8].copy_from_slice(&serial.to_le_bytes());
    record[56..].copy_from_slice(&(!serial).to_le_bytes());
    record
}

/// The child: appends numbered records without end, and prints `object serial version` after each flush. It does
/// nothing unless the parent below starts it with a directory.
#[test]
fn child_appends_until_killed() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let store = LocalStore::open(&dir).unwrap();
    let mut serials = Vec::new();
    for object in 0..OBJECTS {
        match store.create(&id(object), &CreateOptions::default()) {
            Ok(_) | Err(StoreError::Exists { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        serials.push(store.stat(&id(object)).unwrap().length / RECORD as u64);
    }
    let mut out = std::io::stdout().lock();
    loop {
        for (object, serial) in serials.iter_mut().enumerate() {
            let bytes = record(object, *serial);
            *serial += 1;
            let value = serial.to_le_bytes();
            let at = (*serial - 1) * RECORD as u64;
            let options = WriteOptions { attributes: &[("records", Some(&value))], if_version: None };
            let version = store.write_at(&id(object), at, &bytes, options).unwrap();
            store.flush(&id(object)).unwrap();
            writeln!(out, "\nflushed {object} {serial} {}", version.0).unwrap();
            out.flush().unwrap();
        }
    }
}

#[test]
fn kill_at_any_point_loses_no_acknowledged_flush() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("store");
    LocalStore::open(&dir).unwrap().shut_down().unwrap();
    let mut flushes = 0;
    let mut versions = [0u64; OBJECTS];
    for kill in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child_appends_until_killed", "--exact", "--nocapture"])
            .env(DIR, &dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The number of reports is different each time. The kill comes somewhere in the work after the last one.
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acknowledged = [0u64; OBJECTS];
        let mut take = |line: String, versions: &mut [u64; OBJECTS]| {
            let Some(numbers) = line.strip_prefix("flushed ") else { return false };
            let mut numbers = numbers.split(' ').map(|number| number.parse::<u64>());
            // The kill may cut the last line, which then does not count.
            if let (Some(Ok(object)), Some(Ok(serial)), Some(Ok(version))) =
                (numbers.next(), numbers.next(), numbers.next())
            {
                let object = object as usize;
                assert!(version > versions[object], "a version was used again in a later life");
                (acknowledged[object], versions[object]) = (serial, version);
                flushes += 1;
            }
            true
        };
        let mut reports = 0;
        while reports < kill * 7 % 40 + 1 {
            let line = lines.next().expect("the child ended by itself").unwrap();
            reports += usize::from(take(line, &mut versions));
        }
        child.kill().unwrap();
        let rest: Vec<String> = lines.map_while(Result::ok).collect();
        // The last line may have a number that was cut, if it has no newline. All lines before it are whole.
        for line in rest.iter().take(rest.len().saturating_sub(1)) {
            take(line.clone(), &mut versions);
        }
        child.wait().unwrap();

        let store = LocalStore::open(&dir).unwrap();
        for object in 0..OBJECTS {
            let (id, least) = (id(object), acknowledged[object]);
            let stat = match store.stat(&id) {
                Err(StoreError::NotFound { .. }) if least == 0 => continue,
                stat => stat.unwrap(),
            };
            let records = stat.length / RECORD as u64;
            assert_eq!(stat.length % RECORD as u64, 0);
            assert!(records >= least, "object {object}: {records} records, {least} were acknowledged");
            let mut bytes = vec![0; stat.length as usize];
            store.read_at(&id, 0, &mut bytes, ReadOptions::at(stat.version)).unwrap();
            for (serial, found) in bytes.chunks(RECORD).enumerate() {
                assert_eq!(found, record(object, serial as u64));
            }
            let counted = store
                .get_attribute(&id, "records")
                .unwrap()
                .map_or(0, |v| u64::from_le_bytes(v.try_into().unwrap()));
            assert_eq!(counted, records, "bytes and attributes are durable together");
            assert!(stat.version.0 >= versions[object]);
        }
        // Half of the lives begin after a clean end, and half after a second crash.
        if kill % 2 == 0 {
            store.shut_down().unwrap();
        }
    }
    assert!(flushes >= KILLS, "only {flushes} flushes were acknowledged");
}
