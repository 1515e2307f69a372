//! Answers as JSON. Integers beyond 2^53 and non-finite numbers are strings, so that no reader rounds or rejects
//! them. Bytes that are not UTF-8 are a list of numbers under their own key.

use gristmill_kernel::{Position, RowShape, RowValue, Value};
use gristmill_runtime::Report;
use serde_json::{Map, Value as Json, json};

/// Largest integer that every JSON reader keeps exactly.
const MAX_SAFE: i128 = 1 << 53;

/// An integer; a string if a reader might round it.
pub fn integer(n: i128) -> Json {
    match i64::try_from(n) {
        Ok(small) if n.abs() <= MAX_SAFE => json!(small),
        _ => Json::String(n.to_string()),
    }
}

/// A float: the shortest decimal that reads back as the same f64.
pub fn float(x: f64) -> Json {
    if x.is_nan() {
        json!("NaN")
    } else if x.is_infinite() {
        json!(if x > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        json!(x)
    }
}

/// A value of an answer.
pub fn value(value: &Value) -> Json {
    match value {
        Value::Int(n) => integer(*n),
        Value::Float(x) => float(*x),
        Value::Text(text) => json!(text),
        Value::Bytes(bytes) => json!({ "bytes": bytes }),
        Value::List(values) => Json::Array(values.iter().map(self::value).collect()),
        Value::Array(array) => json!({
            "type": array.dtype.name(),
            "shape": array.shape,
            "values": array.values().map(|one| self::value(&one)).collect::<Vec<_>>(),
        }),
        Value::Map(entries) => {
            Json::Object(entries.iter().map(|(key, value)| ((*key).to_owned(), self::value(value))).collect())
        }
    }
}

/// A row: `{"index": 3, "value": 4.5}` or `{"offset": 10, "line": "text"}`.
pub fn row(shape: &RowShape, at: Position, bytes: &[u8]) -> Json {
    let mut out = Map::new();
    out.insert(shape.position.to_owned(), integer(i128::from(shape.display_number(at))));
    match (shape.value, gristmill_kernel::Value::text_or_bytes(bytes)) {
        (RowValue::Element(dtype), _) => out.insert("value".into(), value(&dtype.value(bytes))),
        (RowValue::Line, Value::Text(text)) => out.insert("line".into(), json!(text)),
        (RowValue::Line, _) => out.insert("line_bytes".into(), json!(bytes)),
    };
    Json::Object(out)
}

/// The report of a request. It has lanes only for folds of this process, because storage nodes have their own.
pub fn report(report: &Report, folded_locally: bool) -> Json {
    let places: Vec<Json> = report
        .places
        .iter()
        .map(|place| {
            json!({
                "place": place.place,
                "node": place.node,
                "records": place.records.map(|n| integer(i128::from(n))),
                "bytes": integer(i128::from(place.bytes)),
                "why": place.why,
            })
        })
        .collect();
    let revisions: Vec<Json> = report
        .revisions
        .iter()
        .map(|revision| {
            json!({
                "nodes": revision.nodes,
                "place": revision.place,
                "after_seconds": revision.after.as_secs_f64(),
                "why": revision.why,
            })
        })
        .collect();
    let shortages: Vec<Json> = report
        .shortages
        .iter()
        .map(|shortage| json!({ "node": shortage.node, "others": shortage.others }))
        .collect();
    json!({
        "elapsed_seconds": report.elapsed.as_secs_f64(),
        "rounds": report.rounds,
        "lanes": folded_locally.then_some(report.lanes),
        "bytes_read": integer(i128::from(report.bytes_read)),
        "bytes_folded_in_storage": integer(i128::from(report.bytes_folded_in_storage)),
        "bytes_moved": integer(i128::from(report.bytes_moved)),
        "messages": integer(i128::from(report.messages)),
        "bytes_to_client": integer(i128::from(report.bytes_to_client)),
        "bytes_not_moved": integer(i128::from(report.bytes_not_moved)),
        "chunks_settled": integer(i128::from(report.chunks_settled)),
        "places": places,
        "revisions": revisions,
        "shortages": shortages,
    })
}
