//! Several files read as one.

use std::sync::Arc;

use gristmill_layout::{Layout, TargetIndex};

use crate::parts::{PartRange, combine_versions};
use crate::{FileParts, Part, Placement, RunError};

/// The part of one target in several files. Objects are named by the number of their file.
struct JoinedPart {
    /// The target's part of each file; `None` for a file that has no part here.
    files: Vec<Option<Arc<dyn Part>>>,
    /// Parts of files in place that have no part here. This target reads them too, if it must.
    others: Vec<Option<Arc<dyn Part>>>,
}

impl JoinedPart {
    /// The part of the file that an object names.
    fn file(&self, object: Option<&str>) -> Result<&Arc<dyn Part>, RunError> {
        let number = object.and_then(|number| number.parse::<usize>().ok());
        let part = number.and_then(|number| {
            let own = self.files.get(number).and_then(Option::as_ref);
            own.or_else(|| self.others.get(number).and_then(Option::as_ref))
        });
        part.ok_or_else(|| {
            let why = format!("there is no file {}", object.unwrap_or("without a number"));
            RunError::Layout(gristmill_layout::LayoutError::Joined { why })
        })
    }

    fn all(&self) -> impl Iterator<Item = &Arc<dyn Part>> {
        self.files.iter().flatten()
    }
}

impl Part for JoinedPart {
    fn read(&self, object: Option<&str>, offset: u64, buffer: &mut [u8]) -> Result<(), RunError> {
        self.file(object)?.read(None, offset, buffer)
    }

    fn read_many(&self, ranges: &[PartRange<'_>], out: &mut [u8]) -> Result<(), RunError> {
        let (mut ranges, mut out) = (ranges, out);
        while let Some(first) = ranges.first() {
            let same = ranges.iter().take_while(|range| range.object == first.object);
            let inner: Vec<PartRange<'_>> =
                same.map(|range| PartRange { object: None, ..range.clone() }).collect();
            let bytes: usize = inner.iter().map(|range| range.len).sum();
            let (now, later) = out.split_at_mut(bytes.min(out.len()));
            self.file(first.object)?.read_many(&inner, now)?;
            ranges = ranges.get(inner.len()..).unwrap_or_default();
            out = later;
        }
        Ok(())
    }

    fn fetches_ahead(&self) -> bool {
        self.all().any(|part| part.fetches_ahead())
    }

    fn expect(&self, ranges: &[PartRange<'_>]) {
        for same in ranges.chunk_by(|one, other| one.object == other.object) {
            let object = same.first().and_then(|range| range.object);
            let inner: Vec<PartRange<'_>> =
                same.iter().map(|range| PartRange { object: None, ..range.clone() }).collect();
            if let Ok(part) = self.file(object) {
                part.expect(&inner);
            }
        }
    }

    fn unchanged(&self) -> Result<(), RunError> {
        self.all().try_for_each(|part| part.unchanged())
    }

    fn version(&self) -> u64 {
        combine_versions(self.files.iter().map(|part| part.as_ref().map_or(0, |part| part.version())))
    }

    fn describe(&self) -> String {
        self.all().next().map_or_else(String::new, |part| part.describe())
    }
}

impl FileParts {
    /// Joins several files to one: their bytes lie one behind the other. Each file comes with the indices of its targets among
    /// the `targets` of all files.
    ///
    /// # Errors
    /// Returns an error if the layouts cannot be joined.
    pub fn joined(
        name: String,
        files: Vec<(FileParts, Vec<TargetIndex>)>,
        targets: u32,
        place: Placement,
    ) -> Result<FileParts, RunError> {
        let layouts: Vec<_> =
            files.iter().map(|(file, places)| (file.layout.clone(), file.length, places.clone())).collect();
        let layout = Layout::joined(&layouts, targets)?;
        let mut parts: Vec<JoinedPart> =
            (0..targets).map(|_| JoinedPart { files: vec![None; files.len()], others: Vec::new() }).collect();
        let mut length = 0u64;
        for (number, (file, places)) in files.into_iter().enumerate() {
            length = length.saturating_add(file.length);
            if layout.is_in_place()
                && let Some(part) = file.parts.first()
            {
                for joined in &mut parts {
                    joined.others.resize(number, None);
                    joined.others.push(Some(part.clone()));
                }
            }
            for (part, place) in file.parts.into_iter().zip(places) {
                if let Some(joined) = parts.get_mut(place as usize) {
                    joined.files[number] = Some(part);
                }
            }
        }
        let parts = parts.into_iter().map(|part| Arc::new(part) as Arc<dyn Part>).collect();
        Ok(FileParts { name, length, layout, parts, place })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use gristmill_layout::Striped;

    use super::*;

    /// A part in memory.
    struct MemoryPart(Vec<u8>);

    impl Part for MemoryPart {
        fn read(&self, object: Option<&str>, offset: u64, buffer: &mut [u8]) -> Result<(), RunError> {
            assert_eq!(object, None);
            buffer.copy_from_slice(&self.0[offset as usize..offset as usize + buffer.len()]);
            Ok(())
        }
        fn unchanged(&self) -> Result<(), RunError> {
            Ok(())
        }
        fn version(&self) -> u64 {
            self.0.len() as u64
        }
        fn describe(&self) -> String {
            "memory".into()
        }
    }

    const PLACE: Placement = Placement { place: "client", why: "a test", remote: false };

    fn striped(bytes: &[u8], unit: u64, targets: u32) -> FileParts {
        let layout: Layout = Striped::new(unit, targets, 1 % targets).unwrap().into();
        let mut objects = vec![Vec::new(); targets as usize];
        for extent in layout.extents(0..bytes.len() as u64) {
            let range = extent.file.start as usize..extent.file.end as usize;
            objects[extent.target as usize].extend_from_slice(&bytes[range]);
        }
        let parts = objects.into_iter().map(|bytes| Arc::new(MemoryPart(bytes)) as Arc<dyn Part>).collect();
        FileParts { name: "one".into(), length: bytes.len() as u64, layout, parts, place: PLACE }
    }

    #[test]
    fn files_are_read_one_behind_the_other() {
        let bytes: Vec<u8> = (0..=255).cycle().take(5000).collect();
        let files = vec![
            (striped(&bytes[..1700], 64, 3), vec![0, 2, 3]),
            (striped(&bytes[1700..1700], 64, 2), vec![1, 2]),
            (striped(&bytes[1700..4100], 100, 2), vec![3, 1]),
            (striped(&bytes[4100..], 10_000, 1), vec![2]),
        ];
        let joined = FileParts::joined("all".into(), files, 4, PLACE).unwrap();
        assert_eq!(joined.length, 5000);
        let mut all = vec![0; 5000];
        joined.read(0..5000, &mut all).unwrap();
        assert!(all == bytes);
        for start in (0..4900).step_by(37) {
            let mut some = vec![0; 100];
            joined.read(start..start + 100, &mut some).unwrap();
            assert_eq!(some, bytes[start as usize..start as usize + 100]);
        }
        let on: u64 = (0..4).map(|target| joined.layout.bytes_on(target, 0..5000)).sum();
        assert_eq!(on, 5000);
        let ranges: Vec<_> = joined.layout.runs(2, 0..5000).collect();
        let ranges: Vec<_> = ranges
            .iter()
            .map(|run| PartRange {
                object: run.object,
                offset: run.object_offset,
                len: (run.file.end - run.file.start) as usize,
            })
            .collect();
        let mut packed = vec![0; ranges.iter().map(|range| range.len).sum()];
        joined.parts[2].read_many(&ranges, &mut packed).unwrap();
        let expected: Vec<u8> = joined
            .layout
            .runs(2, 0..5000)
            .flat_map(|run| bytes[run.file.start as usize..run.file.end as usize].to_vec())
            .collect();
        assert_eq!(packed, expected);
    }

    #[test]
    fn too_few_targets_are_an_error() {
        let file = striped(&[1, 2, 3], 1, 2);
        assert!(FileParts::joined("all".into(), vec![(file, vec![0])], 1, PLACE).is_err());
    }
}
