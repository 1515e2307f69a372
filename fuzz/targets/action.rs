//! Bodies of actions and their answers. The first byte says which.
#![no_main]

use std::fmt::Debug;

use gristmill_fuzz as _;
use gristmill_wire::action::{self, decode, encode};
use gristmill_wire::{ErrorBody, FileMap, FsckResult, FsckStep, ObjectPage, SourceAccess};
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;

fn round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(body: &[u8]) -> Option<T> {
    let value: T = decode("message", body).ok()?;
    let again = encode(&value).expect("what was decoded can be encoded");
    assert_eq!(decode::<T>("message", &again).expect("and decoded"), value);
    Some(value)
}

fn check(file: &FileMap) {
    if file.check().is_ok() {
        assert!(file.segments || file.striped().is_ok(), "a map that was checked has a layout");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, body)) = bytes.split_first() else { return };
    match kind % 21 {
        0 => drop(round_trip::<action::PathRequest>(body)),
        1 => drop(round_trip::<action::FileInfo>(body).inspect(|info| check(&info.file))),
        2 => drop(round_trip::<action::Opened>(body).inspect(|opened| check(&opened.info.file))),
        3 => drop(round_trip::<action::Create>(body)),
        4 => drop(round_trip::<action::Created>(body).inspect(|created| check(&created.file))),
        5 => drop(round_trip::<action::Attempt>(body)),
        6 => drop(round_trip::<action::Commit>(body)),
        7 => drop(round_trip::<action::Receipt>(body)),
        8 => drop(round_trip::<action::List>(body)),
        19 => drop(round_trip::<action::Open>(body)),
        20 => {
            let access = SourceAccess::from_header(body).ok();
            if let Some(access) = access {
                let header = access.to_header().expect("it was a header");
                assert_eq!(SourceAccess::from_header(header.as_bytes()).ok(), Some(access));
            }
        }
        9 => drop(round_trip::<action::Listing>(body)),
        10 => drop(round_trip::<action::SetMode>(body)),
        11 => drop(round_trip::<action::Join>(body).map(|join| join.signed_text())),
        12 => drop(round_trip::<action::Joined>(body)),
        13 => drop(round_trip::<action::Nodes>(body)),
        14 => drop(round_trip::<ErrorBody>(body).map(ErrorBody::into_error)),
        15 => drop(round_trip::<action::Entry>(body)),
        16 => drop(round_trip::<FsckStep>(body)),
        17 => drop(round_trip::<FsckResult>(body)),
        _ => drop(round_trip::<ObjectPage>(body)),
    }
});
