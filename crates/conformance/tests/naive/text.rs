//! References of kernels over lines and records: count, search, first and last.

use gristmill_conformance::Answer;
use gristmill_kernel::{KernelError, Position, RecordRule, Value};

use super::NaiveRequest;

/// Lists the position and the bytes of each element, record, or line with its newline. The position of a line is its
/// offset.
fn pieces<'a>(request: &NaiveRequest<'a>) -> Vec<(u64, &'a [u8])> {
    match (request.input.record, request.input.element) {
        (RecordRule::Lines, _) => {
            let mut offset = 0;
            let line = |line: &'a [u8]| {
                offset += line.len() as u64;
                (offset - line.len() as u64, line)
            };
            request.data.split_inclusive(|byte| *byte == b'\n').map(line).collect()
        }
        (_, Some(dtype)) => (0..).zip(request.data.chunks_exact(dtype.size())).collect(),
        _ => (0..).zip(request.data.chunks_exact(request.record_bytes())).collect(),
    }
}

fn without_newline(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

pub fn count(request: &NaiveRequest<'_>) -> u64 {
    let skipped = if request.skips() { request.nans.len() } else { 0 };
    (pieces(request).len() - skipped) as u64
}

pub fn first_or_last(request: &NaiveRequest<'_>) -> Result<Value, KernelError> {
    let pieces = pieces(request);
    let found = if request.kernel == "first" { pieces.first() } else { pieces.last() };
    let (at, bytes) = found.ok_or_else(|| request.empty())?;
    let value = match request.input.element {
        Some(dtype) => super::number(dtype, bytes).value(),
        None => match std::str::from_utf8(without_newline(bytes)) {
            Ok(text) => Value::Text(text.into()),
            Err(_) => Value::Bytes(without_newline(bytes).into()),
        },
    };
    let place = if request.input.record == RecordRule::Lines { "offset" } else { "index" };
    Ok(Value::Map(vec![(request.kernel, value), (place, (*at).into())]))
}

/// Whether a line matches a pattern of the tests.
fn matches(pattern: &str, line: &[u8]) -> bool {
    let has = |text: &[u8]| line.windows(text.len()).any(|part| part == text);
    match pattern {
        "a+K?" => line.contains(&b'a'),
        "^b|K$" => line.first() == Some(&b'b') || line.last() == Some(&b'K'),
        "AB" => line.to_ascii_lowercase().windows(2).any(|part| part == b"ab"),
        "a b" => has(b"a b"),
        "" => true,
        other => panic!("the pattern '{other}' has no reference"),
    }
}

pub fn grep(request: &NaiveRequest<'_>) -> Answer {
    let pattern = request.param("pattern").unwrap();
    let lines = pieces(request)
        .into_iter()
        .map(|(at, line)| (Position::of_record(at), without_newline(line).to_vec()));
    let mut rows: Vec<_> = lines.filter(|(_, line)| matches(pattern, line)).collect();
    let count = Value::from(rows.len() as u64);
    if request.flag("count_only") {
        rows.clear();
    }
    Answer { value: Ok(Value::Map(vec![("count", count)])), rows }
}

pub fn wc(request: &NaiveRequest<'_>) -> Value {
    let space = |byte: &u8| b" \t\n\x0b\x0c\r".contains(byte);
    let words = request.data.split(space).filter(|word| !word.is_empty()).count();
    let lines = request.data.iter().filter(|byte| **byte == b'\n').count();
    Value::Map(vec![
        ("lines", (lines as u64).into()),
        ("words", (words as u64).into()),
        ("bytes", (request.data.len() as u64).into()),
    ])
}
