//! Reading and writing saved states: little-endian numbers and length-prefixed bytes.
//!
//! A state may come from another machine, so reading never panics and never allocates more than there is.

use crate::KernelError;

/// Reads a saved state from front to back.
#[derive(Clone, Debug)]
pub struct StateReader<'a> {
    kernel: &'static str,
    rest: &'a [u8],
}

impl<'a> StateReader<'a> {
    /// A reader; `kernel` names the owner in errors.
    pub const fn new(kernel: &'static str, state: &'a [u8]) -> StateReader<'a> {
        StateReader { kernel, rest: state }
    }

    /// The error of this state, for checks of the caller's own.
    pub fn bad(&self, why: impl Into<String>) -> KernelError {
        KernelError::BadState { kernel: self.kernel, why: why.into() }
    }

    /// What has not been read yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `n` bytes.
    ///
    /// # Errors
    /// The error is [`KernelError::BadState`] if fewer than `n` bytes are left.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], KernelError> {
        match self.rest.split_at_checked(n) {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(head)
            }
            None => Err(self.bad(format!("it ends {} bytes early", n - self.rest.len()))),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], KernelError> {
        let mut out = [0; N];
        out.copy_from_slice(self.bytes(N)?);
        Ok(out)
    }

    /// One byte, 0 or 1.
    ///
    /// # Errors
    /// The error is [`KernelError::BadState`] if no byte is left, or if the byte is neither 0 nor 1.
    pub fn flag(&mut self) -> Result<bool, KernelError> {
        match self.array::<1>()?[0] {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.bad(format!("a flag is {other}"))),
        }
    }

    /// An unsigned 64-bit number.
    ///
    /// # Errors
    /// The error is [`KernelError::BadState`] if fewer than 8 bytes are left.
    pub fn u64(&mut self) -> Result<u64, KernelError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A signed 128-bit number.
    ///
    /// # Errors
    /// The error is [`KernelError::BadState`] if fewer than 16 bytes are left.
    pub fn i128(&mut self) -> Result<i128, KernelError> {
        Ok(i128::from_le_bytes(self.array()?))
    }

    /// An f64, by its bits.
    ///
    /// # Errors
    /// The error is [`KernelError::BadState`] if fewer than 8 bytes are left.
    pub fn f64(&mut self) -> Result<f64, KernelError> {
        Ok(f64::from_bits(self.u64()?))
    }

    /// Bytes behind their length.
    ///
    /// # Errors
    /// The error is [`KernelError::BadState`] if the length or so many bytes behind it are not there.
    pub fn blob(&mut self) -> Result<&'a [u8], KernelError> {
        let n = self.u64()?;
        let n = usize::try_from(n).map_err(|_| self.bad("a length is beyond memory"))?;
        self.bytes(n)
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// The error is [`KernelError::BadState`] if bytes are left over.
    pub fn end(self) -> Result<(), KernelError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.bad(format!("{} bytes too many", self.rest.len())))
        }
    }
}

/// Appends what [`StateReader`] reads.
pub trait StateWriter {
    /// One byte, 0 or 1.
    fn put_flag(&mut self, flag: bool);
    /// An unsigned 64-bit number.
    fn put_u64(&mut self, n: u64);
    /// A signed 128-bit number.
    fn put_i128(&mut self, n: i128);
    /// An f64, by its bits.
    fn put_f64(&mut self, x: f64);
    /// Bytes behind their length.
    fn put_blob(&mut self, bytes: &[u8]);
}

impl StateWriter for Vec<u8> {
    fn put_flag(&mut self, flag: bool) {
        self.push(u8::from(flag));
    }
    fn put_u64(&mut self, n: u64) {
        self.extend_from_slice(&n.to_le_bytes());
    }
    fn put_i128(&mut self, n: i128) {
        self.extend_from_slice(&n.to_le_bytes());
    }
    fn put_f64(&mut self, x: f64) {
        self.put_u64(x.to_bits());
    }
    fn put_blob(&mut self, bytes: &[u8]) {
        self.put_u64(bytes.len() as u64);
        self.extend_from_slice(bytes);
    }
}
