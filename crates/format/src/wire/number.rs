//! Encoding of numbers and bytes.

use crate::FormatError;

pub fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends the difference of two numbers, modulo 2^64. Small differences of either sign are short.
pub fn put_change(out: &mut Vec<u8>, from: u64, to: u64) {
    let change = to.wrapping_sub(from);
    put(out, change << 1 ^ (((change as i64) >> 63) as u64));
}

pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A reader of the bytes that these functions write.
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub const fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    pub fn u8(&mut self) -> Result<u8, FormatError> {
        let (first, rest) = self.rest.split_first().ok_or_else(cut)?;
        self.rest = rest;
        Ok(*first)
    }

    pub fn number(&mut self) -> Result<u64, FormatError> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                // Each number has a single form, so that decoded bytes are encoded to the same bytes.
                return if bits == 0 && shift > 0 {
                    Err(bad("a number is longer than it need be"))
                } else {
                    Ok(number)
                };
            }
        }
        Err(bad("a number has more than 64 bits"))
    }

    pub fn u32(&mut self) -> Result<u32, FormatError> {
        u32::try_from(self.number()?).map_err(|_| bad("a number has more than 32 bits"))
    }

    pub fn change(&mut self, from: u64) -> Result<u64, FormatError> {
        let coded = self.number()?;
        Ok(from.wrapping_add(coded >> 1 ^ (coded & 1).wrapping_neg()))
    }

    /// Reads a count of items of at least `each` bytes, so that no more memory is allocated than bytes were received.
    pub fn count(&mut self, each: usize) -> Result<usize, FormatError> {
        let count = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if count.saturating_mul(each) > self.rest.len() {
            return Err(cut());
        }
        Ok(count)
    }

    pub fn bytes(&mut self) -> Result<&'a [u8], FormatError> {
        let count = self.count(1)?;
        self.exactly(count)
    }

    pub fn exactly(&mut self, count: usize) -> Result<&'a [u8], FormatError> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or_else(cut)?;
        self.rest = rest;
        Ok(bytes)
    }

    pub fn text(&mut self) -> Result<String, FormatError> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| bad("a name is not UTF-8"))
    }

    pub fn end(&self) -> Result<(), FormatError> {
        if self.rest.is_empty() { Ok(()) } else { Err(bad("there are bytes behind its end")) }
    }
}

pub fn bad(why: &str) -> FormatError {
    FormatError::table(why)
}

fn cut() -> FormatError {
    bad("it is cut off")
}
