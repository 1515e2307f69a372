//! Numbers in one column of lines of text.

use gristmill_kernel::DType;

use super::too_much;
use crate::FormatError;
use crate::filter::Column;

/// Fields that mean a missing number, in upper or lower case.
const MISSING: [&str; 8] = ["", "-", "na", "n/a", "nan", "null", "none", "?"];

/// Most bytes of a field that an error shows.
const SHOWN: usize = 40;

/// Appends the numbers of all lines that have data, 8 bytes each, little-endian. Missing floats are the canonical NaN.
///
/// # Errors
/// Returns [`FormatError::Field`] if a field is not a number. The line is counted from the chunk's first line.
pub fn elements(
    from: &[u8],
    column: Column,
    dtype: DType,
    room: usize,
    out: &mut Vec<u8>,
) -> Result<(), FormatError> {
    for (number, line) in (1..).zip(from.split(|byte| *byte == b'\n')) {
        if !has_data(line) {
            continue;
        }
        if room.saturating_sub(out.len()) < dtype.size() {
            return Err(too_much("text", room));
        }
        let field = fields(line, column.delimiter).nth(column.index as usize).unwrap_or_default();
        let bytes = match dtype {
            DType::I64 => integer(field).map(i64::to_le_bytes),
            DType::F64 if is_missing(field) => Some(f64::from_bits(0x7ff8_0000_0000_0000).to_le_bytes()),
            DType::F64 => float(field).map(f64::to_le_bytes),
            _ => None,
        };
        let Some(bytes) = bytes else {
            let text = String::from_utf8_lossy(field.get(..SHOWN).unwrap_or(field)).into_owned();
            let column = column.index.to_string();
            return Err(FormatError::Field { line: number, column, text, dtype: dtype.name() });
        };
        out.extend_from_slice(&bytes);
    }
    Ok(())
}

/// Returns whether a line has fields: it is neither blank nor a comment.
pub fn has_data(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    !line.is_empty() && line.first() != Some(&b'#')
}

/// Returns whether a field means a missing number.
pub fn is_missing(field: &[u8]) -> bool {
    MISSING.iter().any(|mark| mark.as_bytes().eq_ignore_ascii_case(field))
}

/// Reads a field as an integer of 64 bits.
pub fn integer(field: &[u8]) -> Option<i64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// Reads a field as the nearest float. Infinities are given by name.
pub fn float(field: &[u8]) -> Option<f64> {
    std::str::from_utf8(field).ok()?.parse().ok().filter(|x: &f64| !x.is_nan())
}

/// Returns the fields of a line, without the white space around them. A field in double quotes may have the delimiter.
/// A space as the delimiter means any run of white space.
pub fn fields(line: &[u8], delimiter: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line.trim_ascii_end());
    std::iter::from_fn(move || {
        let line = rest?.trim_ascii_start_of(delimiter);
        if delimiter == b' ' && line.is_empty() {
            rest = None;
            return None;
        }
        let quoted = line.strip_prefix(b"\"");
        let (field, behind) = match quoted.and_then(|inside| Some((inside, memchr::memchr(b'"', inside)?))) {
            Some((inside, end)) => (inside.get(..end)?, inside.get(end + 1..)?),
            None => (line, line),
        };
        let is_delimiter =
            |byte: &u8| if delimiter == b' ' { byte.is_ascii_whitespace() } else { *byte == delimiter };
        let at = behind.iter().position(is_delimiter);
        let field =
            if quoted.is_some() && field != line { field } else { line.get(..at.unwrap_or(line.len()))? };
        rest = at.and_then(|at| behind.get(at + 1..));
        Some(field.trim_ascii())
    })
}

/// Removal of white space before a field.
trait TrimStart {
    fn trim_ascii_start_of(&self, delimiter: u8) -> &[u8];
}

impl TrimStart for [u8] {
    fn trim_ascii_start_of(&self, delimiter: u8) -> &[u8] {
        let blank = |byte: &u8| byte.is_ascii_whitespace() && (*byte != delimiter || delimiter == b' ');
        self.get(self.iter().take_while(|byte| blank(byte)).count()..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str, delimiter: u8) -> Vec<String> {
        let text = |field: &[u8]| String::from_utf8(field.to_vec()).unwrap();
        fields(line.as_bytes(), delimiter).map(text).collect()
    }

    #[test]
    fn lines_are_split_as_people_write_them() {
        assert_eq!(split("1,2.5, x ,", b','), ["1", "2.5", "x", ""]);
        assert_eq!(split("\"a,b\",\"c\"\r", b','), ["a,b", "c"]);
        assert_eq!(split("  1   2\t3 ", b' '), ["1", "2", "3"]);
        assert_eq!(split("a\t\tb", b'\t'), ["a", "", "b"]);
        assert_eq!(split("\"open,2", b','), ["\"open", "2"]);
    }

    #[test]
    fn numbers_of_a_column_and_what_is_missing() {
        let text = b"1,2.5\n# a comment\n\n2,\n3,nan\n4,-1e400\n";
        let mut out = Vec::new();
        let column = |index| Column { index, delimiter: b',' };
        elements(text, column(0), DType::I64, 32, &mut out).unwrap();
        assert_eq!(out, [1i64, 2, 3, 4].map(i64::to_le_bytes).concat());
        out.clear();
        elements(text, column(1), DType::F64, 32, &mut out).unwrap();
        let nan = f64::from_bits(0x7ff8 << 48);
        assert_eq!(out, [2.5, nan, nan, f64::NEG_INFINITY].map(f64::to_le_bytes).concat());
        let error = elements(text, column(1), DType::I64, 32, &mut Vec::new()).unwrap_err();
        assert!(matches!(error, FormatError::Field { line: 1, .. }));
        assert!(elements(text, column(0), DType::I64, 31, &mut Vec::new()).is_err());
    }
}
