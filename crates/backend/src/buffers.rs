//! Memory that is used again. The system clears each page that it gives, which takes as long as a copy.

use std::sync::{Arc, Mutex, PoisonError};

/// Most buffers that wait to be used again.
const MAX_BUFFERS: usize = 16;

/// Buffers with less room are not kept.
const MIN_KEPT: usize = 256 << 10;

/// Buffers that wait to be used again.
#[derive(Default)]
pub struct Buffers(Mutex<Vec<Vec<u8>>>);

/// A buffer that goes back to where it came from.
pub struct Buffer {
    /// The bytes.
    pub bytes: Vec<u8>,
    home: Arc<Buffers>,
}

impl Buffers {
    /// An empty buffer with room for some bytes.
    pub fn take(self: &Arc<Buffers>, room: usize) -> Buffer {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A long buffer for few bytes would hold memory that nobody counts.
        let fits = |bytes: &Vec<u8>| bytes.capacity() >= room && bytes.capacity() / 2 <= room;
        let known = waiting.iter().position(fits).map(|at| waiting.swap_remove(at));
        drop(waiting);
        Buffer { bytes: known.unwrap_or_else(|| Vec::with_capacity(room)), home: self.clone() }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        let mut waiting = self.home.0.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes.capacity() >= MIN_KEPT && waiting.len() < MAX_BUFFERS {
            waiting.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_and_few_are_kept() {
        let buffers = Arc::new(Buffers::default());
        let mut first = buffers.take(1 << 20);
        first.bytes.push(7);
        let place = first.bytes.as_ptr();
        drop(first);
        let again = buffers.take(900_000);
        assert!(again.bytes.as_ptr() == place && again.bytes.is_empty());
        let many: Vec<Buffer> = (0..40).map(|_| buffers.take(1 << 20)).collect();
        drop((again, many));
        let waiting = || buffers.0.lock().unwrap_or_else(PoisonError::into_inner).len();
        assert_eq!(waiting(), MAX_BUFFERS);
        // A small one is new.
        drop(buffers.take(1000));
        assert_eq!(waiting(), MAX_BUFFERS);
    }
}
