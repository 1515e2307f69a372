//! Cuts ranges of an object into requests: neighbours are read together, and long ranges in several requests at once.

use std::ops::Range;

/// Most bytes between two ranges that one request reads. The bytes between them are thrown away.
pub const MAX_GAP: u64 = 32 << 10;

/// Most bytes of one request.
pub const MAX_PIECE: u64 = 8 << 20;

/// One request: a range of the object, and the places where its bytes go.
pub(crate) struct Piece<'a> {
    /// The bytes of the request.
    pub range: Range<u64>,
    /// Offsets in `range`, and the buffers that are filled from there.
    pub targets: Vec<(usize, &'a mut [u8])>,
}

impl<'a> Piece<'a> {
    /// The only buffer, if it takes all bytes.
    pub fn whole(&mut self) -> Option<&mut [u8]> {
        match &mut *self.targets {
            [(0, buffer)] if buffer.len() as u64 == self.range.end - self.range.start => Some(buffer),
            _ => None,
        }
    }

    /// Copies the bytes of the request to their places.
    pub fn fill(&mut self, bytes: &[u8]) {
        for (at, buffer) in &mut self.targets {
            if let Some(from) = bytes.get(*at..*at + buffer.len()) {
                buffer.copy_from_slice(from);
            }
        }
    }
}

/// Cuts the reads of some buffers, each from an offset, into requests.
pub(crate) fn cut(reads: Vec<(u64, &mut [u8])>) -> Vec<Piece<'_>> {
    let mut all: Vec<(u64, &mut [u8])> = Vec::with_capacity(reads.len());
    for (mut start, buffer) in reads {
        for buffer in buffer.chunks_mut(MAX_PIECE as usize) {
            let len = buffer.len() as u64;
            all.push((start, buffer));
            start += len;
        }
    }
    all.sort_by_key(|(start, _)| *start);
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    for (start, buffer) in all {
        let end = start + buffer.len() as u64;
        match pieces.last_mut() {
            Some(piece)
                if start <= piece.range.end.saturating_add(MAX_GAP)
                    && end.max(piece.range.end) - piece.range.start <= MAX_PIECE =>
            {
                piece.range.end = piece.range.end.max(end);
                piece.targets.push(((start - piece.range.start) as usize, buffer));
            }
            _ => pieces.push(Piece { range: start..end, targets: vec![(0, buffer)] }),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use gristmill_backend::split_buffer;
    use proptest::prelude::*;

    use super::*;

    fn byte(at: u64) -> u8 {
        (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
    }

    /// Fills the pieces from an object whose byte at each offset is known.
    fn fill(pieces: &mut [Piece<'_>]) {
        for piece in pieces {
            let bytes: Vec<u8> = piece.range.clone().map(byte).collect();
            piece.fill(&bytes);
        }
    }

    proptest! {
        #[test]
        fn every_range_gets_its_bytes(
            ranges in proptest::collection::vec((0u64..300_000, 0u64..50_000), 0..20),
        ) {
            let ranges: Vec<Range<u64>> = ranges.into_iter().map(|(start, len)| start..start + len).collect();
            let mut out = vec![0; ranges.iter().map(|range| (range.end - range.start) as usize).sum()];
            let mut pieces = cut(split_buffer(&ranges, &mut out));
            for two in pieces.windows(2) {
                prop_assert!(two[0].range.start <= two[1].range.start);
            }
            fill(&mut pieces);
            drop(pieces);
            let wanted: Vec<u8> = ranges.iter().cloned().flatten().map(byte).collect();
            prop_assert!(out == wanted);
        }
    }

    #[test]
    fn neighbours_are_read_together_and_long_ranges_are_cut() {
        let mut out = vec![0; 30];
        let pieces = cut(split_buffer(&[0..10, 10..20, MAX_GAP + 20..MAX_GAP + 30], &mut out));
        assert_eq!((pieces.len(), pieces[0].range.clone()), (1, 0..MAX_GAP + 30));
        let pieces = cut(split_buffer(&[0..10, MAX_GAP + 11..MAX_GAP + 31], &mut out));
        assert_eq!(pieces.len(), 2);
        let long = 2 * MAX_PIECE + 5;
        let mut out = vec![0; long as usize];
        let mut pieces = cut(split_buffer(std::slice::from_ref(&(7..7 + long)), &mut out));
        let lengths: Vec<u64> = pieces.iter().map(|one| one.range.end - one.range.start).collect();
        assert_eq!(lengths, [MAX_PIECE, MAX_PIECE, 5]);
        assert!(pieces.iter_mut().all(|piece| piece.whole().is_some()));
    }
}
