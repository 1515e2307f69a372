//! The objects of RADOS of which an object consists: a head with its record and attributes, and pieces with its bytes.

use std::ffi::CString;
use std::ops::Range;

use gristmill_store::ObjectId;

/// Bytes of a piece. Ceph advises against objects of more than some MiB.
pub const PIECE_BYTES: u64 = 4 << 20;

/// Most pieces of an object.
pub const MAX_PIECES: u64 = 1 << 20;

/// Longest object, in bytes: 4 TiB.
pub const MAX_OBJECT: u64 = PIECE_BYTES * MAX_PIECES;

/// The object of RADOS that the whole store has.
pub(crate) const STORE: &str = "store";

const HEAD: &str = "h.";
const PIECE: &str = "p.";

/// The number of pieces of an object of this length.
pub(crate) fn pieces_of(length: u64) -> u64 {
    length.div_ceil(PIECE_BYTES)
}

/// The parts of a range that lie in one piece each: the number of the piece, and the range in it.
pub(crate) fn split(range: Range<u64>) -> impl Iterator<Item = (u64, Range<u64>)> {
    let mut start = range.start;
    std::iter::from_fn(move || {
        if start >= range.end {
            return None;
        }
        let index = start / PIECE_BYTES;
        let first = index * PIECE_BYTES;
        let end = range.end.min(first.saturating_add(PIECE_BYTES));
        let part = (index, start - first..end - first);
        start = end;
        Some(part)
    })
}

/// A name without NUL characters as the library takes it.
pub(crate) fn c_name(name: String) -> CString {
    // The names of objects have none, and nothing else of these names comes from outside.
    CString::new(name).unwrap_or_default()
}

/// The name of the head of an object.
pub(crate) fn head(id: &ObjectId) -> CString {
    c_name(format!("{HEAD}{id}"))
}

/// The name of a piece of an object. Pieces with different salts lie on different storage daemons.
pub(crate) fn piece(id: &ObjectId, generation: u64, index: u64, salt: u8) -> String {
    format!("{PIECE}{id}.{generation:x}.{index:x}.{salt:x}")
}

/// The meaning of the name of an object of RADOS.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Head(ObjectId),
    Piece {
        id: ObjectId,
        generation: u64,
        index: u64,
        salt: u8,
    },
    /// Something else.
    Other,
}

/// Reads a name.
pub(crate) fn parse(name: &str) -> Named {
    let of_piece = |rest: &str| {
        let mut words = rest.rsplitn(4, '.');
        let salt = u8::from_str_radix(words.next()?, 16).ok()?;
        let index = u64::from_str_radix(words.next()?, 16).ok()?;
        let generation = u64::from_str_radix(words.next()?, 16).ok()?;
        let id = ObjectId::new(words.next()?).ok()?;
        // Another spelling of the numbers is another name.
        (piece(&id, generation, index, salt) == name).then_some(Named::Piece { id, generation, index, salt })
    };
    let named = match (name.strip_prefix(HEAD), name.strip_prefix(PIECE)) {
        (Some(id), _) => ObjectId::new(id).ok().map(Named::Head),
        (_, Some(rest)) => of_piece(rest),
        _ => None,
    };
    named.unwrap_or(Named::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_were_made() {
        for id in ["a", "a.1.2.3", "x..y", &"L".repeat(200)] {
            let id = ObjectId::new(id).unwrap();
            assert_eq!(parse(head(&id).to_str().unwrap()), Named::Head(id.clone()));
            let (generation, index, salt) = (u64::MAX, 0x1f, 200);
            let expected = Named::Piece { id: id.clone(), generation, index, salt };
            assert_eq!(parse(&piece(&id, generation, index, salt)), expected);
        }
    }

    #[test]
    fn other_names_are_left_alone() {
        for name in [
            "",
            "store",
            "h.",
            "h..a",
            "p.a",
            "p.a.1.2",
            "p.a.1.2.1ff",
            "p.a.01.2.3",
            "p.a.1.2.F",
            "10000000000.00000000",
        ] {
            assert_eq!(parse(name), Named::Other, "{name}");
        }
    }

    #[test]
    fn ranges_are_split_at_the_ends_of_pieces() {
        let parts: Vec<_> = split(PIECE_BYTES - 3..2 * PIECE_BYTES + 5).collect();
        assert_eq!(parts, [(0, PIECE_BYTES - 3..PIECE_BYTES), (1, 0..PIECE_BYTES), (2, 0..5)]);
        assert_eq!(split(7..7).count(), 0);
        assert_eq!((pieces_of(0), pieces_of(1), pieces_of(PIECE_BYTES)), (0, 1, 1));
    }
}
