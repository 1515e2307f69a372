//! Attributes that the crate `hdf5-reader` cannot read.
//!
//! The reader refuses a whole object and its group if one attribute of the object has an unknown type or a type that is
//! stored elsewhere in the file (a committed datatype). So the messages of such attributes are blanked in the bytes
//! that it reads, and listed by name.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use hdf5_reader::btree_v2::{BTreeV2Header, BTreeV2Record, collect_btree_v2_records_storage};
use hdf5_reader::fractal_heap::{FractalHeap, FractalHeapDirectBlockCache};
use hdf5_reader::group::Group;
use hdf5_reader::io::Cursor;
use hdf5_reader::messages::attribute_info::AttributeInfoMessage;
use hdf5_reader::messages::{MSG_ATTRIBUTE, MSG_ATTRIBUTE_INFO, attribute, attribute_info};
use hdf5_reader::{Attribute as Read, Datatype, Hdf5File, StringSize};

use super::bad;
use super::headers::{Chunk, chunks};
use crate::attribute::{Attribute, AttributeValue};
use crate::{FormatError, MAX_VARIABLES};

/// The blanked messages of a file, and the attributes that the reader does not find because of them.
#[derive(Default)]
pub struct Masks(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// Bytes that replace those of the file, with their offsets in the file.
    replacements: Vec<(u64, Vec<u8>)>,
    /// Attributes of each blanked object, by the address of its header.
    extra_attributes: HashMap<u64, ExtraAttributes>,
}

/// Attributes of an object that the reader does not find.
#[derive(Clone, Default)]
pub struct ExtraAttributes {
    /// Attributes that are stored outside the header, whose message was blanked.
    pub read: Vec<Read>,
    /// Attributes that cannot be read, with the reason.
    pub refused: Vec<Attribute>,
}

impl Masks {
    /// Applies the replacements to bytes that were read at `offset`.
    pub fn apply(&self, offset: u64, bytes: &mut [u8]) {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let end = offset.saturating_add(bytes.len() as u64);
        for (start, replacement) in &inner.replacements {
            let stop = start.saturating_add(replacement.len() as u64);
            let (from, to) = (offset.max(*start), end.min(stop));
            if from < to {
                let (here, there) = ((from - offset) as usize, (from - start) as usize);
                let length = (to - from) as usize;
                bytes[here..here + length].copy_from_slice(&replacement[there..there + length]);
            }
        }
    }

    /// Number of objects with blanked messages.
    pub fn objects(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extra_attributes.len()
    }

    /// Returns the attributes that the reader does not find, of the object with its header at `address`.
    pub fn extra_attributes(&self, address: u64) -> ExtraAttributes {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.extra_attributes.get(&address).cloned().unwrap_or_default()
    }

    /// Blanks the attributes of an object that the reader refuses. Returns whether there are any.
    ///
    /// # Errors
    /// Returns an error if the header is damaged.
    pub fn blank(&self, file: &Hdf5File, group: &Group, address: u64) -> Result<bool, FormatError> {
        if !self.extra_attributes(address).refused.is_empty() {
            return Ok(false);
        }
        let superblock = file.superblock();
        let sizes = (superblock.offset_size, superblock.length_size);
        let mut extra = ExtraAttributes::default();
        let mut blanked = Vec::new();
        for mut chunk in chunks(file, address)? {
            let mut blanks = Vec::new();
            for message in chunk.messages() {
                let bytes = chunk.message(&message);
                let cursor = &mut Cursor::new(bytes);
                if message.kind == MSG_ATTRIBUTE {
                    if let Err(why) = attribute::parse(cursor, sizes.0, sizes.1, bytes.len()) {
                        extra.refused.push(refused(bytes, &why));
                        blanks.push(message);
                    }
                } else if message.kind == MSG_ATTRIBUTE_INFO {
                    let info = attribute_info::parse(cursor, sizes.0, sizes.1, bytes.len()).map_err(bad)?;
                    let before = extra.refused.len();
                    let read = dense(file, group, &info, &mut extra.refused)?;
                    if extra.refused.len() > before {
                        extra.read = read;
                        blanks.push(message);
                    }
                }
            }
            if !blanks.is_empty() {
                blanks.iter().for_each(|message| chunk.blank(message));
                blanked.push(chunk.sealed());
            }
        }
        let any = !blanked.is_empty();
        if any {
            let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Addresses count from the end of a user block, offsets from the beginning of the file.
            let base = superblock.base_address;
            inner.replacements.extend(
                blanked.into_iter().map(|Chunk { start, bytes, .. }| (start.saturating_add(base), bytes)),
            );
            inner.extra_attributes.insert(address, extra);
        }
        Ok(any)
    }
}

/// Reads attributes from a fractal heap, in which HDF5 stores many attributes of one object.
fn dense(
    file: &Hdf5File,
    group: &Group,
    info: &AttributeInfoMessage,
    refused_ones: &mut Vec<Attribute>,
) -> Result<Vec<Read>, FormatError> {
    let (offsets, lengths) = (file.superblock().offset_size, file.superblock().length_size);
    if Cursor::is_undefined_offset(info.fractal_heap_address, offsets) {
        return Ok(Vec::new());
    }
    let storage = file.storage();
    let heap =
        FractalHeap::parse_at_storage(storage, info.fractal_heap_address, offsets, lengths).map_err(bad)?;
    let tree = BTreeV2Header::parse_at_storage(storage, info.btree_name_index_address, offsets, lengths);
    let records =
        collect_btree_v2_records_storage(storage, &tree.map_err(bad)?, offsets, lengths, None, &[], None);
    let mut blocks = FractalHeapDirectBlockCache::default();
    let mut found = Vec::new();
    for record in records.map_err(bad)? {
        let BTreeV2Record::AttributeNameHash { heap_id, creation_order, .. } = record else { continue };
        let bytes =
            heap.get_object_storage_cached(&heap_id, storage, offsets, lengths, &mut blocks).map_err(bad)?;
        match attribute::parse(&mut Cursor::new(&bytes), offsets, lengths, bytes.len()) {
            Ok(message) => found.push((creation_order, with_texts(Read::from_message(message), group))),
            Err(why) => refused_ones.push(refused(&bytes, &why)),
        }
        FormatError::limit("attributes", found.len() as u64, MAX_VARIABLES as u64)?;
    }
    found.sort_by_key(|(order, _)| *order);
    Ok(found.into_iter().map(|(_, read)| read).collect())
}

/// Adds the texts of variable length, which are stored in a separate heap.
fn with_texts(mut read: Read, group: &Group) -> Read {
    let text = match &read.datatype {
        Datatype::VarLen { base, .. } => base.is_vlen_string_base(),
        Datatype::String { size: StringSize::Variable, .. } => true,
        _ => false,
    };
    if text {
        let each = 8 + usize::from(group.offset_size());
        let one = |reference| {
            let bytes = group.resolve_vlen_reference_bytes(reference, 1).ok()?;
            Some(String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned())
        };
        read.decoded_strings = read.raw_data.chunks_exact(each).map(one).collect();
    }
    read
}

/// Describes an attribute that cannot be read, from its message.
fn refused(message: &[u8], why: &hdf5_reader::error::Error) -> Attribute {
    // Version 3 has the encoding of the name before the name.
    let start = if message.first() == Some(&3) { 9 } else { 8 };
    let length = message.get(2..4).map_or(0, |size| usize::from(u16::from_le_bytes([size[0], size[1]])));
    let name = message.get(start..).map_or(&[][..], |rest| &rest[..length.min(rest.len())]);
    let name = String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
    let shared = message.first().is_some_and(|version| *version > 1)
        && message.get(1).is_some_and(|flags| flags & 1 == 1);
    let what =
        if shared { "a value of a committed datatype".to_owned() } else { format!("unreadable ({why})") };
    Attribute { name, value: AttributeValue::Other(what) }
}
