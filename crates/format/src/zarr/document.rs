//! JSON documents with the numbers that Python writes but JSON lacks: `NaN`, `Infinity` and `-Infinity` without quotes,
//! as zarr-python and xarray write and read them in attributes.

use serde_json::{Map, Value, json};

/// The numbers that JSON lacks, by name.
const NAMED: [(&str, f64); 3] = [
    ("-Infinity", f64::NEG_INFINITY),
    ("Infinity", f64::INFINITY),
    // Quiet and positive.
    ("NaN", f64::from_bits(0x7ff8_0000_0000_0000)),
];

/// The key of an object that represents such a number in a parsed document.
const KEY: &str = "\0float";

/// Parses a document.
///
/// # Errors
/// Returns an error if the bytes are not JSON with these numbers.
pub fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    match serde_json::from_slice(bytes) {
        Err(error) => match marked(bytes) {
            // Positions in errors are those of the document only if nothing was inserted.
            Some(marked) => serde_json::from_slice(&marked),
            None => Err(error),
        },
        parsed => parsed,
    }
}

/// Replaces each such number by an object. Returns `None` if the document has none.
fn marked(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len());
    let (mut rest, mut in_text, mut found) = (bytes, false, false);
    while let Some((first, behind)) = rest.split_first() {
        let name = NAMED.iter().find(|(name, _)| !in_text && rest.starts_with(name.as_bytes()));
        if let Some((name, _)) = name {
            out.extend_from_slice(json!({ KEY: name }).to_string().as_bytes());
            rest = &rest[name.len()..];
            found = true;
            continue;
        }
        out.push(*first);
        rest = behind;
        match first {
            b'"' => in_text = !in_text,
            // The byte after a backslash does not end a text.
            b'\\' if in_text => {
                let Some((escaped, behind)) = rest.split_first() else { break };
                out.push(*escaped);
                rest = behind;
            }
            _ => {}
        }
    }
    found.then_some(out)
}

/// Returns the number of a name.
pub fn named(name: &str) -> Option<f64> {
    NAMED.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

/// Returns the name of a number that JSON lacks.
fn name(json: &Value) -> Option<&str> {
    let object: &Map<String, Value> = json.as_object()?;
    object.get(KEY).filter(|_| object.len() == 1)?.as_str()
}

/// Returns whether a value is a number, finite or not.
pub fn is_number(json: &Value) -> bool {
    json.is_number() || name(json).is_some()
}

/// Returns a number, finite or not.
pub fn float(json: &Value) -> Option<f64> {
    json.as_f64().or_else(|| named(name(json)?))
}

/// Returns the text of a part of a document, as in a file.
pub fn written(json: &Value) -> String {
    NAMED
        .iter()
        .fold(json.to_string(), |text, (name, _)| text.replace(&json!({ KEY: name }).to_string(), name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn numbers_without_a_word_in_json() {
        let text = br#"{"a": NaN, "b": [1, -Infinity, Infinity], "c": "NaN, \"Infinity", "d": [NaN, "x"], "e": "\\"}"#;
        let parsed = parse(text).unwrap();
        assert!(float(&parsed["a"]).unwrap().is_nan());
        let list: Vec<f64> = parsed["b"].as_array().unwrap().iter().map(|one| float(one).unwrap()).collect();
        assert_eq!(list, [1.0, f64::NEG_INFINITY, f64::INFINITY]);
        assert_eq!(parsed["c"], "NaN, \"Infinity");
        assert!(!is_number(&parsed["c"]));
        assert_eq!(written(&parsed["d"]), "[NaN,\"x\"]");
        assert_eq!(parsed["e"], "\\");
    }

    #[test]
    fn what_is_no_json_stays_so() {
        for text in
            ["{\"a\": NaNs}", "{\"a\": Nan}", "{NaN: 1}", "{\"a\": -NaN}", "[NaN", "{\"a\": \"NaN}", "\"\\"]
        {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
