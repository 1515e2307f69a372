//! The value of `--type`: the type of the elements of a file.

use std::str::FromStr;

use gristmill_kernel::{ByteOrder, DType};

/// A type, and the byte order if its name has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    pub dtype: DType,
    /// The byte order of names like `<f4` and `>f4`.
    pub order: Option<ByteOrder>,
}

impl FromStr for Element {
    type Err = String;

    /// Reads our names, NumPy's long names (`float64`) and NumPy's codes. As in NumPy, `<i8` has eight bytes (`int64`).
    /// A bare `i8` is our name and has eight bits.
    fn from_str(text: &str) -> Result<Element, String> {
        let (order, code) = match text.split_at_checked(1) {
            Some(("<", code)) => (Some(ByteOrder::Little), code),
            Some((">", code)) => (Some(ByteOrder::Big), code),
            Some(("|" | "=", code)) => (None, code),
            _ => {
                let long =
                    DType::ALL.into_iter().find(|dtype| dtype.name() == text || long_name(*dtype) == text);
                return match long.or_else(|| from_code(text)) {
                    Some(dtype) => Ok(Element { dtype, order: None }),
                    None => Err(unknown(text)),
                };
            }
        };
        from_code(code).map(|dtype| Element { dtype, order }).ok_or_else(|| unknown(text))
    }
}

/// NumPy's long name: `uint16`.
fn long_name(dtype: DType) -> String {
    let (kind, bits) = dtype.name().split_at(1);
    let kind = match kind {
        "f" => "float",
        "u" => "uint",
        _ => "int",
    };
    format!("{kind}{bits}")
}

/// The type of one of NumPy's codes, which count bytes: `f4`.
fn from_code(code: &str) -> Option<DType> {
    let (kind, bytes) = code.split_at_checked(1)?;
    DType::ALL.into_iter().find(|dtype| dtype.name().starts_with(kind) && dtype.size().to_string() == bytes)
}

fn unknown(text: &str) -> String {
    let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
    format!(
        "'{text}' is not a type; use {}, or NumPy's names such as float64, int32 or '>f4'",
        names.join(" ")
    )
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
