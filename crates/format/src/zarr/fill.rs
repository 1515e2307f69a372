//! Fill values in JSON.

use gristmill_kernel::DType;
use serde_json::Value;

use super::document;

/// Reads a fill value as a little-endian element. Returns `None` if it is not a number of the type. Version 2's `null`
/// is zero.
pub fn fill(json: Option<&Value>, dtype: DType) -> Option<Vec<u8>> {
    let json = json.unwrap_or(&Value::Null);
    if json.is_null() {
        return Some(vec![0; dtype.size()]);
    }
    if let Some(bits) = json.as_str().and_then(|text| text.strip_prefix("0x")) {
        // Version 3 allows the bits of a float, most significant digit first.
        let bits = u64::from_str_radix(bits, 16).ok()?.to_le_bytes();
        return bits.get(..dtype.size()).filter(|_| dtype.is_float()).map(<[u8]>::to_vec);
    }
    macro_rules! integer {
        ($t:ty) => {{
            // Some writers write integers as floats.
            let whole = json.as_f64().filter(|x| x.fract() == 0.0 && x.abs() <= 9_007_199_254_740_992.0);
            let number =
                json.as_i64().map(i128::from).or(json.as_u64().map(i128::from)).or(whole.map(|x| x as i128));
            <$t>::try_from(number?).ok()?.to_le_bytes().to_vec()
        }};
    }
    Some(match dtype {
        DType::I8 => integer!(i8),
        DType::I16 => integer!(i16),
        DType::I32 => integer!(i32),
        DType::I64 => integer!(i64),
        DType::U8 => integer!(u8),
        DType::U16 => integer!(u16),
        DType::U32 => integer!(u32),
        DType::U64 => integer!(u64),
        DType::F32 => match float(json)? {
            nan if nan.is_nan() => 0x7fc0_0000u32.to_le_bytes().to_vec(),
            x => (x as f32).to_le_bytes().to_vec(),
        },
        DType::F64 => float(json)?.to_le_bytes().to_vec(),
    })
}

/// Reads a number, or the name of a number that is not finite.
fn float(json: &Value) -> Option<f64> {
    json.as_str().map_or_else(|| document::float(json), document::named)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fill_values_of_every_form() {
        assert_eq!(fill(Some(&json!(-1)), DType::I16), Some(vec![0xff; 2]));
        assert_eq!(fill(Some(&json!(7.0)), DType::U8), Some(vec![7]));
        assert_eq!(fill(Some(&json!(u64::MAX)), DType::U64), Some(vec![0xff; 8]));
        assert_eq!(fill(Some(&json!(300)), DType::U8), None);
        assert_eq!(fill(None, DType::F32), Some(vec![0; 4]));
        assert_eq!(fill(Some(&json!("NaN")), DType::F32), Some(0x7fc0_0000u32.to_le_bytes().to_vec()));
        assert_eq!(
            fill(Some(&json!("-Infinity")), DType::F64),
            Some(f64::NEG_INFINITY.to_le_bytes().to_vec())
        );
        assert_eq!(fill(Some(&json!("0x7fc00001")), DType::F32), Some(0x7fc0_0001u32.to_le_bytes().to_vec()));
        assert_eq!(fill(Some(&json!("0x7fc00001")), DType::I32), None);
        assert_eq!(fill(Some(&json!(0.1)), DType::F64), Some(0.1f64.to_le_bytes().to_vec()));
    }
}
