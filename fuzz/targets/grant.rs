//! Grants: as they come, and with a true seal around nonsense, as an older or newer node of the cluster might give.
#![no_main]

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gristmill_fuzz as _;
use gristmill_peers::shards;
use gristmill_wire::{Grant, Key, Pass};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let key = Key::from_bytes(&[7; 32]);
    if let Ok(text) = std::str::from_utf8(bytes) {
        // Nobody guesses a seal.
        assert!(key.open(text, 0).is_err());
    }
    let body = URL_SAFE_NO_PAD.encode(bytes);
    let mut sealed = format!("{body}.{}", key.sign(body.as_bytes()));
    // With the pass of its principal, where it has one that can be passed.
    if let Ok(Grant { principal, expires, .. }) = serde_json::from_slice(bytes)
        && let Ok(pass) = key.seal_pass(&Pass { principal, expires })
    {
        sealed = format!("{sealed}.{pass}");
    }
    let _ = key.open_pass(&String::from_utf8_lossy(bytes), 1_000);
    let Ok(grant) = key.open(&sealed, 1_000) else { return };
    assert!(grant.expires >= 1_000);
    assert!(grant.file.segments || grant.file.striped().is_ok(), "an opened grant has a layout");
    let nodes = shards(&grant.file);
    assert_eq!(nodes.iter().map(|node| node.targets.len()).sum::<usize>(), grant.file.targets.len());
    let again = key.seal(&grant).expect("an opened grant can be sealed");
    assert_eq!(key.open(&again, 1_000).expect("and opened"), grant);
});
