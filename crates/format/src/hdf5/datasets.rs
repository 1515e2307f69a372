//! Datasets, as their object headers describe them.

use gristmill_kernel::ByteOrder;
use hdf5_reader::messages::HdfMessage;
use hdf5_reader::messages::dataspace::DataspaceType;
use hdf5_reader::messages::fill_value::FillValueMessage;
use hdf5_reader::messages::filter_pipeline::FilterDescription;
use hdf5_reader::messages::layout::{ChunkIndexing, DataLayout};
use hdf5_reader::{Attribute as Read, Dataset, Hdf5File};

use super::attributes::{self, Reference};
use super::masks::Masks;
use super::types::kind_of;
use super::{bad, filters};
use crate::FormatError;
use crate::attribute::Attribute;
use crate::dataset::{Kind, Storage};

/// A dataset under one of its names.
pub struct Object {
    pub path: String,
    pub kind: Kind,
    pub order: ByteOrder,
    /// Lengths of the axes in the file.
    pub shape: Vec<u64>,
    /// Largest lengths of the axes; `u64::MAX` is unlimited.
    pub limits: Vec<u64>,
    /// The attributes, without those that netCDF hides.
    pub attributes: Vec<Attribute>,
    /// Address of the header.
    pub address: u64,
    /// The dimensions that the attributes name.
    pub scale: attributes::Scale,
    /// The storage of the dataset; `None` if it cannot be read.
    pub storage_info: Option<StorageInfo>,
}

/// The storage of a dataset.
pub struct StorageInfo {
    pub layout: Layout,
    pub filters: Vec<FilterDescription>,
    /// The fill value of the header, in the byte order of the file.
    pub fill: Option<Vec<u8>>,
    pub external: bool,
}

/// The location of a dataset's elements.
pub enum Layout {
    Compact(Vec<u8>),
    Contiguous {
        address: u64,
        size: u64,
    },
    /// `index` is `None` for the B-trees of old files.
    Chunked {
        address: u64,
        chunk: Vec<u32>,
        index: Option<ChunkIndexing>,
    },
}

impl Object {
    /// Reads a dataset's header.
    pub fn read(
        file: &Hdf5File,
        masks: &Masks,
        dataset: &Dataset,
        path: String,
    ) -> Result<Object, FormatError> {
        let header = file.get_or_parse_header(dataset.address()).map_err(bad)?;
        let extra = masks.extra_attributes(dataset.address());
        let mut attributes: Vec<Read> = dataset.attributes();
        attributes.extend(extra.read);
        let references = Reference { dataset, size: usize::from(file.superblock().offset_size) };
        let scale = attributes::Scale::from_attributes(&attributes, &references);
        let mut visible = attributes::visible(&attributes)?;
        visible.extend(extra.refused);
        let shape = dataset.shape().to_vec();
        let limits = dataset.max_dims().map_or_else(|| shape.clone(), <[u64]>::to_vec);
        let (mut layout, mut pipeline, mut fill, mut external, mut null) =
            (None, Vec::new(), None, false, false);
        for message in &header.messages {
            match message {
                HdfMessage::DataLayout(message) => layout = Some(message.layout.clone()),
                HdfMessage::FilterPipeline(message) => pipeline.clone_from(&message.filters),
                HdfMessage::FillValue(FillValueMessage { value: Some(value), .. }) => {
                    fill = Some(value.clone())
                }
                HdfMessage::ExternalFiles(_) => external = true,
                HdfMessage::Dataspace(message) => null = message.dataspace_type == DataspaceType::Null,
                _ => {}
            }
        }
        let (kind, order) = match dataset.raw_datatype() {
            _ if null => (Kind::Other("nothing (a null dataspace)".to_owned()), ByteOrder::Little),
            Ok(raw) => kind_of(dataset.dtype(), &raw),
            Err(error) => (Kind::Other(format!("unreadable ({error})")), ByteOrder::Little),
        };
        let layout = match layout {
            Some(DataLayout::Compact { data }) => Layout::Compact(data),
            Some(DataLayout::Contiguous { address, size }) => Layout::Contiguous { address, size },
            Some(DataLayout::Chunked { address, mut dims, chunk_indexing, .. }) => {
                // The size of an element counts as an axis.
                dims.truncate(shape.len());
                Layout::Chunked { address, chunk: dims, index: chunk_indexing }
            }
            None => return Ok(Object::unreadable(path, "unreadable (it has no layout)".to_owned())),
        };
        let storage_info = Some(StorageInfo { layout, filters: pipeline, fill, external });
        let address = dataset.address();
        Ok(Object { path, kind, order, shape, limits, attributes: visible, address, scale, storage_info })
    }

    /// A dataset that is listed with the reason why it cannot be used.
    pub fn unreadable(path: String, why: String) -> Object {
        Object {
            path,
            kind: Kind::Other(why),
            order: ByteOrder::Little,
            shape: Vec::new(),
            limits: Vec::new(),
            attributes: Vec::new(),
            address: u64::MAX,
            scale: attributes::Scale::default(),
            storage_info: None,
        }
    }

    pub fn storage(&self) -> Storage {
        match &self.storage_info {
            Some(StorageInfo { external: true, .. }) | None => Storage::Elsewhere,
            Some(StorageInfo { layout: Layout::Compact(_), .. }) => Storage::Compact,
            Some(StorageInfo { layout: Layout::Contiguous { .. }, .. }) => Storage::Contiguous,
            Some(StorageInfo { layout: Layout::Chunked { .. }, .. }) => Storage::Chunked,
        }
    }

    pub fn chunk(&self) -> Option<Vec<u64>> {
        match &self.storage_info.as_ref()?.layout {
            Layout::Chunked { chunk, .. } => Some(chunk.iter().map(|length| u64::from(*length)).collect()),
            _ => None,
        }
    }

    pub fn filter_names(&self) -> Vec<String> {
        let all = self.storage_info.iter().flat_map(|storage_info| &storage_info.filters);
        all.map(filters::name).collect()
    }

    /// The value of an element that is not stored, little-endian. HDF5's default is zero.
    pub fn fill(&self) -> Option<Vec<u8>> {
        let Kind::Number(dtype) = self.kind else { return None };
        let given = self.storage_info.as_ref().and_then(|storage_info| storage_info.fill.clone());
        let mut fill =
            given.filter(|fill| fill.len() == dtype.size()).unwrap_or_else(|| vec![0; dtype.size()]);
        self.order.to_little(dtype.size(), &mut fill);
        Some(fill)
    }
}
