//! Reading and writing of saved states: little-endian numbers and length-prefixed bytes.
//!
//! A state may come from another machine. So reading never panics and never allocates more than the state has bytes.

use crate::KernelError;

/// A reader of a saved state, from the first byte to the last.
#[derive(Clone, Debug)]
pub struct StateReader<'a> {
    kernel: &'static str,
    rest: &'a [u8],
}

impl<'a> StateReader<'a> {
    /// A reader of `state`. Errors name `kernel`.
    pub const fn new(kernel: &'static str, state: &'a [u8]) -> StateReader<'a> {
        StateReader { kernel, rest: state }
    }

    /// An error about this state, for checks by the caller.
    pub fn bad(&self, why: impl Into<String>) -> KernelError {
        KernelError::BadState { kernel: self.kernel, why: why.into() }
    }

    /// The bytes that were not read yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads the next `n` bytes.
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

    /// Reads one byte, 0 or 1.
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

    /// Reads an unsigned 64-bit number.
    ///
    /// # Errors
    /// The error is [`KernelError::BadState`] if fewer than 8 bytes are left.
    pub fn u64(&mut self) -> Result<u64, KernelError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Reads a signed 128-bit number.
    ///
    /// # Errors
    /// The error is [`KernelError::BadState`] if fewer than 16 bytes are left.
    pub fn i128(&mut self) -> Result<i128, KernelError> {
        Ok(i128::from_le_bytes(self.array()?))
    }

    /// Reads an f64 from its bits.
    ///
    /// # Errors
    /// The error is [`KernelError::BadState`] if fewer than 8 bytes are left.
    pub fn f64(&mut self) -> Result<f64, KernelError> {
        Ok(f64::from_bits(self.u64()?))
    }

    /// Reads a length and then that number of bytes.
    ///
    /// # Errors
    /// The error is [`KernelError::BadState`] if the length is missing, or if fewer bytes follow it.
    pub fn blob(&mut self) -> Result<&'a [u8], KernelError> {
        let n = self.u64()?;
        let n = usize::try_from(n).map_err(|_| self.bad("a length does not fit in memory"))?;
        self.bytes(n)
    }

    /// Checks that all bytes were read.
    ///
    /// # Errors
    /// The error is [`KernelError::BadState`] if bytes are left over.
    pub fn end(self) -> Result<(), KernelError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.bad(format!("it has {} bytes too many", self.rest.len())))
        }
    }
}

/// A writer of the fields that [`StateReader`] reads.
pub trait StateWriter {
    /// Appends one byte, 0 or 1.
    fn put_flag(&mut self, flag: bool);
    /// Appends an unsigned 64-bit number.
    fn put_u64(&mut self, n: u64);
    /// Appends a signed 128-bit number.
    fn put_i128(&mut self, n: i128);
    /// Appends the bits of an f64.
    fn put_f64(&mut self, x: f64);
    /// Appends the length of `bytes`, then the bytes.
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
