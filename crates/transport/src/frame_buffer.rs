//! Page-aligned memory for frames, which is used again.
//!
//! A kernel copies into it several times faster than into a large `Vec`, whose bytes begin 16 bytes after the start of
//! a page. Memory that was used before has its pages already.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

const PAGE: usize = 4096;

/// Most bytes of unused buffers that the process keeps: 16 MiB.
const MAX_KEPT: usize = 16 << 20;

static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// Buffer for one frame of [`FRAME`](crate::FRAME) bytes. It is kept for the next frame when its last `Bytes` is
/// dropped.
pub(crate) struct FrameBuffer {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl FrameBuffer {
    /// A buffer of `length` bytes, at most [`FRAME`](crate::FRAME), with arbitrary content.
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
