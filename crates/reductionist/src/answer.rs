//! The body of an answer.

use ciborium::Value;

use crate::{DataType, Request};

/// The result of a reduction.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduced {
    /// The elements, little-endian.
    pub bytes: Vec<u8>,
    /// The type of the elements.
    pub dtype: DataType,
    /// The lengths of the axes that were not reduced; empty for a single element.
    pub shape: Vec<u64>,
    /// The number of elements that are not missing: one for each element of the result, or a single one for `select`.
    pub count: Vec<i64>,
    shape_as_bytes: bool,
    count_as_bytes: bool,
}

impl Reduced {
    pub(crate) fn new(
        request: &Request,
        bytes: Vec<u8>,
        dtype: DataType,
        shape: Vec<u64>,
        count: Vec<i64>,
    ) -> Reduced {
        let shape_as_bytes = request.option_shape_as_bytes.unwrap_or(false);
        let count_as_bytes = request.option_count_as_bytes.unwrap_or(false);
        Reduced { bytes, dtype, shape, count, shape_as_bytes, count_as_bytes }
    }

    /// The answer in CBOR (RFC 8949): a map with `bytes`, `dtype`, `shape`, `shape_as_bytes`, `count`, `count_as_bytes` and
    /// `byte_order`. Shape and count are lists or, if the request asks for that, little-endian integers of 8 bytes.
    pub fn to_cbor(self) -> Vec<u8> {
        fn list<T: Copy + Into<Value>, const N: usize>(
            all: &[T],
            as_bytes: bool,
            bytes: impl Fn(T) -> [u8; N],
        ) -> [Value; 2] {
            match as_bytes {
                true => {
                    [Value::Array(Vec::new()), Value::Bytes(all.iter().flat_map(|one| bytes(*one)).collect())]
                }
                false => {
                    [Value::Array(all.iter().map(|one| (*one).into()).collect()), Value::Bytes(Vec::new())]
                }
            }
        }
        let [shape, shape_bytes] = list(&self.shape, self.shape_as_bytes, u64::to_le_bytes);
        let [count, count_bytes] = list(&self.count, self.count_as_bytes, i64::to_le_bytes);
        let entries = [
            ("bytes", Value::Bytes(self.bytes)),
            ("dtype", Value::from(self.dtype.name())),
            ("shape", shape),
            ("shape_as_bytes", shape_bytes),
            ("count", count),
            ("count_as_bytes", count_bytes),
            ("byte_order", Value::from("little")),
        ];
        let map = Value::Map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect());
        let mut out = Vec::new();
        // Writing to memory does not fail, and a map of such values is always CBOR.
        let written = ciborium::into_writer(&map, &mut out);
        debug_assert!(written.is_ok());
        out
    }
}
