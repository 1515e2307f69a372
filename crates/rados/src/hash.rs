//! The function from names of objects to placement groups (`src/common/ceph_hash.cc` and `src/include/rados.h` of Ceph). The hash is that of
//! Robert Jenkins, "Hash functions", Dr. Dobb's Journal, September 1997.

/// Separates the namespace from the name of an object.
const SEPARATOR: u8 = 0x1f;

/// The golden ratio, an arbitrary number.
const GOLDEN: u32 = 0x9e37_79b9;

/// The hash of an object in a namespace that is not the default one.
pub(crate) fn hash_of(namespace: &str, name: &str) -> u32 {
    let bytes: Vec<u8> = namespace.bytes().chain([SEPARATOR]).chain(name.bytes()).collect();
    jenkins(&bytes)
}

/// The placement group of a hash: the groups are numbered from 0, and a pool may have any number of them.
pub(crate) fn group_of(hash: u32, groups: u32) -> u32 {
    let mask = groups.next_power_of_two().wrapping_sub(1);
    let group = hash & mask;
    if group < groups { group } else { hash & (mask >> 1) }
}

fn mix([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    let step = |x: u32, y: u32, z: u32| x.wrapping_sub(y).wrapping_sub(z);
    for [first, second, third] in [[13, 8, 13], [12, 16, 5], [3, 10, 15]] {
        a = step(a, b, c) ^ (c >> first);
        b = step(b, c, a) ^ (a << second);
        c = step(c, a, b) ^ (b >> third);
    }
    [a, b, c]
}

fn jenkins(bytes: &[u8]) -> u32 {
    let word = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
    let mut state = [GOLDEN, GOLDEN, 0];
    let (twelves, rest) = bytes.as_chunks::<12>();
    for twelve in twelves {
        let ([first, second, third], _) = twelve.as_chunks::<4>() else { continue };
        let [a, b, c] = state;
        state = mix([a.wrapping_add(word(first)), b.wrapping_add(word(second)), c.wrapping_add(word(third))]);
    }
    // The lowest byte of the third number is for the length.
    let mut last = [0_u8; 12];
    let (start, end) = rest.split_at(rest.len().min(8));
    last.iter_mut().zip(start).for_each(|(to, from)| *to = *from);
    last.iter_mut().skip(9).zip(end).for_each(|(to, from)| *to = *from);
    let [mut a, mut b, mut c] = state;
    if let ([first, second, third], _) = last.as_chunks::<4>() {
        a = a.wrapping_add(word(first));
        b = b.wrapping_add(word(second));
        c = c.wrapping_add(word(third));
    }
    // Names have at most some hundred bytes.
    let [.., hash] = mix([a, b, c.wrapping_add(bytes.len() as u32)]);
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_those_of_ceph() {
        for (hash, groups, group) in [(0xffff_ffff, 8, 7), (13, 12, 5), (11, 12, 11), (12, 12, 4), (5, 1, 0)]
        {
            assert_eq!(group_of(hash, groups), group, "{hash} of {groups}");
        }
    }
}
