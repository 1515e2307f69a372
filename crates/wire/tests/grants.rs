//! Grants and passes are opened only if this cluster sealed them, if they are unchanged, and before they expire.
#![allow(clippy::unwrap_used)]

use gristmill_layout::{MAX_CYCLE, MAX_FILE_BYTES};
use gristmill_runtime::ErrorKind;
use gristmill_wire::{
    AttachedFile, Component, FileMap, FileReader, Grant, Key, MAX_CYCLE_BYTES, MAX_FILE_TARGETS,
    MAX_GRANT_BYTES, MAX_PASS_BYTES, Pass, Rights, TargetPlace, TreeSource, WireError, pass_of,
};
use proptest::prelude::*;

const NOW: u64 = 1_900_000_000;

fn target(number: u32) -> TargetPlace {
    TargetPlace { number, address: format!("127.0.0.1:{}", 7000 + number), version: 3 }
}

fn grant() -> Grant {
    let file = FileMap {
        id: "0123456789abcdef0123456789abcdef".into(),
        path: "/data.f64".into(),
        length: 800,
        unit: 64,
        first: 1,
        record: Some(8),
        segments: false,
        attached: None,
        targets: vec![target(0), target(1)],
    };
    Grant { principal: "alice".into(), rights: Rights::Read, file, expires: NOW }
}

fn key() -> Key {
    Key::from_bytes(&[9; 32])
}

/// Seals text with the key of the cluster.
fn sealed(text: &str) -> String {
    use base64::Engine;
    let body = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    let seal = key().sign(body.as_bytes());
    format!("{body}.{seal}.{}", pass("alice"))
}

fn pass(principal: &str) -> String {
    key().seal_pass(&Pass { principal: principal.into(), expires: NOW }).unwrap()
}

proptest! {
    #[test]
    fn grants_round_trip(
        (principal, path) in any::<(String, String)>(),
        rights in prop_oneof![Just(Rights::Read), Just(Rights::Write), Just(Rights::Manage)],
        id in "[0-9a-fA-F]{32}",
        length in prop_oneof![Just(0), Just(MAX_FILE_BYTES), 0..=MAX_FILE_BYTES],
        unit in prop_oneof![Just(1u64), 1..1u64 << 30],
        record in prop::option::of(any::<u64>()),
        targets in prop::collection::vec((any::<u32>(), any::<String>(), any::<u64>()), 1..6),
        first in any::<prop::sample::Index>(),
        expires in prop_oneof![Just(NOW), Just(u64::MAX), NOW..],
    ) {
        let first = first.index(targets.len()) as u32;
        let targets: Vec<_> = targets.into_iter()
            .map(|(number, address, version)| TargetPlace { number, address, version }).collect();
        let file = FileMap { id, path, length, unit, first, record, segments: false, attached: None, targets };
        prop_assert!(file.check().is_ok());
        let grant = Grant { principal, rights, file, expires };
        prop_assert_eq!(key().open(&key().seal(&grant).unwrap(), NOW).unwrap(), grant);
    }

    #[test]
    fn a_signature_fits_one_message_and_one_key(
        message in prop::collection::vec(any::<u8>(), 0..80),
        other in prop::collection::vec(any::<u8>(), 0..80),
        bytes in any::<[u8; 32]>(),
    ) {
        let signature = key().sign(&message);
        prop_assert!(key().verify(&message, &signature));
        prop_assert_eq!(key().verify(&other, &signature), other == message);
        prop_assert_eq!(Key::from_bytes(&bytes).verify(&message, &signature), bytes == [9; 32]);
    }
}

#[test]
fn a_change_of_any_byte_is_detected() {
    let sealed = key().seal(&grant()).unwrap();
    for at in 0..sealed.len() {
        for byte in [b'A', b'B', b'.', b'=', b' ', b'_', b'\0', sealed.as_bytes()[at] ^ 1] {
            let mut changed = sealed.clone().into_bytes();
            if changed[at] == byte {
                continue;
            }
            changed[at] = byte;
            let changed = String::from_utf8(changed).unwrap();
            let error = key().open(&changed, NOW).unwrap_err();
            assert!(matches!(error, WireError::Seal), "byte {at} to {byte}: {error}");
            assert_eq!(error.kind(), ErrorKind::Denied);
        }
    }
}

#[test]
fn a_part_of_a_grant_is_refused() {
    let sealed = key().seal(&grant()).unwrap();
    for end in 0..sealed.len() {
        assert!(matches!(key().open(&sealed[..end], NOW), Err(WireError::Seal)), "{end}");
    }
    for start in 1..sealed.len() {
        assert!(matches!(key().open(&sealed[start..], NOW), Err(WireError::Seal)), "{start}");
    }
    for more in ["A", "=", ".", " ", "\n"] {
        assert!(key().open(&format!("{sealed}{more}"), NOW).is_err());
        assert!(key().open(&format!("{more}{sealed}"), NOW).is_err());
    }
}

#[test]
fn a_grant_carries_the_pass_of_its_principal_and_no_other() {
    let sealed = key().seal(&grant()).unwrap();
    let carried = pass_of(&sealed).unwrap();
    let opened = key().open_pass(carried, NOW).unwrap();
    assert_eq!(opened, Pass { principal: "alice".into(), expires: NOW });
    let pass_of_bob = sealed.replace(carried, &pass("bob"));
    assert!(matches!(key().open(&pass_of_bob, NOW), Err(WireError::Seal)));
    assert_eq!(pass_of("body.seal"), None);
}

#[test]
fn a_pass_is_not_a_grant_and_a_grant_is_not_a_pass() {
    let (sealed, alice) = (key().seal(&grant()).unwrap(), pass("alice"));
    assert!(key().is_sealed(&sealed) && !key().is_sealed(&alice));
    assert!(matches!(key().open(&alice, NOW), Err(WireError::Seal)));
    let grant_alone: Vec<&str> = sealed.splitn(3, '.').take(2).collect();
    assert!(matches!(key().open_pass(&grant_alone.join("."), NOW), Err(WireError::Seal)));
    // The signed text of a pass differs from the signed text of a grant with the same body.
    let (body, seal) = alice.split_once('.').unwrap();
    assert!(!key().verify(body.as_bytes(), seal));
}

#[test]
fn a_pass_is_opened_only_unchanged_and_before_it_expires() {
    let sealed = pass("alice");
    for at in 0..sealed.len() {
        let mut changed = sealed.clone().into_bytes();
        changed[at] ^= 1;
        let Ok(changed) = String::from_utf8(changed) else { continue };
        assert!(matches!(key().open_pass(&changed, NOW), Err(WireError::Seal)), "byte {at}");
        assert!(matches!(key().open_pass(&sealed[..at], NOW), Err(WireError::Seal)), "{at} bytes");
    }
    assert!(matches!(key().open_pass(&sealed, NOW + 1), Err(WireError::Expired)));
    assert!(matches!(Key::from_bytes(&[8; 32]).open_pass(&sealed, NOW), Err(WireError::Seal)));
    let long = Pass { principal: "x".repeat(MAX_PASS_BYTES), expires: NOW };
    assert!(matches!(key().seal_pass(&long), Err(WireError::TooLong { .. })));
    assert!(matches!(key().open_pass(&"x".repeat(MAX_PASS_BYTES + 1), NOW), Err(WireError::TooLong { .. })));
}

#[test]
fn another_cluster_does_not_open_a_grant() {
    let mut other = [9; 32];
    other[31] ^= 1;
    let sealed = key().seal(&grant()).unwrap();
    assert!(matches!(Key::from_bytes(&other).open(&sealed, NOW), Err(WireError::Seal)));
}

#[test]
fn a_grant_is_valid_until_its_last_second() {
    let sealed = key().seal(&grant()).unwrap();
    assert!(key().open(&sealed, 0).is_ok());
    assert!(key().open(&sealed, NOW).is_ok());
    for late in [NOW + 1, u64::MAX] {
        let error = key().open(&sealed, late).unwrap_err();
        assert!(matches!(error, WireError::Expired), "{error}");
        assert_eq!(error.kind(), ErrorKind::Stale);
    }
}

#[test]
fn an_impossible_sealed_grant_is_refused() {
    let good = serde_json::to_value(grant()).unwrap();
    assert!(key().open(&sealed(&good.to_string()), NOW).is_ok());
    let with = |place: &str, value: serde_json::Value| {
        let mut changed = good.clone();
        let (parent, name) = place.rsplit_once('/').unwrap();
        changed.pointer_mut(parent).unwrap()[name] = value;
        key().open(&sealed(&changed.to_string()), NOW).unwrap_err()
    };
    let one = serde_json::to_value(target(0)).unwrap();
    let many: Vec<_> = std::iter::repeat_n(one, MAX_FILE_TARGETS + 1).collect();
    for (place, value) in [
        ("/extra", 1.into()),
        ("/file/extra", 1.into()),
        ("/rights", "all".into()),
        ("/expires", (-1).into()),
        ("/file/id", "../0123456789abcdef0123456789abc".into()),
        ("/file/id", "0".repeat(31).into()),
        ("/file/id", "é".repeat(16).into()),
        ("/file/targets", serde_json::json!([])),
        ("/file/targets", many.into()),
        ("/file/length", (MAX_FILE_BYTES + 1).into()),
        ("/file/unit", 0.into()),
        ("/file/unit", u64::MAX.into()),
        ("/file/first", 2.into()),
    ] {
        let error = with(place, value);
        assert!(matches!(error, WireError::Malformed { .. }), "{place}: {error}");
    }
    for nonsense in ["", "null", "{}", "[", "\u{0}"] {
        assert!(matches!(key().open(&sealed(nonsense), NOW), Err(WireError::Malformed { .. })));
    }
}

/// A grant with long texts for as many targets.
fn long_grant(targets: u32) -> Grant {
    let mut grant = grant();
    grant.file.path = format!("/{}", "p".repeat(4095));
    grant.principal = "p".repeat(255);
    grant.expires = u64::MAX;
    grant.file.targets = (0..targets)
        .map(|number| TargetPlace {
            number,
            address: "[2001:0db8:85a3:1234:5678:8a2e:0370:7334]:65535".into(),
            version: u64::MAX,
        })
        .collect();
    grant
}

#[test]
fn a_grant_with_the_longest_cycle_fits() {
    for targets in [1, 64, MAX_FILE_TARGETS as u32] {
        let mut grant = long_grant(targets);
        let bits = (targets as usize).ilog2().max(1) as usize;
        let length = MAX_CYCLE.min(8 * MAX_CYCLE_BYTES / bits);
        let cycle: Vec<u32> = (0..length as u32).map(|n| n.wrapping_mul(0x9e37_79b1) % targets).collect();
        (grant.file.unit, grant.file.first, grant.file.length) = (4 << 20, 0, (length as u64) << 22);
        let tree = TreeSource { url: "cephfs:///p".into(), ..TreeSource::default() };
        grant.file.attached = Some(Box::new(AttachedFile {
            tree,
            key: "k".repeat(4096),
            stamp: "s".repeat(1024),
            reader: FileReader::Everybody,
            settled: true,
            growing: false,
            components: vec![Component { end: u64::MAX, unit: 4 << 20, cycle }],
            access: None,
        }));
        let sealed = key().seal(&grant).unwrap();
        assert_eq!(key().open(&sealed, NOW).unwrap(), grant, "{targets}");
    }
}

#[test]
fn a_grant_for_the_most_targets_fits() {
    let mut grant = long_grant(MAX_FILE_TARGETS as u32);
    let sealed = key().seal(&grant).unwrap();
    assert!(sealed.len() <= MAX_GRANT_BYTES, "{}", sealed.len());
    assert_eq!(key().open(&sealed, NOW).unwrap(), grant);
    // A grant that is too long to open is not sealed.
    grant.file.path = "p".repeat(MAX_GRANT_BYTES);
    assert!(matches!(key().seal(&grant), Err(WireError::TooLong { .. })));
    assert!(matches!(key().open(&"A".repeat(MAX_GRANT_BYTES + 1), NOW), Err(WireError::TooLong { .. })));
}

#[test]
fn keys_are_read_from_their_file() {
    let text = "09".repeat(32);
    let sealed = key().seal(&grant()).unwrap();
    for text in [text.clone(), format!("{text}\n"), format!("  {text} \n")] {
        assert!(Key::from_hex(&text).unwrap().open(&sealed, NOW).is_ok());
    }
    let upper = Key::from_hex(&"AB".repeat(32)).unwrap();
    assert!(upper.verify(b"m", &Key::from_bytes(&[0xab; 32]).sign(b"m")));
    for wrong in ["", "09", &"09".repeat(33), &"0g".repeat(32), &"+9".repeat(32), &"é".repeat(32)] {
        assert!(Key::from_hex(wrong).is_none(), "{wrong}");
    }
    assert_eq!(format!("{:?}", key()), "Key(..)", "a log does not show the key");
}
