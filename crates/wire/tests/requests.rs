//! Requests round trip, and impossible requests are refused.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use gristmill_kernel::{ByteOrder, DType, Input};
use gristmill_runtime::ErrorKind;
use gristmill_wire::{
    FoldPlace, FoldRequest, InputSpec, MAX_DEPTH, MAX_FILE_TARGETS, MAX_PARAMS, MAX_REQUEST_BYTES, NodeShard,
    PROTOCOL, Param, RunRequest, WireError,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Numbers, with both ends of their range more often.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(u64::MAX), any::<u64>()]
}

fn spec() -> impl Strategy<Value = InputSpec> {
    (prop::option::of(any::<String>()), prop::option::of(number()), number(), any::<bool>())
        .prop_map(|(dtype, record, skip, big_endian)| InputSpec { dtype, record, skip, big_endian })
}

prop_compose! {
    fn fold()(
        grant in any::<String>(),
        kernel in any::<String>(),
        params in prop::collection::vec(any::<(String, String)>(), 0..4),
        input in spec(),
        max_record in number(),
        targets in prop::collection::vec(any::<u32>(), 0..5),
        rest in prop::collection::vec((any::<String>(), prop::collection::vec(any::<u32>(), 0..5)), 0..4),
        depth in 0..=MAX_DEPTH,
        round in prop_oneof![Just(u32::MAX), any::<u32>()],
        shared in prop::collection::vec(any::<u8>(), 0..64),
        ends in (number(), number()),
    ) -> FoldRequest {
        let mut request = FoldRequest::new(grant, kernel, params, input);
        request.max_record = max_record;
        request.targets = targets;
        request.rest = rest.into_iter().map(|(address, targets)| NodeShard { address, targets }).collect();
        (request.depth, request.round) = (depth, round);
        request.set_shared(&shared);
        request.select = (ends.0.min(ends.1), ends.0.max(ends.1));
        request
    }
}

proptest! {
    #[test]
    fn fold_requests_round_trip(request in fold(), shared in prop::collection::vec(any::<u8>(), 0..64)) {
        prop_assert_eq!(FoldRequest::decode(&request.encode().unwrap()).unwrap(), Some(request.clone()));
        let mut request = request;
        request.set_shared(&shared);
        prop_assert_eq!(request.shared().unwrap(), shared);
    }

    #[test]
    fn requests_by_path_round_trip(
        (kernel, path) in any::<(String, String)>(),
        input in spec(),
        range in prop::option::of((number(), prop::option::of(number()))),
        texts in prop::collection::btree_map(any::<String>(), any::<String>(), 0..4),
        (whole, flag) in any::<(u64, bool)>(),
        place in prop_oneof![Just(FoldPlace::Storage), Just(FoldPlace::Client), Just(FoldPlace::Osd), Just(FoldPlace::Auto)],
    ) {
        let params: BTreeMap<String, Param> =
            texts.into_iter().map(|(name, text)| (name, Param(text))).collect();
        let InputSpec { dtype, record, skip, big_endian } = input.clone();
        let request =
            RunRequest { gristmill: PROTOCOL, kernel, path, dtype, record, skip, big_endian, range, params, place };
        let mut value = serde_json::to_value(&request).unwrap();
        prop_assert_eq!(&RunRequest::decode(value.to_string().as_bytes()).unwrap(), &request);
        value["params"]["a number"] = json!(whole);
        value["params"]["a flag"] = json!(flag);
        let bytes = serde_json::to_vec(&value).unwrap();
        let read = RunRequest::decode(&bytes).unwrap();
        prop_assert_eq!(read.input(), input);
        let params = read.params();
        prop_assert_eq!(params.len(), request.params.len() + 2);
        prop_assert!(params.contains(&("a number".to_owned(), whole.to_string())));
        prop_assert!(params.contains(&("a flag".to_owned(), flag.to_string())));
        prop_assert_eq!(FoldRequest::decode(&bytes).unwrap(), None, "it is another kind of ticket");
    }

    #[test]
    fn random_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(RunRequest::decode(&bytes).is_err());
        prop_assert_eq!(FoldRequest::decode(&bytes).unwrap(), None);
        let fold = [br#"{"fold":"#.as_slice(), &bytes].concat();
        prop_assert!(FoldRequest::decode(&fold).is_err());
    }
}

#[test]
fn inputs_round_trip() {
    let mut inputs = vec![Input::lines(), Input::records(1).unwrap(), Input::records(u64::MAX).unwrap()];
    for dtype in DType::ALL {
        inputs.push(Input::elements(dtype));
        inputs.push(Input::typed_records(dtype, 3 * dtype.size() as u64).unwrap());
    }
    for input in inputs {
        for skip in [0, 1, u64::MAX] {
            for order in [ByteOrder::Little, ByteOrder::Big] {
                let input = input.with_header(skip);
                assert_eq!(InputSpec::new(&input, order).input().unwrap(), (input, order));
            }
        }
    }
}

#[test]
fn an_impossible_input_is_refused() {
    let spec = |dtype: Option<&str>, record| InputSpec {
        dtype: dtype.map(str::to_owned),
        record,
        ..InputSpec::default()
    };
    for wrong in [
        spec(Some("float64"), None),
        spec(Some(""), None),
        spec(Some("f64"), Some(0)),
        spec(Some("f64"), Some(12)),
        spec(None, Some(0)),
    ] {
        assert!(wrong.input().is_err(), "{wrong:?}");
    }
}

/// A fold request as JSON, which tests change.
fn fold_json() -> Value {
    let request = FoldRequest::new("g".into(), "sum".into(), vec![], InputSpec::default());
    serde_json::from_slice(&request.encode().unwrap()).unwrap()
}

fn refused(value: &Value) -> WireError {
    FoldRequest::decode(&serde_json::to_vec(value).unwrap()).unwrap_err()
}

fn run_json() -> Value {
    json!({"gristmill": 1, "kernel": "sum", "path": "/d", "type": "f64"})
}

fn run_refused(value: &Value) -> WireError {
    RunRequest::decode(&serde_json::to_vec(value).unwrap()).unwrap_err()
}

#[test]
fn unknown_fields_are_refused_by_name() {
    for place in ["", "/fold", "/fold/input"] {
        let mut value = fold_json();
        value.pointer_mut(place).unwrap()["extra"] = json!(1);
        let error = refused(&value);
        assert!(error.to_string().contains("extra"), "{place}: {error}");
        assert_eq!(error.kind(), ErrorKind::Usage);
    }
    let mut value = fold_json();
    value["fold"]["rest"] = json!([{"address": "a:1", "targets": [1], "extra": 1}]);
    assert!(refused(&value).to_string().contains("extra"));
    let mut value = run_json();
    value["extra"] = json!(1);
    assert!(run_refused(&value).to_string().contains("extra"));
}

#[test]
fn the_error_names_another_version_even_with_unknown_fields() {
    for extra in [false, true] {
        let (mut fold, mut run) = (fold_json(), run_json());
        (fold["fold"]["gristmill"], run["gristmill"]) = (json!(7), json!(7));
        if extra {
            (fold["fold"]["new"], run["new"]) = (json!([]), json!([]));
        }
        for error in [refused(&fold), run_refused(&run)] {
            assert!(matches!(error, WireError::Version { version: 7, supported: PROTOCOL, .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains("version 7") && text.contains(&format!("speaks {PROTOCOL}")), "{text}");
        }
    }
}

#[test]
fn a_request_that_is_too_long_is_refused() {
    let mut long = br#"{"fold":"#.to_vec();
    long.resize(MAX_REQUEST_BYTES + 1, b'[');
    for error in [FoldRequest::decode(&long).unwrap_err(), RunRequest::decode(&long).unwrap_err()] {
        let WireError::TooLong { bytes, max, .. } = error else { panic!("{error}") };
        assert_eq!((bytes, max), (MAX_REQUEST_BYTES + 1, MAX_REQUEST_BYTES));
    }
    // It is not encoded either.
    let mut request = FoldRequest::new("g".into(), "sum".into(), vec![], InputSpec::default());
    request.set_shared(&vec![0; MAX_REQUEST_BYTES]);
    assert!(matches!(request.encode(), Err(WireError::TooLong { .. })));
}

#[test]
fn deep_nesting_is_refused() {
    let deep = "[".repeat(100_000);
    assert!(RunRequest::decode(format!(r#"{{"gristmill":1,"params":{{"a":{deep}"#).as_bytes()).is_err());
    assert!(FoldRequest::decode(format!(r#"{{"fold":{deep}"#).as_bytes()).is_err());
    let deep = r#"{"fold":"#.repeat(100_000);
    assert!(FoldRequest::decode(deep.as_bytes()).is_err());
}

#[test]
fn counts_beyond_their_bounds_are_refused() {
    let set = |name: &str, content: Value| {
        let mut value = fold_json();
        value["fold"][name] = content;
        FoldRequest::decode(&serde_json::to_vec(&value).unwrap())
    };
    let many = |n: usize| Value::Array((0..n).map(|n| json!(n)).collect());
    let params = |n: usize| Value::Array((0..n).map(|n| json!([n.to_string(), ""])).collect());
    let nodes = |n: usize| Value::Array((0..n).map(|_| json!({"address": "a:1", "targets": []})).collect());
    assert!(set("targets", many(MAX_FILE_TARGETS)).is_ok());
    assert!(set("targets", many(MAX_FILE_TARGETS + 1)).is_err());
    assert!(set("rest", json!([{"address": "a:1", "targets": many(MAX_FILE_TARGETS + 1)}])).is_err());
    assert!(set("rest", nodes(MAX_FILE_TARGETS - 1)).is_ok());
    assert!(set("rest", nodes(MAX_FILE_TARGETS)).is_err());
    assert!(set("params", params(MAX_PARAMS)).is_ok());
    assert!(set("params", params(MAX_PARAMS + 1)).is_err());
    assert!(set("depth", json!(MAX_DEPTH)).is_ok());
    assert!(set("depth", json!(MAX_DEPTH + 1)).is_err());
    assert!(set("select", json!([3, 3])).is_ok());
    let error = set("select", json!([4, 3])).unwrap_err();
    assert!(error.to_string().contains("4 to 3"), "{error}");

    let mut run = run_json();
    run["params"] =
        (0..=MAX_PARAMS).map(|n| (n.to_string(), json!(n))).collect::<serde_json::Map<_, _>>().into();
    assert!(run_refused(&run).to_string().contains("more than 64 names"));
}

#[test]
fn other_values_of_parameters_are_refused() {
    for wrong in [json!(null), json!([1]), json!({"a": 1})] {
        let mut run = run_json();
        run["params"] = json!({"bins": wrong});
        let error = run_refused(&run).to_string();
        assert!(error.contains("a text, a number or a boolean for a parameter"), "{error}");
    }
}

#[test]
fn a_broadcast_that_is_not_base64_is_refused() {
    for wrong in ["*", "AA==", "AB", "A"] {
        let mut value = fold_json();
        value["fold"]["shared"] = json!(wrong);
        let request = FoldRequest::decode(&serde_json::to_vec(&value).unwrap()).unwrap().unwrap();
        assert!(request.shared().is_err(), "{wrong}");
    }
}
