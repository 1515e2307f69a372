//! Opening a store: lists its objects, recovers those that were being changed, and removes pieces that no object names.

use std::collections::{BTreeSet, HashMap};

use gristmill_store::{ObjectId, Result};
use rustix::io::Errno;

use crate::access::Access;
use crate::client::{Action, Change};
use crate::error::explain;
use crate::object::read_heads;
use crate::piece::{Named, PIECE_BYTES, c_name, head, parse, piece, pieces_of};
use crate::record::Record;

/// Heads that are read at once.
const HEADS_AT_ONCE: usize = 256;

/// Pieces of an object in Ceph: generation, number and salt.
type Pieces = BTreeSet<(u64, u64, u8)>;

/// The names of all objects. An object that a process was changing when it ended gets a new version, and loses what lies after its end.
/// Pieces that no object has are removed.
///
/// # Errors
/// It fails if Ceph cannot list, read or change something. A head that is no record is not an error here, but when the object is used.
pub(crate) fn found_objects(access: &Access) -> Result<BTreeSet<ObjectId>> {
    let failed = |op| move |errno| explain(op, access.location.to_string(), errno);
    let mut ids = BTreeSet::new();
    let mut pieces: HashMap<ObjectId, Pieces> = HashMap::new();
    let note = |name: &str| match parse(name) {
        Named::Head(id) => drop(ids.insert(id)),
        Named::Piece { id, generation, index, salt } => {
            pieces.entry(id).or_default().insert((generation, index, salt));
        }
        Named::Other => {}
    };
    access.pool.for_each_name(note).map_err(failed("list"))?;
    let all: Vec<_> = ids.iter().cloned().collect();
    for some in all.chunks(HEADS_AT_ONCE) {
        for (id, head) in some.iter().zip(read_heads(access, some)?) {
            let there = pieces.remove(id).unwrap_or_default();
            // Nothing is removed of an object whose head cannot be read.
            let Some((mut record, changed)) = head else { continue };
            remove_strays(access, id, &record, &there)?;
            if changed {
                recover(access, id, &mut record)?;
            }
        }
    }
    // What is left belongs to objects that were removed.
    for (id, there) in &pieces {
        remove(access, id, there.iter().copied())?;
    }
    Ok(ids)
}

/// Removes the pieces that the record of an object does not name.
fn remove_strays(access: &Access, id: &ObjectId, record: &Record, there: &Pieces) -> Result<()> {
    let named = |&(generation, index, salt): &(u64, u64, u8)| {
        generation == record.generation && record.pieces.get(&index) == Some(&salt)
    };
    remove(access, id, there.iter().copied().filter(|found| !named(found)))
}

fn remove(access: &Access, id: &ObjectId, pieces: impl Iterator<Item = (u64, u64, u8)>) -> Result<()> {
    let changes = pieces.map(|(generation, index, salt)| Change {
        name: c_name(piece(id, generation, index, salt)),
        actions: vec![Action::Remove],
    });
    access.pool.change_each(changes, Errno::NOENT).map_err(access.failed("remove what is left of", id))
}

/// Gives an object that was changed a new version, and cuts off the end of its last piece.
fn recover(access: &Access, id: &ObjectId, record: &mut Record) -> Result<()> {
    let last = pieces_of(record.length).saturating_sub(1);
    if let Some(&salt) = record.pieces.get(&last) {
        let cut = Change {
            name: c_name(piece(id, record.generation, last, salt)),
            actions: vec![Action::Truncate(record.length - last * PIECE_BYTES)],
        };
        access.pool.change_each([cut], Errno::NOENT).map_err(access.failed("free the end of", id))?;
    }
    record.version = access.next_version();
    let bytes = record.to_bytes(false);
    let actions = vec![Action::MustExist, Action::WriteWhole(&bytes)];
    access.pool.change_in_full_pool(&head(id), actions).map_err(access.failed("recover", id))
}
