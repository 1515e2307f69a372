//! Differences between the namespace and the objects of a storage node.

use std::collections::HashMap;

use gristmill_layout::Striped;
use gristmill_namespace::{FileEntry, NamedPut};
use gristmill_wire::{LostObject, OBJECT_PREFIX, ObjectEntry, ObjectState};

/// Differences between the namespace and the objects.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Suspects {
    /// In the order of their ids.
    pub lost: Vec<LostObject>,
    pub unnamed: Vec<ObjectEntry>,
}

impl Suspects {
    /// Compares the objects of a target with the puts in the same range of ids.
    pub fn find(number: u32, objects: &[ObjectEntry], named: &[NamedPut]) -> Suspects {
        let mut left: HashMap<&str, &ObjectEntry> =
            objects.iter().map(|object| (object.id.as_str(), object)).collect();
        let mut lost = Vec::new();
        for put in named.iter().filter(|put| put.targets.contains(&number)) {
            let object = left.remove(put.id.as_str());
            let Some(file) = &put.file else { continue };
            if let Some(why) = fault(file, number, object.map(|object| &object.state)) {
                let object = format!("{OBJECT_PREFIX}{}", put.id);
                lost.push(LostObject { path: file.path.to_string(), object, why });
            }
        }
        let unnamed =
            objects.iter().filter(|object| left.contains_key(object.id.as_str())).cloned().collect();
        Suspects { lost, unnamed }
    }

    pub fn is_empty(&self) -> bool {
        self.lost.is_empty() && self.unnamed.is_empty()
    }

    /// The suspects that are in `before` too.
    pub fn also_in(self, before: &Suspects) -> Suspects {
        let was_lost = |now: &LostObject| before.lost.iter().any(|then| then.object == now.object);
        let was_unnamed = |now: &ObjectEntry| before.unnamed.iter().any(|then| then.id == now.id);
        Suspects {
            lost: self.lost.into_iter().filter(was_lost).collect(),
            unnamed: self.unnamed.into_iter().filter(was_unnamed).collect(),
        }
    }

    /// Keeps the first lost objects, as many as need at most `most` bytes in an answer, but at least one. If objects are
    /// left out, the others end at the last one that is kept, and its id is the result.
    pub fn cut(&mut self, most: usize) -> Option<String> {
        let mut left = most;
        let fits = |lost: &&LostObject| {
            let bytes = serde_json::to_vec(lost).map_or(usize::MAX, |text| text.len().saturating_add(1));
            left.checked_sub(bytes).inspect(|rest| left = *rest).is_some()
        };
        let kept = self.lost.iter().take_while(fits).count().max(1);
        if kept >= self.lost.len() {
            return None;
        }
        self.lost.truncate(kept);
        let last = self.lost.last()?.object.strip_prefix(OBJECT_PREFIX)?.to_owned();
        self.unnamed.retain(|object| object.id <= last);
        Some(last)
    }
}

/// The fault of a file's object on a target, if there is one.
fn fault(file: &FileEntry, number: u32, object: Option<&ObjectState>) -> Option<String> {
    let place = file.targets.iter().position(|target| *target == number)?;
    let expected = *file.versions.get(place)?;
    // A target without a byte of the file has no object.
    if expected == 0 {
        return None;
    }
    let (version, length) = match object {
        None => return Some("is not there".into()),
        Some(ObjectState::Incomplete { .. }) => return Some("is not complete".into()),
        Some(ObjectState::Unreadable(why)) => return Some(format!("cannot be read: {why}")),
        Some(ObjectState::Complete { version, length }) => (*version, *length),
    };
    if version != expected {
        return Some(format!("has version {version} and should have {expected}"));
    }
    // Only the objects of a segments file contain their lengths.
    let count = u32::try_from(file.targets.len()).unwrap_or(u32::MAX);
    let layout = Striped::new(file.unit, count, file.first).ok().filter(|_| !file.segments)?;
    let expected = layout.object_len(u32::try_from(place).unwrap_or(u32::MAX), file.length);
    (length != expected).then(|| format!("has {length} bytes and should have {expected}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn id(number: usize) -> String {
        format!("{number:032x}")
    }

    fn lost(number: usize) -> LostObject {
        let object = format!("{OBJECT_PREFIX}{}", id(number));
        LostObject { path: format!("/\u{1}{number}"), object, why: "is not there".into() }
    }

    fn suspects(count: usize) -> Suspects {
        let unnamed = |number| ObjectEntry { id: id(number), state: ObjectState::Incomplete { length: 1 } };
        Suspects { lost: (0..count).map(lost).collect(), unnamed: (0..count).map(unnamed).collect() }
    }

    #[test]
    fn lost_objects_that_do_not_fit_end_the_page_before_them() {
        const COUNT: usize = 100;
        for most in [0, 500, 3000] {
            let (mut next, mut seen) = (0, Vec::new());
            while next < COUNT {
                let mut page = suspects(COUNT);
                page.lost.drain(..next);
                page.unnamed.drain(..next);
                let last = page.cut(most);
                assert_eq!(last.clone().unwrap_or_else(|| id(COUNT - 1)), page.unnamed.last().unwrap().id);
                assert_eq!(last.is_none(), next + page.lost.len() == COUNT);
                assert!(serde_json::to_vec(&page.lost).unwrap().len() <= most + 2 || page.lost.len() == 1);
                next += page.lost.len();
                seen.extend(page.lost);
            }
            assert_eq!(seen, suspects(COUNT).lost, "{most} bytes");
        }
    }

    #[test]
    fn a_page_that_fits_is_whole() {
        let mut page = suspects(10);
        assert_eq!(page.cut(1 << 20), None);
        assert_eq!(page, suspects(10));
        assert_eq!(Suspects::default().cut(0), None);
    }
}
