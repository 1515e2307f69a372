//! Recognition of files that are not text, whatever their names say.

use crate::FormatError;

/// Bytes at the beginning of a file in which a zero byte is looked for.
pub(crate) const BEGINNING: u64 = 4096;

const DECOMPRESS: &str = "decompress it first";

/// The first bytes of common files that cannot be read here, what such a file is, and what to do. Hardly any text or array
/// begins with them. At most eight bytes: the length of `open::START`.
const KNOWN: [(&[u8], &str, &str); 6] = [
    (b"\x1f\x8b", "compressed with gzip", DECOMPRESS),
    (b"BZh91AY&", "compressed with bzip2", DECOMPRESS),
    (b"\xfd7zXZ\0", "compressed with xz", DECOMPRESS),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", DECOMPRESS),
    (b"PK\x03\x04", "a ZIP archive, as .xlsx and a zipped Zarr are", "unpack it first"),
    (b"\x0e\x03\x13\x01", "an HDF4 file", "convert it to HDF5 or netCDF"),
];

/// A description and a remedy, if these are the first bytes of a common format that cannot be read here.
pub(crate) fn known(start: &[u8]) -> Option<String> {
    let found = KNOWN.iter().find(|(magic, _, _)| start.starts_with(magic));
    found.map(|(_, what, remedy)| format!("it is {what}; {remedy}"))
}

/// Checks that the beginning of a file may be that of delimited text.
///
/// # Errors
/// Returns [`FormatError::NotText`] for the first bytes of a common binary format, for UTF-16, and for a zero byte.
pub(crate) fn check(start: &[u8]) -> Result<(), FormatError> {
    let found = known(start).or_else(|| match start {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("it is text in UTF-16; convert it to UTF-8".to_owned()),
        _ => memchr::memchr(0, start)
            .map(|at| format!("it is binary, because byte {at} is zero; for plain numbers give their type")),
    });
    match found {
        Some(why) => Err(FormatError::NotText { why }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_files_are_named() {
        for (magic, what, remedy) in KNOWN {
            let start = [magic, b"more"].concat();
            assert!(magic.len() <= 8 && known(&start).is_some_and(|said| said.contains(what)));
            let error = check(&start).unwrap_err();
            assert!(error.is_usage() && error.to_string().contains(remedy), "{error}");
        }
    }

    #[test]
    fn binary_bytes_are_no_text_and_foreign_letters_are() {
        let error = check(b"1,2\n3\0,4\n").unwrap_err();
        assert!(error.to_string().contains("byte 5 is zero"), "{error}");
        let error = check(b"\xff\xfea\0,\0").unwrap_err();
        assert!(error.to_string().contains("UTF-16"), "{error}");
        for text in ["", "a,b\n1,2\n", "PK,BZh9\n1,2\n", "\u{feff}Länge,n\n1,2\n"] {
            assert!(check(text.as_bytes()).is_ok() && known(text.as_bytes()).is_none(), "{text:?}");
        }
        // Latin-1.
        assert!(check(b"L\xe4nge,n\n1,2\n").is_ok());
    }
}
