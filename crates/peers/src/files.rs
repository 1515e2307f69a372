//! The files of a request: one file, or several files as one.

use std::sync::Arc;

use gristmill_layout::Layout;
use gristmill_runtime::{ErrorKind, FileParts, Placement, RunError};
use gristmill_wire::action::Opened;
use gristmill_wire::{FileMap, MAX_FILES_OF_REQUEST};

use crate::{Peers, file_parts, whole_file};

/// The opened files of a request. The bytes of several files lie one after the other, in the order of the files, on all
/// targets that any of the files has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    map: FileMap,
    each: Arc<[(FileMap, Arc<str>)]>,
}

impl From<&Opened> for Files {
    fn from(opened: &Opened) -> Files {
        Files::one(opened.info.file.clone(), opened.grant.as_str().into())
    }
}

impl Files {
    /// One file and the grant for it.
    pub fn one(map: FileMap, grant: Arc<str>) -> Files {
        Files { map: map.clone(), each: [(map, grant)].into() }
    }

    /// Several files, each with its grant.
    ///
    /// # Errors
    /// Returns an error if there is no file, if there are more than [`MAX_FILES_OF_REQUEST`], or if they have more
    /// bytes than a file can have.
    pub fn several(each: Vec<(FileMap, Arc<str>)>) -> Result<Files, RunError> {
        let usage = |message: String| RunError::Remote { kind: ErrorKind::Usage, message };
        if each.len() > MAX_FILES_OF_REQUEST {
            return Err(usage(format!(
                "the request needs {} files; at most {MAX_FILES_OF_REQUEST} are possible: ask for a part at a time, or \
                 store the array in shards",
                each.len()
            )));
        }
        let maps = || each.iter().map(|(map, _)| map);
        let map = FileMap::joined(maps()).ok_or_else(|| usage("the request names no file".into()))?;
        map.check().map_err(|error| usage(error.to_string()))?;
        Ok(Files { map, each: each.into() })
    }

    /// The map of all files as one, with the targets of all. For several files its stripes have no meaning.
    pub fn map(&self) -> &FileMap {
        &self.map
    }

    /// The map of the first file.
    pub fn first(&self) -> &FileMap {
        self.each.first().map_or(&self.map, |(map, _)| map)
    }

    /// The map and the grant of each file, in order.
    pub fn each(&self) -> &[(FileMap, Arc<str>)] {
        &self.each
    }

    /// The grant for the first file. It stands for all if a message is about the request itself.
    pub fn grant(&self) -> Arc<str> {
        self.each.first().map_or_else(|| "".into(), |(_, grant)| grant.clone())
    }

    /// The grants for the other files.
    pub fn other_grants(&self) -> Vec<String> {
        self.each.iter().skip(1).map(|(_, grant)| grant.to_string()).collect()
    }

    /// The layout of all files as one. Blocks for the layouts of segments files.
    ///
    /// # Errors
    /// It fails as [`Peers::layout`] does.
    pub fn layout(&self, peers: &Peers) -> Result<Layout, RunError> {
        match &*self.each {
            [(map, grant)] => peers.layout(map, grant),
            each => {
                let layouts = each
                    .iter()
                    .map(|(map, grant)| Ok((peers.layout(map, grant)?, map.length, self.targets_of(map))));
                let layouts = layouts.collect::<Result<Vec<_>, RunError>>()?;
                Ok(Layout::joined(&layouts, self.map.targets.len() as u32)?)
            }
        }
    }

    /// The parts of the files, read over the network. Blocks for the layouts of segments files.
    ///
    /// # Errors
    /// It fails as [`file_parts`] does.
    pub fn parts(&self, peers: &Peers, place: Placement) -> Result<FileParts, RunError> {
        self.parts_with(place, |map, grant| file_parts(peers, map, grant, place))
    }

    /// The parts of the files. `parts` makes the parts of each file.
    ///
    /// # Errors
    /// Returns the errors of `parts`, and an error if the files cannot be joined to one layout.
    pub fn parts_with(
        &self,
        place: Placement,
        parts: impl Fn(&FileMap, &Arc<str>) -> Result<FileParts, RunError>,
    ) -> Result<FileParts, RunError> {
        match &*self.each {
            [(map, grant)] => parts(map, grant),
            each => {
                let files = each.iter().map(|(map, grant)| Ok((parts(map, grant)?, self.targets_of(map))));
                let files = files.collect::<Result<Vec<_>, RunError>>()?;
                FileParts::joined(self.map.path.clone(), files, self.map.targets.len() as u32, place)
            }
        }
    }

    /// All files as one part, for folds far from the nodes.
    ///
    /// # Errors
    /// It fails as [`whole_file`] does.
    pub fn whole(&self, peers: &Peers, place: Placement) -> Result<FileParts, RunError> {
        match &*self.each {
            [(map, grant)] => whole_file(peers, map, grant),
            each => {
                let files = each.iter().map(|(map, grant)| Ok((whole_file(peers, map, grant)?, vec![0])));
                let files = files.collect::<Result<Vec<_>, RunError>>()?;
                FileParts::joined(self.map.path.clone(), files, 1, place)
            }
        }
    }

    /// The targets of a file, as places among the targets of all files.
    fn targets_of(&self, map: &FileMap) -> Vec<u32> {
        let place = |number: u32| self.map.targets.partition_point(|target| target.number < number) as u32;
        map.targets.iter().map(|target| place(target.number)).collect()
    }
}
