//! NumPy's `.npy`, versions 1 to 3 (NumPy Enhancement Proposal 1 and `numpy.lib.format`): a header that is a Python
//! dictionary, and the elements.

use std::sync::Arc;

use gristmill_kernel::{ByteOrder, DType};

use crate::FormatError;
use crate::dataset::{Dataset, Format, Kind};
use crate::raw::{ElementRun, one_variable};
use crate::source::{self, Source};

/// The first bytes of a file.
pub const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Most bytes of a header; NumPy's own default bound.
const MAX_HEADER: u64 = 64 << 10;

/// Opens a file that begins with [`MAGIC`]: a dataset with one variable, `data`. Arrays in Fortran order keep their
/// shape; their axes are put in order when chunks are decoded.
pub fn open(source: Arc<dyn Source>) -> Result<Dataset, FormatError> {
    let start = source::read(&*source, 0, source.len().min(12), 12)?;
    let Some([_, _, _, _, _, _, version, _, a, b]) = start.first_chunk::<10>() else {
        return Err(bad("it is cut off"));
    };
    let (at, bytes) = match (version, start.get(8..12)) {
        (1, _) => (10, u64::from(u16::from_le_bytes([*a, *b]))),
        (2 | 3, Some(&[a, b, c, d])) => (12, u64::from(u32::from_le_bytes([a, b, c, d]))),
        _ => return Err(bad(format!("version {version} is not known"))),
    };
    FormatError::limit("bytes of a .npy header", bytes, MAX_HEADER)?;
    let text = source::read(&*source, at, bytes, MAX_HEADER).map_err(|_| bad("its header is cut off"))?;
    let header = Header::parse(&String::from_utf8_lossy(&text))?;
    let (kind, order) = kind_of(&header.descr);
    let axes = header.fortran.then(|| (0..header.shape.len()).rev().map(|axis| axis as u8).collect());
    let run = ElementRun { begin: at + bytes, stride: None, axes };
    Ok(one_variable(Format::Npy, source, kind, order, &header.shape, run))
}

struct Header {
    descr: String,
    fortran: bool,
    shape: Vec<u64>,
}

impl Header {
    /// Reads the dictionary that NumPy writes: three keys, strings in either quotes, a tuple of lengths.
    fn parse(text: &str) -> Result<Header, FormatError> {
        let value = |key: &str| {
            let at = [format!("'{key}'"), format!("\"{key}\"")]
                .iter()
                .find_map(|quoted| text.split_once(quoted.as_str()));
            let (_, rest) = at.ok_or_else(|| bad(format!("its header has no {key}")))?;
            let rest =
                rest.trim_start().strip_prefix(':').ok_or_else(|| bad("its header is not a dictionary"))?;
            Ok(rest.trim_start())
        };
        let descr: &str = value("descr")?;
        let descr = match descr.chars().next() {
            Some(quote @ ('\'' | '"')) => {
                descr.get(1..).and_then(|rest| rest.split_once(quote)).map(|(descr, _)| descr.to_owned())
            }
            Some('[') => Some("a record of several fields".to_owned()),
            _ => None,
        };
        let fortran = value("fortran_order")?;
        let fortran = match (fortran.starts_with("True"), fortran.starts_with("False")) {
            (true, _) => true,
            (_, true) => false,
            _ => return Err(bad("its header does not say whether it is in Fortran order")),
        };
        let shape = value("shape")?.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let (shape, _) = shape.ok_or_else(|| bad("its header has no shape"))?;
        let shape = shape
            .split(',')
            .map(|length| length.trim().trim_end_matches('L'))
            .filter(|length| !length.is_empty());
        let shape = shape.map(str::parse).collect::<Result<Vec<u64>, _>>();
        Ok(Header {
            descr: descr.ok_or_else(|| bad("its header has no type"))?,
            fortran,
            shape: shape.map_err(|_| bad("its shape has an invalid length"))?,
        })
    }
}

/// Returns the kind and the byte order of a NumPy code such as `<f8`.
pub fn kind_of(descr: &str) -> (Kind, ByteOrder) {
    let (order, code) = match descr.split_at_checked(1) {
        Some(("<" | "|" | "=", code)) => (ByteOrder::Little, code),
        Some((">", code)) => (ByteOrder::Big, code),
        _ => (ByteOrder::Little, descr),
    };
    let dtype = match code {
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "f4" => DType::F32,
        "f8" => DType::F64,
        _ => return (Kind::Other(other_kind(descr, code)), order),
    };
    (Kind::Number(dtype), order)
}

fn other_kind(descr: &str, code: &str) -> String {
    let what = match code.chars().next() {
        Some('b') => "booleans",
        Some('f') => "floats of another width",
        Some('c') => "complex numbers",
        Some('S' | 'U' | 'a') => "strings of a fixed length",
        Some('O') => "Python objects",
        Some('M') => "dates",
        Some('m') => "durations",
        Some('V') => "opaque bytes",
        _ => return descr.to_owned(),
    };
    format!("{what} ({descr})")
}

fn bad(why: impl Into<String>) -> FormatError {
    FormatError::damaged(".npy", why)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(header: &str, elements: &[u8]) -> Arc<dyn Source> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&[1, 0]);
        bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(elements);
        Arc::new(bytes)
    }

    #[test]
    fn fortran_order_is_put_in_order() {
        // Columns first: element (i, j) is i + 10 j.
        let header = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n";
        let stored: Vec<u8> = [0i16, 1, 10, 11, 20, 21].iter().flat_map(|x| x.to_be_bytes()).collect();
        let dataset = open(file(header, &stored)).unwrap();
        let table = dataset.table("/data").unwrap();
        let (mut decoder, mut out) = (crate::Decoder::new(&table.array).unwrap(), Vec::new());
        dataset.read_chunk(&table, 0, &mut decoder, &mut out).unwrap();
        let wanted: Vec<u8> = [0i16, 10, 20, 1, 11, 21].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(out, wanted);
    }

    #[test]
    fn what_is_too_short_or_no_number_is_refused() {
        let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }";
        let dataset = open(file(header, &[0; 23])).unwrap();
        assert!(matches!(dataset.table("data"), Err(FormatError::PastEnd { .. })));
        let header = "{'descr': '|S5', 'fortran_order': False, 'shape': (), }";
        let dataset = open(file(header, &[0; 5])).unwrap();
        assert!(matches!(dataset.table("data"), Err(FormatError::Unsupported { .. })));
        let header = "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2,), }";
        assert!(matches!(open(file(header, &[])).unwrap().variables[0].kind, Kind::Other(_)));
    }

    proptest! {
        #[test]
        fn junk_is_refused_and_nothing_worse(header in ".{0,80}", rest in prop::collection::vec(any::<u8>(), 0..20)) {
            let _ = open(file(&header, &rest));
            let shape = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({header}), }}");
            let _ = open(file(&shape, &rest)).map(|dataset| dataset.table("data"));
        }
    }
}
