//! Permission bits in messages: octal text, such as `"644"`. A JSON number is refused, because 644 could be octal or
//! decimal.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

/// Most octal digits that are read.
const MAX_DIGITS: usize = 6;

pub(crate) fn serialize<S: Serializer>(bits: &u16, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{bits:03o}"))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u16, D::Error> {
    from.deserialize_str(Octal)
}

struct Octal;

impl Visitor<'_> for Octal {
    type Value = u16;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("permission bits as text in octal, such as \"644\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u16, E> {
        let octal = text.len() <= MAX_DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
        let bits = if octal { u16::from_str_radix(text, 8).ok() } else { None };
        bits.ok_or_else(|| E::invalid_value(serde::de::Unexpected::Other("text that is not a mode"), &self))
    }
}

/// Permission bits that may be missing: null, or no field.
pub(crate) mod optional {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize, Serialize)]
    struct Bits(#[serde(with = "super")] u16);

    pub(crate) fn serialize<S: Serializer>(bits: &Option<u16>, to: S) -> Result<S::Ok, S::Error> {
        bits.map(Bits).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u16>, D::Error> {
        Ok(Option::<Bits>::deserialize(from)?.map(|bits| bits.0))
    }
}
