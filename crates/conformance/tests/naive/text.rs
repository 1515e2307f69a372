//! Lines and records: counted, searched, and the first and last of them.

use gristmill_conformance::Answer;
use gristmill_kernel::{KernelError, Position, RecordRule, Value};

use super::Asked;

/// Position and bytes of each element, record or line with its newline. The position of a line is its offset.
fn pieces<'a>(asked: &Asked<'a>) -> Vec<(u64, &'a [u8])> {
    match (asked.input.record, asked.input.element) {
        (RecordRule::Lines, _) => {
            let mut offset = 0;
            let line = |line: &'a [u8]| {
                offset += line.len() as u64;
                (offset - line.len() as u64, line)
            };
            asked.data.split_inclusive(|byte| *byte == b'\n').map(line).collect()
        }
        (_, Some(dtype)) => (0..).zip(asked.data.chunks_exact(dtype.size())).collect(),
        _ => (0..).zip(asked.data.chunks_exact(asked.record())).collect(),
    }
}

fn without_newline(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

pub fn count(asked: &Asked<'_>) -> u64 {
    let skipped = if asked.skips() { asked.nans.len() } else { 0 };
    (pieces(asked).len() - skipped) as u64
}

pub fn end(asked: &Asked<'_>) -> Result<Value, KernelError> {
    let pieces = pieces(asked);
    let found = if asked.kernel == "first" { pieces.first() } else { pieces.last() };
    let (at, bytes) = found.ok_or_else(|| asked.empty())?;
    let value = match asked.input.element {
        Some(dtype) => super::number(dtype, bytes).value(),
        None => match std::str::from_utf8(without_newline(bytes)) {
            Ok(text) => Value::Text(text.into()),
            Err(_) => Value::Bytes(without_newline(bytes).into()),
        },
    };
    let place = if asked.input.record == RecordRule::Lines { "offset" } else { "index" };
    Ok(Value::Map(vec![(asked.kernel, value), (place, (*at).into())]))
}

/// Whether a line has one of the patterns of the tests.
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

pub fn grep(asked: &Asked<'_>) -> Answer {
    let pattern = asked.param("pattern").unwrap();
    let lines =
        pieces(asked).into_iter().map(|(at, line)| (Position::of(at), without_newline(line).to_vec()));
    let mut rows: Vec<_> = lines.filter(|(_, line)| matches(pattern, line)).collect();
    let count = Value::from(rows.len() as u64);
    if asked.flag("count_only") {
        rows.clear();
    }
    Answer { value: Ok(Value::Map(vec![("count", count)])), rows }
}

pub fn wc(asked: &Asked<'_>) -> Value {
    let space = |byte: &u8| b" \t\n\x0b\x0c\r".contains(byte);
    let words = asked.data.split(space).filter(|word| !word.is_empty()).count();
    let lines = asked.data.iter().filter(|byte| **byte == b'\n').count();
    Value::Map(vec![
        ("lines", (lines as u64).into()),
        ("words", (words as u64).into()),
        ("bytes", (asked.data.len() as u64).into()),
    ])
}
