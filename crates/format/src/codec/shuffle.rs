//! Byte shuffle: all first bytes of the elements, then all second ones, and so on.

/// Appends the elements. Bytes after the last whole element stay at the end.
pub fn bytes(from: &[u8], size: usize, out: &mut Vec<u8>) {
    let count = from.len().checked_div(size).unwrap_or(0);
    if size <= 1 || count <= 1 {
        out.extend_from_slice(from);
        return;
    }
    let start = out.len();
    let (planes, rest) = from.split_at(count * size);
    out.resize(start + planes.len(), 0);
    let into = out.get_mut(start..).unwrap_or_default();
    for (byte, plane) in planes.chunks_exact(count).enumerate() {
        let places = into.get_mut(byte..).unwrap_or_default().iter_mut().step_by(size);
        for (place, value) in places.zip(plane) {
            *place = *value;
        }
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn elements_come_back(from in prop::collection::vec(any::<u8>(), 0..200), size in 1usize..20) {
            let whole = from.len() / size * size;
            let mut shuffled = Vec::new();
            for byte in 0..size {
                shuffled.extend(from[..whole].chunks(size).map(|element| element[byte]));
            }
            shuffled.extend_from_slice(&from[whole..]);
            let mut out = Vec::new();
            super::bytes(&shuffled, size, &mut out);
            prop_assert_eq!(out, from);
        }
    }
}
