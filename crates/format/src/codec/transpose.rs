//! Elements whose axes are stored in another order.

use crate::FormatError;

/// Appends the elements in C order of the array's axes. Stored axis `i` is axis `axes[i]` of the array. `held` are the
/// lengths of the chunk along the array's axes.
pub fn to_c_order(
    from: &[u8],
    axes: &[u8],
    held: &[u64],
    size: usize,
    out: &mut Vec<u8>,
) -> Result<(), FormatError> {
    let bad =
        || FormatError::chunk("it has not as many elements as it should, so its axes cannot be put in order");
    // Bytes from one index to the next in the stored chunk, for each axis of the array.
    let mut strides = vec![0usize; held.len()];
    let mut bytes = size;
    for axis in axes.iter().rev() {
        let (stride, length) =
            strides.get_mut(usize::from(*axis)).zip(held.get(usize::from(*axis))).ok_or_else(bad)?;
        *stride = bytes;
        bytes = usize::try_from(*length).ok().and_then(|length| bytes.checked_mul(length)).ok_or_else(bad)?;
    }
    if from.len() != bytes {
        return Err(bad());
    }
    out.reserve(bytes);
    let mut at = vec![0u64; held.len()];
    let mut place = 0usize;
    for _ in 0..bytes / size {
        out.extend_from_slice(from.get(place..place + size).ok_or_else(bad)?);
        for ((at, length), stride) in at.iter_mut().zip(held).zip(&strides).rev() {
            *at += 1;
            place += stride;
            if *at < *length {
                break;
            }
            place -= stride * usize::try_from(*length).unwrap_or(0);
            *at = 0;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::to_c_order;

    #[test]
    fn axes_come_back_in_order() {
        // Stored with axes (2, 0, 1), lengths (4, 2, 3): element (i, j, k) of the array is k * 6 + i * 3 + j.
        let stored: Vec<u8> = (0..24).collect();
        let mut out = Vec::new();
        to_c_order(&stored, &[2, 0, 1], &[2, 3, 4], 1, &mut out).unwrap();
        let mut wanted = Vec::new();
        for i in 0..2 {
            for j in 0..3 {
                wanted.extend((0..4).map(|k| k * 6 + i * 3 + j));
            }
        }
        assert_eq!(out, wanted);
        assert!(to_c_order(&stored, &[2, 0, 1], &[2, 3, 5], 1, &mut Vec::new()).is_err());
    }
}
