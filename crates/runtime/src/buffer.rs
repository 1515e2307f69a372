//! Page-aligned buffers. A kernel copies into them several times faster than into a large `Vec`, whose bytes
//! begin 16 bytes behind a page.

use bytemuck::{Pod, Zeroable};

const PAGE: usize = 4096;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(4096))]
struct Page([u8; PAGE]);

/// Bytes that begin at a page boundary. The buffer grows and never shrinks.
#[derive(Default)]
pub(crate) struct Buffer {
    pages: Vec<Page>,
}

impl Buffer {
    /// The first `len` bytes. They are not cleared.
    pub fn get(&mut self, len: usize) -> &mut [u8] {
        let pages = len.div_ceil(PAGE);
        if pages > self.pages.len() {
            // A new vector, because the old pages need not be copied.
            self.pages = vec![Page::zeroed(); pages];
        }
        &mut bytemuck::cast_slice_mut(&mut self.pages)[..len]
    }
}
