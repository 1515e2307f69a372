//! The state of a file: its kind, its length and its version.

use gristmill_backend::{Found, Kind, Stamp};

use crate::client::{Attributes, Time};

/// Start of the stamps of files that grow.
const GROWING: &str = "growing";

/// The bits of a mode that tell the kind (`S_IFMT`).
const KIND: u16 = 0o170_000;

/// The kinds of things that have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    Folder,
    Link,
    /// A file, or something else that is neither a folder nor a link.
    Other(Kind),
}

pub(crate) fn thing(found: &Attributes) -> Thing {
    match found.mode & KIND {
        0o040_000 => Thing::Folder,
        0o120_000 => Thing::Link,
        0o100_000 => Thing::Other(Kind::File),
        0o010_000 => Thing::Other(Kind::Pipe),
        0o140_000 => Thing::Other(Kind::Socket),
        _ => Thing::Other(Kind::Device),
    }
}

/// The file itself, whatever its content is. The servers may give the number of a removed file to a new one. That one is made later.
fn identity(found: &Attributes) -> String {
    let made = found.made;
    format!("{:x}.{:x}-{}.{:09}", found.inode, found.device, made.seconds, made.nanoseconds)
}

/// The length and the version of a file. Every client of the file system sees the same numbers. Ceph counts the changes of a file
/// (`change_attr`); the times are there for releases that count less than others.
pub(crate) fn found(found: &Attributes) -> Found {
    let time = |time: Time| format!("{}.{:09}", time.seconds, time.nanoseconds);
    let Attributes { size, version, changed, modified, .. } = *found;
    let text = format!("{}-{size}-{version}-{}-{}", identity(found), time(modified), time(changed));
    Found { length: size, stamp: Stamp::of_numbers(text) }
}

/// The first `length` bytes of a file that may grow.
pub(crate) fn growing(found: &Attributes, length: u64) -> Option<Found> {
    (found.size >= length)
        .then(|| Found { length, stamp: Stamp::of_numbers(format!("{GROWING}-{}", identity(found))) })
}

/// Whether a state is that of a file that may grow.
fn is_growing(found: &Found) -> bool {
    found.stamp.as_str().starts_with(GROWING)
}

/// Whether the file has this state now.
pub(crate) fn has_state(now: &Attributes, state: &Found) -> bool {
    let now = if is_growing(state) { growing(now, state.length) } else { Some(found(now)) };
    now.as_ref() == Some(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_differs_if_the_file_or_its_content_does() {
        let file =
            Attributes { inode: 7, size: 100, version: 5, device: u64::MAX - 1, ..Attributes::default() };
        let time = Time { seconds: 1, nanoseconds: 2 };
        let others = [
            Attributes { inode: 8, ..file },
            Attributes { device: 4, ..file },
            Attributes { size: 101, ..file },
            Attributes { version: 6, ..file },
            Attributes { made: time, ..file },
            Attributes { modified: time, ..file },
            Attributes { changed: time, ..file },
        ];
        assert!(has_state(&file, &found(&file)));
        for other in others {
            assert!(!has_state(&other, &found(&file)), "{other:?}");
        }
    }

    #[test]
    fn a_file_that_grows_keeps_the_state_of_its_beginning() {
        let file = Attributes { inode: 7, size: 100, version: 5, ..Attributes::default() };
        let longer =
            Attributes { size: 150, version: 6, modified: Time { seconds: 9, nanoseconds: 0 }, ..file };
        let state = growing(&file, 96).unwrap_or_else(|| found(&file));
        assert!(is_growing(&state) && has_state(&longer, &state));
        assert!(!has_state(&Attributes { size: 95, ..longer }, &state), "it was cut");
        assert!(!has_state(&Attributes { inode: 8, ..longer }, &state), "it is another file");
        assert_eq!(growing(&file, 101), None);
    }
}
