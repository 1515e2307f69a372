//! The bytes of an object, in reads of one block or of several.

/// Reads an object. Every function from an offset and a length to bytes is such a reader.
pub trait ReadObject {
    /// Bytes that were read. They are folded where they lie, and their byte order may be changed there.
    type Bytes: AsMut<[u8]>;

    /// Gives so many bytes from an offset: fewer at the end of the object, and `None` if the object cannot be read.
    fn read(&mut self, offset: u64, length: usize) -> Option<Self::Bytes>;

    /// Whether one long read is faster than several short ones.
    fn reads_long(&self) -> bool {
        false
    }
}

impl<F: FnMut(u64, usize) -> Option<B>, B: AsMut<[u8]>> ReadObject for F {
    type Bytes = B;

    fn read(&mut self, offset: u64, length: usize) -> Option<B> {
        self(offset, length)
    }
}

/// Bytes of the longest read of several blocks.
pub const LONGEST_READ: usize = 4 << 20;

/// Gives blocks of an object, and reads one or many at once.
pub(crate) struct BlockReader<'a, R: ReadObject> {
    from: &'a mut R,
    /// The bytes that were read last, and their offset in the object.
    held: Option<(u64, R::Bytes)>,
}

impl<'a, R: ReadObject> BlockReader<'a, R> {
    pub fn new(from: &'a mut R) -> BlockReader<'a, R> {
        BlockReader { from, held: None }
    }

    /// The block of so many bytes at an offset. `after`: how many bytes behind it are folded next. `None` if the object has not that many
    /// bytes or cannot be read.
    pub fn block(&mut self, offset: u64, length: usize, after: u64) -> Option<&mut [u8]> {
        let held = self
            .held
            .as_mut()
            .and_then(|(start, bytes)| within(*start, bytes.as_mut().len(), offset, length));
        let start = match held {
            Some(start) => start,
            None => {
                // The old memory is free for the new bytes.
                self.held = None;
                let after = usize::try_from(after).unwrap_or(usize::MAX);
                let further =
                    if self.from.reads_long() { LONGEST_READ.saturating_sub(length).min(after) } else { 0 };
                self.held = Some((offset, self.from.read(offset, length + further)?));
                0
            }
        };
        let (_, bytes) = self.held.as_mut()?;
        bytes.as_mut().get_mut(start..start + length)
    }
}

/// Where a block begins in the bytes that are held. `None` if it does not lie in them.
fn within(held: u64, bytes: usize, offset: u64, length: usize) -> Option<usize> {
    let start = usize::try_from(offset.checked_sub(held)?).ok()?;
    (start.checked_add(length)? <= bytes).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An object whose bytes are the low bytes of their offsets, and the reads of it.
    struct Numbered<'a> {
        object: &'a [u8],
        long: bool,
        reads: Vec<(u64, usize)>,
    }

    impl ReadObject for Numbered<'_> {
        type Bytes = Vec<u8>;

        fn read(&mut self, offset: u64, length: usize) -> Option<Vec<u8>> {
            self.reads.push((offset, length));
            let there = self.object.get(offset as usize..)?;
            Some(there[..there.len().min(length)].to_vec())
        }

        fn reads_long(&self) -> bool {
            self.long
        }
    }

    #[test]
    fn several_blocks_come_from_one_long_read() {
        let object: Vec<u8> = (0..10_000_usize).map(|at| at as u8).collect();
        for long in [false, true] {
            let mut from = Numbered { object: &object, long, reads: Vec::new() };
            let mut reader = BlockReader::new(&mut from);
            for at in (0..9_000).step_by(1_000) {
                let block = reader.block(at as u64, 1_000, 8_000 - at as u64).map(|block| block.to_vec());
                assert_eq!(block.as_deref(), object.get(at..at + 1_000));
            }
            // Another part, whose end is that of the object.
            assert_eq!(
                reader.block(9_990, 10, 500).map(|block| block.to_vec()).as_deref(),
                object.get(9_990..)
            );
            assert_eq!(reader.block(9_995, 10, 0), None, "the object ends before");
            let reads = if long {
                vec![(0, 9_000), (9_990, 510), (9_995, 10)]
            } else {
                (0..9).map(|k| (1_000 * k, 1_000)).chain([(9_990, 10), (9_995, 10)]).collect()
            };
            assert_eq!(from.reads, reads);
        }
    }

    #[test]
    fn a_read_has_a_largest_length() {
        let object = vec![0; LONGEST_READ + 10];
        let mut from = Numbered { object: &object, long: true, reads: Vec::new() };
        let mut reader = BlockReader::new(&mut from);
        assert_eq!(reader.block(0, 6, u64::MAX).map(|block| block.len()), Some(6));
        assert_eq!(
            reader.block(6, LONGEST_READ + 1, u64::MAX).map(|block| block.len()),
            Some(LONGEST_READ + 1)
        );
        assert_eq!(from.reads, [(0, LONGEST_READ), (6, LONGEST_READ + 1)]);
    }
}
