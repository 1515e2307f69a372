//! Bit shuffle (K. Masui): the lowest bits of the first bytes of all elements, then the next bits, and so on.

/// Appends the elements. Blosc shuffles only if the number of elements is a multiple of 8. Bytes after the last whole
/// element stay at the end.
pub fn bits(from: &[u8], size: usize, out: &mut Vec<u8>) {
    let count = from.len().checked_div(size).unwrap_or(0);
    if count == 0 || !count.is_multiple_of(8) {
        out.extend_from_slice(from);
        return;
    }
    let start = out.len();
    let (planes, rest) = from.split_at(count * size);
    out.resize(start + planes.len(), 0);
    let into = out.get_mut(start..).unwrap_or_default();
    // A plane has one bit of each element, eight elements a byte.
    for (number, plane) in planes.chunks_exact(count / 8).enumerate() {
        let (byte, bit) = (number / 8, number % 8);
        for (eight, packed) in into.chunks_exact_mut(8 * size).zip(plane) {
            for (element, place) in eight.iter_mut().skip(byte).step_by(size).enumerate() {
                *place |= (packed >> element & 1) << bit;
            }
        }
    }
    out.extend_from_slice(rest);
}
