//! Chunks of data without an index, described by arithmetic instead of a list.

use crate::array::{Array, Edges};
use crate::filter::Filter;
use crate::{FormatError, VIRTUAL_CHUNK_BYTES, VIRTUAL_CHUNKS};

/// The location of an array whose elements are stored one after the other, with one distance between the indices of the
/// first stored axis. Only record variables of classic netCDF have gaps there, which hold other variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Offset of the first element, in bytes.
    pub begin: u64,
    /// Bytes from one index of the first stored axis to the next.
    pub stride: u64,
}

impl Rows {
    /// Returns the chunk shape for such elements, in the order of the array's axes. A chunk has whole rows of the
    /// leading stored axes, of at most [`VIRTUAL_CHUNK_BYTES`] together (in huge arrays a [`VIRTUAL_CHUNKS`]th of the
    /// array), or one row if that is longer. `axes` are the array's axes in the order in which they are stored; `None`
    /// is C order.
    pub(crate) fn chunk_shape(
        shape: &[u64],
        size: u64,
        stride: Option<u64>,
        axes: Option<&[u8]>,
    ) -> Vec<u64> {
        let stored = in_stored_order(shape, axes);
        let all = stored.iter().fold(size, |all, length| all.saturating_mul(*length));
        let most = VIRTUAL_CHUNK_BYTES.max(all / VIRTUAL_CHUNKS);
        let mut chunk = vec![1; stored.len()];
        // Bytes of one index of the axis, with all axes after it.
        let mut bytes = size;
        for (axis, length) in stored.iter().enumerate().rev() {
            let length = (*length).max(1);
            let fits = (most / bytes.max(1)).clamp(1, length);
            let gap = axis == 0 && stride.is_some_and(|stride| stride != bytes);
            if let Some(chunk) = chunk.get_mut(axis) {
                *chunk = if gap { 1 } else { fits };
            }
            if fits < length {
                break;
            }
            bytes = bytes.saturating_mul(length);
        }
        match axes {
            None => chunk,
            Some(axes) => {
                let mut out = vec![1; chunk.len()];
                for (axis, length) in axes.iter().zip(chunk) {
                    if let Some(out) = out.get_mut(usize::from(*axis)) {
                        *out = length;
                    }
                }
                out
            }
        }
    }

    /// Bytes of one index of the first stored axis, or of the whole array if it has no axes.
    fn row_bytes(array: &Array) -> u64 {
        let stored = in_stored_order(&array.shape, axes_of(array));
        let size = array.dtype.size() as u64;
        stored.iter().skip(1).fold(size, |all, length| all.saturating_mul(*length))
    }

    /// Whether other variables lie between two indices of the first stored axis.
    pub(crate) fn has_gap(&self, array: &Array) -> bool {
        self.stride != Rows::row_bytes(array)
    }

    /// Returns the offset of a chunk and its length, in bytes.
    pub(crate) fn location(&self, array: &Array, number: u64) -> Option<(u64, u64)> {
        let extent = array.extent(number)?;
        let bytes = crate::array::bytes_of(&extent.held, array.dtype)?;
        let axes = axes_of(array);
        let origin = in_stored_order(&extent.origin, axes);
        let stored = in_stored_order(&array.shape, axes);
        let mut inner = 0u64;
        for (at, length) in origin.iter().zip(&stored).skip(1) {
            inner = inner.checked_mul(*length)?.checked_add(*at)?;
        }
        let inner = inner.checked_mul(array.dtype.size() as u64)?;
        let leading = origin.first().copied().unwrap_or(0).checked_mul(self.stride)?;
        Some((self.begin.checked_add(leading)?.checked_add(inner)?, bytes))
    }

    /// Offset after the last byte.
    pub(crate) fn end(&self, array: &Array) -> Option<u64> {
        if array.chunks() == 0 {
            return Some(self.begin);
        }
        let last = in_stored_order(&array.shape, axes_of(array)).first().map_or(0, |length| length - 1);
        let leading = last.checked_mul(self.stride)?;
        self.begin.checked_add(leading)?.checked_add(Rows::row_bytes(array))
    }

    /// Checks that every chunk is one run of bytes, so that the locations are right.
    ///
    /// # Errors
    /// Returns [`FormatError::Table`] if a chunk is not one run of bytes.
    pub(crate) fn check(&self, array: &Array) -> Result<(), FormatError> {
        if array.edges != Edges::Clipped || array.stored != array.shape {
            return Err(FormatError::table(
                "data without an index has no chunks that are longer than the array",
            ));
        }
        if !matches!(array.filters.as_slice(), [] | [Filter::Transpose(_)]) {
            return Err(FormatError::table("data without an index has filters"));
        }
        let axes = axes_of(array);
        let (shape, chunk) = (in_stored_order(&array.shape, axes), in_stored_order(&array.chunk, axes));
        // After the first axis along which a chunk has more than one index, it has all indices of every axis.
        let mut whole = false;
        for (length, chunk) in shape.iter().zip(&chunk) {
            if whole && chunk < length {
                return Err(FormatError::table("a chunk without an index is not one run of bytes"));
            }
            whole |= *chunk > 1;
        }
        if chunk.first().is_some_and(|first| *first > 1) && self.stride != Rows::row_bytes(array) {
            return Err(FormatError::table("a chunk without an index has a gap"));
        }
        if self.stride < Rows::row_bytes(array) {
            return Err(FormatError::table("rows without an index overlap"));
        }
        Ok(())
    }
}

/// The order in which the array's axes are stored; `None` for C order.
fn axes_of(array: &Array) -> Option<&[u8]> {
    match array.filters.first() {
        Some(Filter::Transpose(axes)) => Some(axes),
        _ => None,
    }
}

fn in_stored_order(lengths: &[u64], axes: Option<&[u8]>) -> Vec<u64> {
    match axes {
        None => lengths.to_vec(),
        Some(axes) => axes.iter().map(|axis| lengths.get(usize::from(*axis)).copied().unwrap_or(1)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use gristmill_kernel::{ByteOrder, DType};
    use proptest::prelude::*;

    use super::*;

    fn array(shape: Vec<u64>, stride: Option<u64>, axes: Option<Vec<u8>>) -> Array {
        let chunk = Rows::chunk_shape(&shape, 8, stride, axes.as_deref());
        Array {
            dtype: DType::F64,
            order: ByteOrder::Big,
            stored: shape.clone(),
            shape,
            chunk,
            edges: Edges::Clipped,
            filters: axes.map(Filter::Transpose).into_iter().collect(),
            fill: vec![0; 8],
        }
    }

    proptest! {
        /// Chunks are one after the other in the file, do not overlap, and cover all of it.
        #[test]
        fn chunks_tile_the_bytes(
            shape in prop::collection::vec(0u64..700, 1..4),
            gap in 0u64..2,
            reversed in any::<bool>(),
        ) {
            let axes = reversed.then(|| (0..shape.len() as u8).rev().collect::<Vec<u8>>());
            let row = in_stored_order(&shape, axes.as_deref()).iter().skip(1).product::<u64>() * 8;
            let stride = row + 12 * gap;
            let array = array(shape, Some(stride), axes);
            array.check().unwrap();
            let rows = Rows { begin: 100, stride };
            rows.check(&array).unwrap();
            let mut places: Vec<_> =
                (0..array.chunks()).map(|number| rows.location(&array, number).unwrap()).collect();
            places.sort_unstable();
            let (mut at, mut all) = (100, 0);
            for (offset, bytes) in places {
                prop_assert!(offset >= at && offset <= at + 12, "{} after {}", offset, at);
                prop_assert!(bytes <= VIRTUAL_CHUNK_BYTES.max(8));
                at = offset + bytes;
                all += bytes;
            }
            prop_assert_eq!(all, array.shape.iter().product::<u64>() * 8);
            if all > 0 {
                prop_assert_eq!(rows.end(&array), Some(at));
            }
        }
    }

    #[test]
    fn rows_are_cut_at_about_a_quarter_of_a_mebibyte() {
        assert_eq!(array(vec![100, 200, 300], None, None).chunk, [1, 109, 300]);
        assert_eq!(array(vec![100, 1000, 1000], None, None).chunk, [1, 32, 1000]);
        assert_eq!(array(vec![3, 10_000_000], None, None).chunk, [1, 32_768]);
        assert_eq!(array(vec![4, 5], Some(64), None).chunk, [1, 5]);
        assert_eq!(array(vec![4, 5], Some(40), None).chunk, [4, 5]);
        assert_eq!(array(vec![300, 200, 100], None, Some(vec![2, 1, 0])).chunk, [300, 109, 1]);
        assert_eq!(array(vec![], None, None).chunk, [0u64; 0]);
        // 8 TiB: a million chunks of 8 MiB.
        assert_eq!(array(vec![1 << 20, 1 << 20], None, None).chunk, [1, 1 << 20]);
    }

    #[test]
    fn chunks_that_are_no_run_of_bytes_are_refused() {
        let mut lies = array(vec![10, 10], Some(80), None);
        let rows = Rows { begin: 0, stride: 80 };
        rows.check(&lies).unwrap();
        lies.chunk = vec![2, 5];
        assert!(rows.check(&lies).is_err());
        lies.chunk = vec![2, 10];
        assert!(Rows { begin: 0, stride: 96 }.check(&lies).is_err());
        lies.chunk = vec![1, 10];
        assert!(Rows { begin: 0, stride: 72 }.check(&lies).is_err());
        lies.filters = vec![Filter::Zlib];
        assert!(rows.check(&lies).is_err());
    }
}
