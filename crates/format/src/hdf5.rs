//! HDF5, and netCDF-4 which is HDF5 with dimensions (the HDF5 file format specification; netCDF's notes on its use of
//! HDF5). The crate `hdf5-reader` parses superblocks, object headers and chunk indexes of all kinds. This module walks
//! the groups, describes each dataset, and converts indexes to locations.
//!
//! Every dataset is read by itself. A dataset that cannot be read, such as a virtual one, is listed with the reason,
//! and does not affect the others.

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

/// The first bytes of a file, or of its part after a user block.
const MAGIC: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// Most bytes of an object header.
const MAX_HEADER_BYTES: usize = 16 << 20;

/// Returns whether a file has the signature, at its beginning or after a user block of 512 bytes times a power of two.
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
        // The reader caches headers, also those that it read before a message in them was blanked.
        if masks.objects() == blanked || passes > MAX_GROUP_DEPTH {
            break (file, walked?);
        }
        (blanked, passes) = (masks.objects(), passes + 1);
    };
    let mut dimensions = dimensions::Dimensions::new(&walked);
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
        tables: Box::new(Hdf5Tables { source, file, objects }),
    })
}

/// A file and its datasets, in the order of its variables.
struct Hdf5Tables {
    source: Arc<dyn Source>,
    file: Hdf5File,
    objects: Vec<Object>,
}

impl Tables for Hdf5Tables {
    fn table(&self, index: usize, variable: &Variable) -> Result<ChunkTable, FormatError> {
        let no_such = || FormatError::table("there is no such variable");
        let object = self.objects.get(index).ok_or_else(no_such)?;
        let storage_info = object.storage_info.as_ref().ok_or_else(|| {
            FormatError::unsupported(&variable.path, "its description in the file cannot be read")
        })?;
        if variable.storage == Stored::Elsewhere {
            return Err(FormatError::unsupported(
                &variable.path,
                "its data is in external files; copy it into the file with h5repack",
            ));
        }
        let (array, locations) = chunks::table(&self.file, &*self.source, object, storage_info, variable)?;
        let files = vec![FileRef { name: String::new(), length: self.source.len() }];
        Ok(ChunkTable { array, files, locations })
    }

    fn source(&self, _: &ChunkTable, _: u32) -> Result<Arc<dyn Source>, FormatError> {
        Ok(Arc::clone(&self.source))
    }
}

/// A source in the form that the reader needs. A wrong length is refused before memory is allocated for it.
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
        self.masks.apply(offset, &mut bytes);
        Ok(StorageBuffer::from_vec(bytes))
    }
}

fn bad(why: impl std::fmt::Display) -> FormatError {
    FormatError::damaged("HDF5", why.to_string())
}
