//! The chunks of an array: their numbers, their positions and their shapes.

use crate::error::ArrayError;

/// Most axes of an array.
pub const MAX_AXES: usize = 32;

/// Most elements of a chunk, so that offsets in one fit any machine.
pub const MAX_CHUNK_ELEMENTS: u64 = 1 << 31;

/// The shape in which the chunks at the end of an axis are stored, if the axis is not a multiple of the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdgeChunks {
    /// The shape of all other chunks; the elements outside the array have no meaning (HDF5, netCDF-4, Zarr).
    Whole,
    /// The part inside the array (contiguous variables that were cut into pieces).
    Clipped,
}

/// An array that is cut into chunks of one shape. Chunks are numbered from 0 in C order: along the last axis first.
///
/// ```
/// use gristmill_array::{EdgeChunks, Grid};
///
/// let grid = Grid::new(vec![5, 10], vec![2, 4], EdgeChunks::Clipped)?;
/// assert_eq!(grid.chunks(), 9);
/// assert_eq!(grid.origin(5), [2, 8]);
/// assert_eq!(grid.clipped(5), [2, 2]);
/// assert_eq!(grid.clipped(8), [1, 2]);
/// # Ok::<(), gristmill_array::ArrayError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    shape: Vec<u64>,
    chunk: Vec<u64>,
    counts: Vec<u64>,
    edges: EdgeChunks,
}

impl Grid {
    /// An array of a shape and the shape of its chunks, in elements. No axes at all is an array of one element.
    ///
    /// # Errors
    /// The error is [`ArrayError::Grid`] if there are more than [`MAX_AXES`] axes, if array and chunks differ in the
    /// number of axes, if a chunk has an axis of length 0 or more than [`MAX_CHUNK_ELEMENTS`] elements, or if the
    /// lengths of the array multiply to 2^63 or more.
    pub fn new(shape: Vec<u64>, chunk: Vec<u64>, edges: EdgeChunks) -> Result<Grid, ArrayError> {
        let wrong = |why: String| Err(ArrayError::Grid { why });
        if shape.len() > MAX_AXES {
            return wrong(format!("it has {} axes; at most {MAX_AXES} are taken", shape.len()));
        }
        if shape.len() != chunk.len() {
            return wrong(format!("it has {} axes and its chunks have {}", shape.len(), chunk.len()));
        }
        if chunk.contains(&0) {
            return wrong("its chunks have an axis of length 0; the least is 1".into());
        }
        let product = |of: &[u64]| of.iter().try_fold(1u64, |all, n| all.checked_mul(*n));
        if product(&chunk).is_none_or(|elements| elements > MAX_CHUNK_ELEMENTS) {
            return wrong(format!("its chunks have more than {MAX_CHUNK_ELEMENTS} elements"));
        }
        let counts: Vec<u64> = shape.iter().zip(&chunk).map(|(n, chunk)| n.div_ceil(*chunk)).collect();
        let largest = i64::MAX as u64;
        if product(&shape).is_none_or(|n| n > largest) || product(&counts).is_none_or(|n| n > largest) {
            return wrong("it has more than 2^63 elements".into());
        }
        Ok(Grid { shape, chunk, counts, edges })
    }

    /// An array that is one chunk.
    ///
    /// # Errors
    /// The error is [`ArrayError::Grid`] if there are more than [`MAX_AXES`] axes, or if the chunk has more than
    /// [`MAX_CHUNK_ELEMENTS`] elements. An axis of length 0 counts as one of length 1 in the chunk.
    pub fn whole(shape: Vec<u64>) -> Result<Grid, ArrayError> {
        let chunk = shape.iter().map(|n| (*n).max(1)).collect();
        Grid::new(shape, chunk, EdgeChunks::Whole)
    }

    /// The shape of the array.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The shape of a chunk that is not clipped.
    pub fn chunk(&self) -> &[u64] {
        &self.chunk
    }

    /// Chunks along each axis.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Number of chunks; 0 if an axis has length 0.
    pub fn chunks(&self) -> u64 {
        self.counts.iter().product()
    }

    /// Elements of a whole chunk.
    pub fn chunk_elements(&self) -> u64 {
        self.chunk.iter().product()
    }

    /// Index of a chunk among the chunks of each axis.
    pub fn place(&self, number: u64) -> Vec<u64> {
        let mut rest = number;
        let mut place = vec![0; self.counts.len()];
        for (place, count) in place.iter_mut().zip(&self.counts).rev() {
            let count = (*count).max(1);
            *place = rest % count;
            rest /= count;
        }
        place
    }

    /// Number of the chunk with these indices; the inverse of [`Grid::place`].
    pub fn number(&self, place: &[u64]) -> u64 {
        place.iter().zip(&self.counts).fold(0, |number, (place, count)| number * count + place)
    }

    /// The first element of a chunk, along each axis.
    pub fn origin(&self, number: u64) -> Vec<u64> {
        self.place(number).iter().zip(&self.chunk).map(|(place, chunk)| place * chunk).collect()
    }

    /// Shape of the part of a chunk that is inside the array.
    pub fn clipped(&self, number: u64) -> Vec<u64> {
        let inside = |((origin, chunk), n): ((u64, &u64), &u64)| (*chunk).min(n.saturating_sub(origin));
        self.origin(number).into_iter().zip(&self.chunk).zip(&self.shape).map(inside).collect()
    }

    /// The shape in which a chunk is stored.
    pub fn stored(&self, number: u64) -> Vec<u64> {
        match self.edges {
            EdgeChunks::Whole => self.chunk.clone(),
            EdgeChunks::Clipped => self.clipped(number),
        }
    }

    /// The shape in which edge chunks are stored.
    pub const fn edges(&self) -> EdgeChunks {
        self.edges
    }
}
