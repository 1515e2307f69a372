//! Index pages of web servers: names of one level, which lead nowhere else.
#![no_main]

use gristmill_fuzz as _;
use gristmill_sources::names_below;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(page) = url::Url::parse("https://host:8080/some/folder/") else { return };
    for (name, _) in names_below(&page, &String::from_utf8_lossy(bytes)).into_iter().flatten() {
        assert!(!name.is_empty() && !name.contains('/') && name != "." && name != "..", "{name:?}");
    }
});
