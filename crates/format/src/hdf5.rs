//! HDF5, and netCDF-4 which is HDF5 with dimensions (the HDF5 file format specification; netCDF's notes on its use of
//! HDF5). The crate `hdf5-reader` parses superblocks, object headers and chunk indexes of all kinds; this module walks
//! the groups, says what each dataset is, and turns indexes into places.
//!
//! Every dataset is looked at for itself: one that cannot be read (a virtual one, say) is listed with the reason, and
//! the others are as usable as ever.

mod attributes;
mod chunks;
mod datasets;
mod dimensions;
mod filters;
mod headers;
mod links;
mod masks;
mod phony;
mod types;
mod walk;

use std::sync::Arc;

use hdf5_reader::storage::{Storage, StorageBuffer};
use hdf5_reader::{Hdf5File, OpenOptions};

use crate::attribute::Attribute;
use crate::dataset::{Dataset, Format, Storage as Stored, Tables, Variable};
use crate::source::{self, Source};
use crate::table::{ChunkTable, FileRef};
use crate::{FormatError, MAX_GROUP_DEPTH, MAX_METADATA_BYTES};

use datasets::Object;
use masks::Masks;

/// What a file, or its part behind a user block, begins with.
const MAGIC: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// Most bytes of an object header.
const MAX_HEADER_BYTES: usize = 16 << 20;

/// Whether a file has the signature, at its beginning or behind a user block of 512 bytes or any double of that.
pub fn is_hdf5(source: &dyn Source) -> Result<bool, FormatError> {
    let mut at = 0u64;
    while at.checked_add(8).is_some_and(|end| end <= source.len()) {
        if source::read(source, at, 8, 8)? == MAGIC {
            return Ok(true);
        }
        at = if at == 0 { 512 } else { at.saturating_mul(2) };
    }
    Ok(false)
}

/// Opens a file that [`is_hdf5`].
pub fn open(source: Arc<dyn Source>) -> Result<Dataset, FormatError> {
    let masks = Arc::new(Masks::default());
    let (mut blanked, mut passes) = (0, 0);
    let (file, walked) = loop {
        let bytes = Bytes { source: Arc::clone(&source), masks: Arc::clone(&masks) };
        let options =
            OpenOptions::default().with_chunk_cache_bytes(0).with_max_object_header_bytes(MAX_HEADER_BYTES);
        let file = Hdf5File::from_storage_with_options(Arc::new(bytes), options).map_err(bad)?;
        let walked = walk::walk(&file, &masks);
        // The reader keeps headers, also those that it took before something in them was blanked.
        if masks.objects() == blanked || passes > MAX_GROUP_DEPTH {
            break (file, walked?);
        }
        (blanked, passes) = (masks.objects(), passes + 1);
    };
    let mut dimensions = dimensions::Dimensions::of(&walked);
    let format = if walked.netcdf || dimensions.netcdf { Format::Netcdf4 } else { Format::Hdf5 };
    let mut variables = Vec::new();
    let mut objects = Vec::new();
    for object in walked.objects {
        if let Some(variable) = dimensions.variable(&object, format) {
            variables.push(variable);
            objects.push(object);
        }
    }
    let limits: Vec<&[u64]> = objects.iter().map(|object| &*object.limits).collect();
    phony::name(&mut dimensions.all, &mut variables, &limits);
    let mut attributes = walked.attributes;
    if format == Format::Netcdf4 {
        let all = variables.iter_mut().flat_map(|variable| &mut variable.attributes);
        all.chain(&mut attributes).for_each(Attribute::as_netcdf);
    }
    Ok(Dataset {
        format,
        groups: walked.groups,
        dimensions: dimensions.all,
        attributes,
        variables,
        tables: Box::new(Index { source, file, objects }),
    })
}

/// A file and its datasets, in the order of its variables.
struct Index {
    source: Arc<dyn Source>,
    file: Hdf5File,
    objects: Vec<Object>,
}

impl Tables for Index {
    fn table(&self, index: usize, variable: &Variable) -> Result<ChunkTable, FormatError> {
        let no_such = || FormatError::table("there is no such variable");
        let object = self.objects.get(index).ok_or_else(no_such)?;
        let inside = object.inside.as_ref().ok_or_else(|| {
            FormatError::unsupported(&variable.path, "its description in the file cannot be read")
        })?;
        if variable.storage == Stored::Elsewhere {
            return Err(FormatError::unsupported(
                &variable.path,
                "its data lies in external files; copy it into the file with h5repack",
            ));
        }
        let (array, places) = chunks::table(&self.file, &*self.source, object, inside, variable)?;
        let files = vec![FileRef { name: String::new(), length: self.source.len() }];
        Ok(ChunkTable { array, files, places })
    }

    fn source(&self, _: &ChunkTable, _: u32) -> Result<Arc<dyn Source>, FormatError> {
        Ok(Arc::clone(&self.source))
    }
}

/// Our source as the reader wants it. A lie about a length is refused before it is allocated.
struct Bytes {
    source: Arc<dyn Source>,
    masks: Arc<Masks>,
}

impl Storage for Bytes {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read_range(&self, offset: u64, len: usize) -> Result<StorageBuffer, hdf5_reader::error::Error> {
        let read = source::read(&*self.source, offset, len as u64, MAX_METADATA_BYTES);
        let mut bytes = read.map_err(|error| hdf5_reader::error::Error::InvalidData(error.to_string()))?;
        self.masks.over(offset, &mut bytes);
        Ok(StorageBuffer::from_vec(bytes))
    }
}

fn bad(why: impl std::fmt::Display) -> FormatError {
    FormatError::damaged("HDF5", why.to_string())
}
