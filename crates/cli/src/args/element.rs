//! The type of the elements of a file, as `--type` takes it.

use std::str::FromStr;

use gristmill_kernel::{ByteOrder, DType};

/// A type, and the byte order where its name says one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// The type.
    pub dtype: DType,
    /// The byte order, of `<f4` and `>f4`.
    pub order: Option<ByteOrder>,
}

impl FromStr for Element {
    type Err = String;

    /// Our names, NumPy's long ones (`float64`), and NumPy's codes: `<i8` has eight bytes there, as `int64`, while a bare `i8`
    /// has eight bits here.
    fn from_str(text: &str) -> Result<Element, String> {
        let (order, code) = match text.split_at_checked(1) {
            Some(("<", code)) => (Some(ByteOrder::Little), code),
            Some((">", code)) => (Some(ByteOrder::Big), code),
            Some(("|" | "=", code)) => (None, code),
            _ => {
                let long =
                    DType::ALL.into_iter().find(|dtype| dtype.name() == text || long_name(*dtype) == text);
                return match long.or_else(|| of_code(text)) {
                    Some(dtype) => Ok(Element { dtype, order: None }),
                    None => Err(unknown(text)),
                };
            }
        };
        of_code(code).map(|dtype| Element { dtype, order }).ok_or_else(|| unknown(text))
    }
}

/// As NumPy writes it out: `uint16`.
fn long_name(dtype: DType) -> String {
    let (kind, bits) = dtype.name().split_at(1);
    let kind = match kind {
        "f" => "float",
        "u" => "uint",
        _ => "int",
    };
    format!("{kind}{bits}")
}

/// The type of a code that counts bytes: `f4`.
fn of_code(code: &str) -> Option<DType> {
    let (kind, bytes) = code.split_at_checked(1)?;
    DType::ALL.into_iter().find(|dtype| dtype.name().starts_with(kind) && dtype.size().to_string() == bytes)
}

fn unknown(text: &str) -> String {
    let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
    format!("'{text}' is no type; use {}, or NumPy's names, as float64, int32 or '>f4'", names.join(" "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn our_names_and_those_of_numpy() {
        let read = |text: &str| text.parse::<Element>().map(|one| (one.dtype, one.order)).ok();
        for (text, dtype, order) in [
            ("f64", DType::F64, None),
            ("float64", DType::F64, None),
            ("f8", DType::F64, None),
            ("<f4", DType::F32, Some(ByteOrder::Little)),
            (">i2", DType::I16, Some(ByteOrder::Big)),
            ("int32", DType::I32, None),
            ("i4", DType::I32, None),
            ("uint8", DType::U8, None),
            ("|u1", DType::U8, None),
            // Eight bits here, and eight bytes where a code says the order of bytes.
            ("i8", DType::I8, None),
            ("<i8", DType::I64, Some(ByteOrder::Little)),
            ("=u8", DType::U64, None),
        ] {
            assert_eq!(read(text), Some((dtype, order)), "{text}");
        }
        for text in ["", "<", "f2", "float", "f16", "<f64", "double", "i16x", "ü8"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
