//! Page-aligned memory for frames, used again and again.
//!
//! A kernel copies into it several times faster than into a large `Vec`, whose bytes begin 16 bytes behind a
//! page, and memory that was used before has its pages already.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

const PAGE: usize = 4096;

/// Most unused buffers kept by the process: 16 MiB.
const MAX_KEPT: usize = 16 << 20;

static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// Room for one frame of [`FRAME`](crate::FRAME) bytes. Goes back to the others when the last `Bytes` of it
/// is dropped.
pub(crate) struct FrameBuffer {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl FrameBuffer {
    /// A buffer of `length` bytes, at most [`FRAME`](crate::FRAME), with anything in them.
    pub fn new(length: usize) -> Self {
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let memory = kept.unwrap_or_else(|| vec![0; crate::FRAME + PAGE]);
        let start = memory.as_ptr().align_offset(PAGE).min(PAGE);
        Self { memory, start, length: length.min(crate::FRAME) }
    }

    pub fn get(&mut self) -> &mut [u8] {
        self.memory.get_mut(self.start..self.start + self.length).unwrap_or_default()
    }

    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for FrameBuffer {
    fn as_ref(&self) -> &[u8] {
        self.memory.get(self.start..self.start + self.length).unwrap_or_default()
    }
}

impl Drop for FrameBuffer {
    fn drop(&mut self) {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MAX_KEPT / crate::FRAME {
            kept.push(std::mem::take(&mut self.memory));
        }
    }
}
