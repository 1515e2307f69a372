//! Names that people and nodes give: addresses, URLs, paths, principals, modes, ids.
#![no_main]

use std::fmt::{Debug, Display};
use std::str::FromStr;

use gristmill_client::{Location, Url};
use gristmill_fuzz as _;
use gristmill_namespace::{DirPath, FileId, FilePath, Mode, Principal, TargetId};
use gristmill_transport::Address;
use gristmill_wire::Key;
use libfuzzer_sys::fuzz_target;

/// What can be read is shown so that it reads the same.
fn shown<T: FromStr<Err: Debug> + Display + PartialEq + Debug>(text: &str) -> Option<T> {
    let value: T = text.parse().ok()?;
    assert_eq!(value.to_string().parse::<T>().expect("what is shown can be read"), value);
    Some(value)
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = shown::<Address>(text).map(|address| address.is_local());
    let _ = shown::<Url>(text);
    let _ = Location::parse(text).map(|location| location.to_string());
    if let Some(path) = shown::<FilePath>(text) {
        assert!(!path.name().is_empty() && !path.name().contains('/'));
        assert_eq!(path.as_str(), text);
    }
    let _ = shown::<DirPath>(text).map(|dir| dir.is_root());
    let _ = shown::<Principal>(text);
    let _ = shown::<Mode>(text);
    let _ = shown::<FileId>(text);
    let _ = shown::<TargetId>(text);
    let _ = Key::from_hex(text);
});
