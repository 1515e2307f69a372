//! Attributes that the reader does not know.
//!
//! It refuses an object as a whole, and its group with it, if one of the object's attributes has a type that it does not
//! know or that lies elsewhere in the file (a committed datatype). So the messages of such attributes are blanked in what it
//! reads, and told by name.

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

/// What is blanked in a file, and what is known instead.
#[derive(Default)]
pub struct Masks(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// Bytes that are read in the place of the file's, by where they begin.
    instead: Vec<(u64, Vec<u8>)>,
    /// By where an object's header lies.
    beside: HashMap<u64, Beside>,
}

/// What the reader does not tell of an object.
#[derive(Clone, Default)]
pub struct Beside {
    /// Attributes that lie beside the header, which it no longer finds.
    pub read: Vec<Read>,
    /// Those that cannot be read, with the reason.
    pub refused: Vec<Attribute>,
}

impl Masks {
    /// Puts what is known instead over bytes that were read at `offset`.
    pub fn over(&self, offset: u64, bytes: &mut [u8]) {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let end = offset.saturating_add(bytes.len() as u64);
        for (start, instead) in &inner.instead {
            let stop = start.saturating_add(instead.len() as u64);
            let (from, to) = (offset.max(*start), end.min(stop));
            if from < to {
                let (here, there) = ((from - offset) as usize, (from - start) as usize);
                let length = (to - from) as usize;
                bytes[here..here + length].copy_from_slice(&instead[there..there + length]);
            }
        }
    }

    /// How many objects have blanks.
    pub fn objects(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).beside.len()
    }

    /// What the reader does not tell of the object with its header at `address`.
    pub fn beside(&self, address: u64) -> Beside {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.beside.get(&address).cloned().unwrap_or_default()
    }

    /// Blanks the attributes of an object that the reader does not take. Whether there are any.
    ///
    /// # Errors
    /// A header that is damaged.
    pub fn blank(&self, file: &Hdf5File, group: &Group, address: u64) -> Result<bool, FormatError> {
        if !self.beside(address).refused.is_empty() {
            return Ok(false);
        }
        let superblock = file.superblock();
        let sizes = (superblock.offset_size, superblock.length_size);
        let mut beside = Beside::default();
        let mut blanked = Vec::new();
        for mut chunk in chunks(file, address)? {
            let mut blanks = Vec::new();
            for message in chunk.messages() {
                let bytes = chunk.message(&message);
                let cursor = &mut Cursor::new(bytes);
                if message.kind == MSG_ATTRIBUTE {
                    if let Err(why) = attribute::parse(cursor, sizes.0, sizes.1, bytes.len()) {
                        beside.refused.push(refused(bytes, &why));
                        blanks.push(message);
                    }
                } else if message.kind == MSG_ATTRIBUTE_INFO {
                    let info = attribute_info::parse(cursor, sizes.0, sizes.1, bytes.len()).map_err(bad)?;
                    let before = beside.refused.len();
                    let read = dense(file, group, &info, &mut beside.refused)?;
                    if beside.refused.len() > before {
                        beside.read = read;
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
            // Addresses are counted from behind a user block, and bytes from the beginning of the file.
            let base = superblock.base_address;
            inner.instead.extend(
                blanked.into_iter().map(|Chunk { start, bytes, .. }| (start.saturating_add(base), bytes)),
            );
            inner.beside.insert(address, beside);
        }
        Ok(any)
    }
}

/// The attributes in a fractal heap, as HDF5 keeps many of one object.
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

/// With its texts of any length, which lie in a heap of their own.
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

/// An attribute that cannot be read, by its message.
fn refused(message: &[u8], why: &hdf5_reader::error::Error) -> Attribute {
    // Version 3 says how its name is written before the name.
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
