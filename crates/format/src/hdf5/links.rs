//! The names in a group. The reader lists a group only as a whole, and fails if one of its objects cannot be read.

use hdf5_reader::Hdf5File;
use hdf5_reader::btree_v1::collect_btree_v1_leaves_storage;
use hdf5_reader::btree_v2::{BTreeV2Header, BTreeV2Record, collect_btree_v2_records_storage};
use hdf5_reader::fractal_heap::{FractalHeap, FractalHeapDirectBlockCache};
use hdf5_reader::group::Group;
use hdf5_reader::io::Cursor;
use hdf5_reader::local_heap::LocalHeap;
use hdf5_reader::messages::HdfMessage;
use hdf5_reader::messages::link::{self, LinkMessage, LinkTarget};
use hdf5_reader::messages::link_info::LinkInfoMessage;
use hdf5_reader::messages::symbol_table_msg::SymbolTableMessage;
use hdf5_reader::symbol_table::SymbolTableNode;

use super::bad;
use crate::{FormatError, MAX_VARIABLES};

/// A name in a group.
pub struct Link {
    pub name: String,
    /// Address of the object's header, if the link has it.
    pub address: Option<u64>,
    /// The other file, if the link leads to one.
    pub external: Option<String>,
    /// Number in the order of creation, if the group has that order.
    order: Option<u64>,
}

impl From<LinkMessage> for Link {
    fn from(message: LinkMessage) -> Link {
        let (address, external) = match message.target {
            LinkTarget::External { filename, .. } => (None, Some(filename)),
            LinkTarget::Hard { address } => (Some(address), None),
            LinkTarget::Soft { .. } => (None, None),
        };
        Link { name: message.name, address, external, order: message.creation_order }
    }
}

/// Returns all names of a group, in the order of their creation if the group has that order.
pub fn links(file: &Hdf5File, group: &Group) -> Result<Vec<Link>, FormatError> {
    let header = file.get_or_parse_header(group.address()).map_err(bad)?;
    let mut links = Vec::new();
    for message in &header.messages {
        match message {
            HdfMessage::SymbolTable(table) => old(file, table, &mut links)?,
            HdfMessage::Link(link) => links.push(Link::from(link.clone())),
            HdfMessage::LinkInfo(info) => dense(file, info, &mut links)?,
            _ => {}
        }
        FormatError::limit("links of a group", links.len() as u64, MAX_VARIABLES as u64)?;
    }
    if links.iter().all(|link| link.order.is_some()) {
        links.sort_by_key(|link| link.order);
    } else {
        links.sort_by(|a, b| a.name.cmp(&b.name));
    }
    Ok(links)
}

/// Reads names from a B-tree of symbol tables, the old form of groups.
fn old(file: &Hdf5File, table: &SymbolTableMessage, out: &mut Vec<Link>) -> Result<(), FormatError> {
    let (offsets, lengths) = (file.superblock().offset_size, file.superblock().length_size);
    let storage = file.storage();
    let heap = LocalHeap::parse_at_storage(storage, table.heap_address, offsets, lengths).map_err(bad)?;
    let bytes = usize::try_from(heap.data_segment_size).map_err(bad)?;
    let names = storage.read_range(heap.data_segment_address, bytes).map_err(bad)?;
    let leaves =
        collect_btree_v1_leaves_storage(storage, table.btree_address, offsets, lengths, None, &[], None);
    for (_, address) in leaves.map_err(bad)? {
        let start = storage.read_range(address, 8).map_err(bad)?;
        let Some(&[_, _, _, _, _, _, low, high]) = start.first_chunk::<8>() else { continue };
        let count = usize::from(u16::from_le_bytes([low, high]));
        let bytes = 8 + count * (2 * usize::from(offsets) + 24);
        let node = storage.read_range(address, bytes).map_err(bad)?;
        let node = SymbolTableNode::parse(&mut Cursor::new(&node), offsets, lengths).map_err(bad)?;
        for entry in node.entries {
            let at = usize::try_from(entry.link_name_offset).map_err(bad)?;
            let name = names.get(at..).and_then(|rest| rest.split(|byte| *byte == 0).next());
            let name = name.ok_or_else(|| bad("a name is outside its heap"))?;
            let name = std::str::from_utf8(name).map_err(bad)?.to_owned();
            // A soft link has no address.
            let address = (entry.cache_type != 2).then_some(entry.object_header_address);
            out.push(Link { name, address, external: None, order: None });
        }
        FormatError::limit("links of a group", out.len() as u64, MAX_VARIABLES as u64)?;
    }
    Ok(())
}

/// Reads names from a fractal heap, the new form of large groups.
fn dense(file: &Hdf5File, info: &LinkInfoMessage, out: &mut Vec<Link>) -> Result<(), FormatError> {
    let (offsets, lengths) = (file.superblock().offset_size, file.superblock().length_size);
    if Cursor::is_undefined_offset(info.fractal_heap_address, offsets) {
        return Ok(());
    }
    let storage = file.storage();
    let heap =
        FractalHeap::parse_at_storage(storage, info.fractal_heap_address, offsets, lengths).map_err(bad)?;
    let tree = BTreeV2Header::parse_at_storage(storage, info.btree_name_index_address, offsets, lengths);
    let records =
        collect_btree_v2_records_storage(storage, &tree.map_err(bad)?, offsets, lengths, None, &[], None);
    let mut blocks = FractalHeapDirectBlockCache::default();
    for record in records.map_err(bad)? {
        let BTreeV2Record::LinkNameHash { heap_id, .. } = record else { continue };
        let bytes =
            heap.get_object_storage_cached(&heap_id, storage, offsets, lengths, &mut blocks).map_err(bad)?;
        let message = link::parse(&mut Cursor::new(&bytes), offsets, lengths, bytes.len()).map_err(bad)?;
        out.push(Link::from(message));
        FormatError::limit("links of a group", out.len() as u64, MAX_VARIABLES as u64)?;
    }
    Ok(())
}
