//! The array of a chunk table, and the position of each chunk in it.

use gristmill_kernel::{ByteOrder, DType};

use crate::filter::Filter;
use crate::{FormatError, MAX_ARRAY_BYTES, MAX_CHUNK_BYTES, MAX_DIMENSIONS, MAX_FILTERS};

/// The elements of a stored chunk at the end of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Edges {
    /// Every chunk has all elements of the chunk shape; elements outside the array have no meaning (HDF5 and Zarr).
    Whole,
    /// The last chunk of an axis has only the elements inside the array (data without an index).
    Clipped,
}

/// An array of numbers that is stored in chunks, with everything that is needed to decode a chunk. Shapes are in
/// elements, in C order (the last axis varies fastest).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Type of the elements.
    pub dtype: DType,
    /// Byte order of the stored elements. Decoded elements are little-endian.
    pub order: ByteOrder,
    /// Lengths of the axes.
    pub shape: Vec<u64>,
    /// Lengths of the part that the file has, at most the shape. Elements outside it read as the fill value. Only a
    /// netCDF-4 variable may have less than the shape, if another variable made their unlimited dimension longer.
    pub stored: Vec<u64>,
    /// Lengths of a chunk, each at least 1.
    pub chunk: Vec<u64>,
    /// The elements of chunks at the end of an axis.
    pub edges: Edges,
    /// The filters of a chunk, in the order in which a writer applies them.
    pub filters: Vec<Filter>,
    /// The value of an element that is not stored, little-endian.
    pub fill: Vec<u8>,
}

/// The position of a chunk in its array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Index of the chunk's first element in the array.
    pub origin: Vec<u64>,
    /// Lengths of the part inside the array.
    pub clipped: Vec<u64>,
    /// Lengths of the stored chunk, and of the decoded one.
    pub held: Vec<u64>,
}

impl Array {
    /// Number of chunks along each axis.
    pub fn grid(&self) -> Vec<u64> {
        self.shape.iter().zip(&self.chunk).map(|(length, chunk)| length.div_ceil((*chunk).max(1))).collect()
    }

    /// Number of chunks, including chunks that are not stored. It is 0 if an axis has length 0, and 1 without axes.
    pub fn chunks(&self) -> u64 {
        self.grid().iter().fold(1, |all, count| all.saturating_mul(*count))
    }

    /// Bytes of a whole decoded chunk.
    pub fn chunk_bytes(&self) -> u64 {
        bytes_of(&self.chunk, self.dtype).unwrap_or(u64::MAX)
    }

    /// Returns the position of a chunk, or `None` for a number past the last. Chunks are numbered in C order in the
    /// grid of all chunks.
    pub fn extent(&self, number: u64) -> Option<Extent> {
        let origin: Vec<u64> = self
            .grid_coordinates(number)?
            .iter()
            .zip(&self.chunk)
            .map(|(at, chunk)| at.saturating_mul(*chunk))
            .collect();
        let clipped: Vec<u64> = origin
            .iter()
            .zip(&self.shape)
            .zip(&self.chunk)
            .map(|((start, length), chunk)| length.saturating_sub(*start).min(*chunk))
            .collect();
        let held = match self.edges {
            Edges::Whole => self.chunk.clone(),
            Edges::Clipped => clipped.clone(),
        };
        Some(Extent { origin, clipped, held })
    }

    /// Coordinates of a chunk in the grid, or `None` for a number past the last.
    pub(crate) fn grid_coordinates(&self, number: u64) -> Option<Vec<u64>> {
        let mut at = self.grid();
        let mut left = number;
        for count in at.iter_mut().rev() {
            let here = left.checked_rem(*count)?;
            left /= *count;
            *count = here;
        }
        (left == 0).then_some(at)
    }

    /// The number of the chunk at these coordinates in the grid; `None` outside it.
    pub(crate) fn number_at(&self, coordinates: &[u64]) -> Option<u64> {
        let grid = self.grid();
        if coordinates.len() != grid.len() {
            return None;
        }
        coordinates.iter().zip(&grid).try_fold(0u64, |number, (at, count)| {
            if at >= count {
                return None;
            }
            number.checked_mul(*count)?.checked_add(*at)
        })
    }

    /// Checks everything on which later arithmetic relies.
    ///
    /// # Errors
    /// Returns [`FormatError::Limit`] if something is too large, and [`FormatError::Table`] if parts do not fit
    /// together.
    pub fn check(&self) -> Result<(), FormatError> {
        let axes = self.shape.len();
        FormatError::limit("dimensions", axes as u64, MAX_DIMENSIONS as u64)?;
        if self.stored.len() != axes || self.chunk.len() != axes {
            return Err(FormatError::table("its shapes have different numbers of axes"));
        }
        if self.stored.iter().zip(&self.shape).any(|(stored, length)| stored > length) {
            return Err(FormatError::table("more is stored than the array has"));
        }
        if self.chunk.contains(&0) {
            return Err(FormatError::table("a chunk has an axis of length 0"));
        }
        // An axis of length 0 must not hide the lengths of other axes.
        let lengths: Vec<u64> = self.shape.iter().map(|length| (*length).max(1)).collect();
        let bytes = bytes_of(&lengths, self.dtype).unwrap_or(u64::MAX);
        FormatError::limit("bytes of the variable", bytes, MAX_ARRAY_BYTES)?;
        FormatError::limit("bytes of a decoded chunk", self.chunk_bytes(), MAX_CHUNK_BYTES)?;
        FormatError::limit("filters", self.filters.len() as u64, MAX_FILTERS as u64)?;
        if self.fill.len() != self.dtype.size() {
            return Err(FormatError::table("its fill value has another size than an element"));
        }
        self.filters.iter().try_for_each(|filter| filter.check(self))
    }
}

/// Bytes of an array of this shape, or `None` beyond 64 bits.
pub(crate) fn bytes_of(shape: &[u64], dtype: DType) -> Option<u64> {
    shape.iter().try_fold(dtype.size() as u64, |all, length| all.checked_mul(*length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn array(shape: Vec<u64>, chunk: Vec<u64>, edges: Edges) -> Array {
        Array {
            dtype: DType::F32,
            order: ByteOrder::Little,
            stored: shape.clone(),
            shape,
            chunk,
            edges,
            filters: Vec::new(),
            fill: vec![0; 4],
        }
    }

    proptest! {
        /// The chunks of an array tile it, whatever its shape, and each has one number.
        #[test]
        fn chunks_tile_the_array(
            axes in prop::collection::vec((0u64..12, 1u64..6), 0..4),
            clipped in any::<bool>(),
        ) {
            let (shape, chunk) = axes.into_iter().unzip();
            let array = array(shape, chunk, if clipped { Edges::Clipped } else { Edges::Whole });
            array.check().unwrap();
            let mut covered = 0;
            for number in 0..array.chunks() {
                let extent = array.extent(number).unwrap();
                let coordinates = array.grid_coordinates(number).unwrap();
                prop_assert_eq!(array.number_at(&coordinates), Some(number));
                prop_assert!(extent.clipped.iter().all(|length| *length > 0));
                prop_assert!(extent.held.iter().zip(&extent.clipped).all(|(held, inside)| held >= inside));
                covered += extent.clipped.iter().product::<u64>();
            }
            prop_assert_eq!(covered, array.shape.iter().product::<u64>());
            prop_assert_eq!(array.extent(array.chunks()), None);
        }

        /// Any lengths give either an error or right numbers.
        #[test]
        fn large_shapes_are_refused(axes in prop::collection::vec((any::<u64>(), any::<u64>()), 0..40)) {
            let (shape, chunk): (Vec<u64>, Vec<u64>) = axes.into_iter().unzip();
            let array = array(shape, chunk, Edges::Whole);
            if array.check().is_ok() {
                prop_assert!(array.chunk_bytes() <= MAX_CHUNK_BYTES);
                prop_assert!(array.chunks() <= MAX_ARRAY_BYTES);
            }
            let _ = array.extent(7);
        }
    }

    #[test]
    fn an_axis_of_length_zero_has_no_chunks_and_no_axis_has_one() {
        assert_eq!(array(vec![3, 0], vec![2, 2], Edges::Whole).chunks(), 0);
        assert_eq!(array(vec![3, 0], vec![2, 2], Edges::Whole).extent(0), None);
        let scalar = array(vec![], vec![], Edges::Clipped);
        assert_eq!(scalar.chunks(), 1);
        assert_eq!(scalar.extent(0), Some(Extent { origin: vec![], clipped: vec![], held: vec![] }));
    }
}
