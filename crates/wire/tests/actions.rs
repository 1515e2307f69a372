//! Bodies of actions, and errors in messages.
#![allow(clippy::unwrap_used)]

use std::fmt::Debug;

use gristmill_runtime::{ErrorKind, RunError};
use gristmill_wire::action::*;
use gristmill_wire::{
    AttachedFile, Component, ErrorBody, FileMap, FileReader, MAX_REQUEST_BYTES, MAX_RETRY_AFTER, TargetPlace,
    TreeSource, WireError,
};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

fn same<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: T) -> Result<(), TestCaseError> {
    prop_assert_eq!(decode::<T>("message", &encode(&value).unwrap()).unwrap(), value);
    Ok(())
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(u64::MAX), any::<u64>()]
}

fn reader() -> impl Strategy<Value = FileReader> {
    let user = |(uid, gid, groups)| FileReader::User { uid, gid, groups };
    prop_oneof![
        Just(FileReader::Everybody),
        Just(FileReader::Node),
        any::<(u32, u32, Vec<u32>)>().prop_map(user),
    ]
}

prop_compose! {
    fn attached()(
        (url, key, stamp) in any::<(String, String, String)>(),
        (endpoint, region) in any::<(Option<String>, Option<String>)>(),
        (anonymous, allow_local, without_change_time) in any::<(bool, bool, bool)>(),
        reader in reader(),
        components in prop::collection::vec((number(), number(), any::<Vec<u32>>()), 0..3),
    ) -> AttachedFile {
        let tree = TreeSource {
            url, endpoint, region, anonymous, allow_local, without_change_time, user_credentials: allow_local,
        };
        let components = components.into_iter().map(|(end, unit, cycle)| Component { end, unit, cycle }).collect();
        AttachedFile { tree, key, stamp, reader, settled: true, growing: false, components, access: None }
    }
}

prop_compose! {
    fn info()(
        (id, path, owner) in any::<(String, String, String)>(),
        (length, unit, created) in (number(), number(), number()),
        (first, mode, record, segments) in any::<(u32, u16, Option<u64>, bool)>(),
        attached in prop::option::of(attached().prop_map(Box::new)),
        targets in prop::collection::vec((any::<u32>(), any::<String>(), number()), 0..4),
    ) -> FileInfo {
        let targets = targets.into_iter()
            .map(|(number, address, version)| TargetPlace { number, address, version }).collect();
        FileInfo { file: FileMap { id, path, length, unit, first, record, segments, attached, targets }, owner, mode, created }
    }
}

proptest! {
    #[test]
    fn every_message_round_trips(
        info in info(),
        (a, b, c) in any::<(String, String, String)>(),
        (n, m) in (number(), number()),
        (number, mode) in any::<(u32, u16)>(),
        (record, targets, on) in any::<(Option<u64>, Option<u32>, Option<Vec<u32>>)>(),
        (flag, maybe) in any::<(bool, Option<u16>)>(),
        receipts in prop::collection::vec(any::<Option<(u64, Option<u64>, u64, Option<u32>, String)>>(), 0..4),
    ) {
        same(PathRequest { path: a.clone() })?;
        same(info.clone())?;
        same(Opened { info: info.clone(), grant: a.clone() })?;
        same(Create { path: a.clone(), unit: n, record, targets, on, mode: maybe, segments: flag })?;
        same(Created { file: info.file.clone(), grant: b.clone(), lease_seconds: m })?;
        same(Attempt { id: c.clone() })?;
        let receipts: Vec<_> = receipts.into_iter()
            .map(|receipt| receipt.map(|(length, data, version, sum, seal)| Receipt { length, data, version, sum, seal })).collect();
        same(Commit { id: c.clone(), length: n, receipts })?;
        same(List { path: a.clone(), after: flag.then(|| b.clone()), from: (!flag).then(|| c.clone()) })?;
        let source = TreeSource { url: a.clone(), ..TreeSource::default() };
        same(Attach { path: b.clone(), source: source.clone(), mode })?;
        let tree = Tree {
            path: a.clone(), source: source.clone(), owner: b.clone(), mode, attached: n, seen_by: vec![number],
            failed: flag.then(|| c.clone()),
        };
        same(Trees { trees: vec![tree] })?;
        same(SeeTree { source, names: vec![a.clone()], at: m, seal: c.clone() })?;
        same(SeenTree { why_not: flag.then(|| c.clone()) })?;
        let entries = vec![
            Entry { name: a.clone(), info: Some(info), unreadable: None },
            Entry { name: b.clone(), info: None, unreadable: flag.then(|| c.clone()) },
        ];
        same(Listing { entries, more: flag, next: maybe.map(|n| n.to_string()), may_lack_names: !flag })?;
        same(SetMode { path: a.clone(), mode })?;
        same(Join { target: a.clone(), address: b.clone(), without_store: flag, at: m, seal: c.clone() })?;
        same(Joined { number })?;
        same(Nodes { nodes: vec![Node { number, target: a.clone(), address: b.clone(), without_store: flag }] })?;
        same(ErrorBody { kind: a, message: b, retry_after: flag.then_some(number) })?;
    }

    #[test]
    fn random_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        prop_assert!(decode::<Create>("create", &bytes).is_err());
        prop_assert!(decode::<Commit>("commit", &bytes).is_err());
        prop_assert!(decode::<Join>("join", &bytes).is_err());
    }
}

#[test]
fn requests_with_unknown_fields_are_refused_by_name() {
    fn refused<T: DeserializeOwned + Debug>(json: &str) {
        let known = decode::<T>("message", json.as_bytes());
        assert!(known.is_ok(), "{json}: {known:?}");
        let error = decode::<T>("message", json.replacen('{', r#"{"extra":1,"#, 1).as_bytes()).unwrap_err();
        assert!(error.to_string().contains("extra"), "{error}");
        assert_eq!(error.kind(), ErrorKind::Usage);
    }
    refused::<PathRequest>(r#"{"path":"/a"}"#);
    refused::<Create>(r#"{"path":"/a","unit":1}"#);
    refused::<Attempt>(r#"{"id":"0"}"#);
    refused::<Commit>(r#"{"id":"0","length":1,"receipts":[null]}"#);
    refused::<List>(r#"{"path":"/"}"#);
    refused::<SetMode>(r#"{"path":"/a","mode":"644"}"#);
    refused::<Join>(r#"{"target":"0","address":"a:1","at":1,"seal":""}"#);
}

#[test]
fn modes_are_octal_text() {
    let set = |mode: &str| decode::<SetMode>("chmod", format!(r#"{{"path":"/a","mode":{mode}}}"#).as_bytes());
    for (text, bits) in [("\"644\"", 0o644), ("\"0600\"", 0o600), ("\"4\"", 4), ("\"777\"", 0o777)] {
        assert_eq!(set(text).unwrap().mode, bits, "{text}");
    }
    // A number could be octal or decimal, so it is refused.
    for wrong in
        ["420", "644", "null", "\"\"", "\"8\"", "\"rw\"", "\"+644\"", "\"0o644\"", "\"7777777\"", "[6]"]
    {
        let text = set(wrong).unwrap_err().to_string();
        assert!(text.contains("octal") && text.contains("\"644\""), "{wrong}: {text}");
    }
    let encoded = encode(&SetMode { path: "/a".into(), mode: 0o44 }).unwrap();
    assert_eq!(encoded, br#"{"path":"/a","mode":"044"}"#);
    let begin = |json: &str| decode::<Create>("create", json.as_bytes()).map(|create| create.mode);
    assert_eq!(begin(r#"{"path":"/a","unit":1}"#).unwrap(), None);
    assert_eq!(begin(r#"{"path":"/a","unit":1,"mode":null}"#).unwrap(), None);
    assert_eq!(begin(r#"{"path":"/a","unit":1,"mode":"640"}"#).unwrap(), Some(0o640));
    assert!(begin(r#"{"path":"/a","unit":1,"mode":640}"#).is_err());
}

#[test]
fn an_empty_body_is_null_and_a_long_body_is_refused() {
    decode::<()>("ping", b"").unwrap();
    decode::<()>("ping", b"null").unwrap();
    assert!(decode::<PathRequest>("stat", b"").is_err());
    let long = vec![b'['; MAX_REQUEST_BYTES + 1];
    assert!(matches!(decode::<PathRequest>("stat", &long), Err(WireError::TooLong { what: "stat", .. })));
}

#[test]
fn the_signed_text_depends_on_every_field() {
    let join =
        Join { target: "t".into(), address: "a:1".into(), without_store: false, at: 5, seal: "x".into() };
    for changed in [
        Join { target: "u".into(), ..join.clone() },
        Join { address: "a:2".into(), ..join.clone() },
        Join { at: 6, ..join.clone() },
        Join { without_store: true, ..join.clone() },
    ] {
        assert_ne!(changed.signed_text(), join.signed_text());
    }
    let receipt = |length, data, version| Receipt { length, data, version, sum: None, seal: String::new() };
    let mut texts = vec![receipt(2, None, 3).signed_text("f", 1), join.signed_text()];
    for (id, number) in [("g", 1), ("f", 2)] {
        texts.push(receipt(2, None, 3).signed_text(id, number));
    }
    for changed in [receipt(3, None, 3), receipt(2, None, 4), receipt(2, Some(2), 3), receipt(2, Some(1), 3)]
    {
        texts.push(changed.signed_text("f", 1));
    }
    let all = texts.len();
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), all, "{texts:?}");
}

#[test]
fn errors_round_trip() {
    for (kind, _) in ErrorKind::NAMES {
        let body = ErrorBody::new(kind, "what and why");
        let sent: ErrorBody = serde_json::from_slice(&serde_json::to_vec(&body).unwrap()).unwrap();
        let error = sent.into_error();
        assert_eq!((error.kind(), error.to_string()), (kind, "what and why".to_owned()));
        assert_eq!(ErrorBody::from(&error), body);
    }
    // A newer node may send unknown kinds.
    let error = ErrorBody::new(ErrorKind::Failed, "m");
    let error = ErrorBody { kind: "melted".into(), ..error }.into_error();
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Failed, "m".to_owned()));
    let error = RunError::from(WireError::Expired);
    assert_eq!(error.kind(), ErrorKind::Stale);
}

#[test]
fn a_refusal_has_the_time_of_the_next_try() {
    let sent = |json: &str| serde_json::from_str::<ErrorBody>(json).unwrap().into_error();
    let error = sent(r#"{"kind": "busy", "message": "m", "retry_after": 7}"#);
    assert_eq!(
        (error.kind(), error.retry_after(), error.to_string()),
        (ErrorKind::Busy, Some(7), "m".into())
    );
    // Another node forwards it.
    assert_eq!(ErrorBody::from(&error).into_error().retry_after(), Some(7));
    for (seconds, bounded) in [(0, 1), (60, 60), (u32::MAX, MAX_RETRY_AFTER)] {
        let error =
            ErrorBody { retry_after: Some(seconds), ..ErrorBody::new(ErrorKind::Busy, "m") }.into_error();
        assert_eq!(error.retry_after(), Some(bounded));
    }
    // A busy node that sends no time, and a time with an error of another kind.
    let error = sent(r#"{"kind": "busy", "message": "m"}"#);
    assert_eq!((error.kind(), error.retry_after()), (ErrorKind::Busy, None));
    assert_eq!(sent(r#"{"kind": "stale", "message": "m", "retry_after": 7}"#).retry_after(), None);
    let plain = serde_json::to_string(&ErrorBody::new(ErrorKind::Busy, "m")).unwrap();
    assert_eq!(plain, r#"{"kind":"busy","message":"m"}"#, "as older nodes send it");
}
