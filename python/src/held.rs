//! What must not be used, nor dropped, in a forked child.

use crate::errors::Failure;

/// Something that stands on threads, which a forked child does not have. Dropped there, it would wait for them; so
/// it is left alone.
pub struct Held<T> {
    value: Option<T>,
    process: u32,
}

impl<T> Held<T> {
    pub fn new(value: T) -> Held<T> {
        Held { value: Some(value), process: std::process::id() }
    }

    /// The value, in the process that made it.
    pub fn get(&self) -> Result<&T, Failure> {
        match &self.value {
            Some(value) if self.process == std::process::id() => Ok(value),
            _ => Err(Failure::usage(
                "this connection was made before the process was forked; make a new one in the child",
            )),
        }
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.value.take());
        }
    }
}
