//! A guard for values that must be neither used nor dropped in a forked child.

use crate::errors::Failure;

/// A value that needs threads, which a forked child does not have. A drop in the child would wait for them, so the
/// guard forgets the value there.
pub struct ForkGuard<T> {
    value: Option<T>,
    process: u32,
}

impl<T> ForkGuard<T> {
    pub fn new(value: T) -> ForkGuard<T> {
        ForkGuard { value: Some(value), process: std::process::id() }
    }

    /// The value, in the process that made it.
    ///
    /// # Errors
    ///
    /// Returns a usage failure in a forked child.
    pub fn get(&self) -> Result<&T, Failure> {
        match &self.value {
            Some(value) if self.process == std::process::id() => Ok(value),
            _ => Err(Failure::usage(
                "this connection was made before the process was forked; make a new one in the child",
            )),
        }
    }
}

impl<T> Drop for ForkGuard<T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.value.take());
        }
    }
}
