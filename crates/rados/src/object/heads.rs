//! Reading the records of objects.

use gristmill_store::{ObjectId, Result};
use rustix::io::Errno;

use crate::access::Access;
use crate::client::Reading;
use crate::piece::head;
use crate::record::{MAX_RECORD, Record};

/// Bytes that are read first: enough for objects of some hundred pieces.
const USUAL_RECORD: usize = 4_096;

/// The records of objects, and whether they may have changed since. `None` for a head that is missing or is no record.
///
/// # Errors
/// It fails if Ceph cannot read one.
pub(crate) fn read_heads(access: &Access, ids: &[ObjectId]) -> Result<Vec<Option<(Record, bool)>>> {
    let mut buffers = vec![vec![0_u8; USUAL_RECORD]; ids.len()];
    let mut readings: Vec<_> = ids
        .iter()
        .zip(&mut buffers)
        .map(|(id, out)| Reading { name: head(id), offset: 0, out: out.as_mut_slice() })
        .collect();
    let read = access.pool.read_all(&mut readings);
    let mut records = Vec::with_capacity(ids.len());
    for ((id, read), mut buffer) in ids.iter().zip(read).zip(buffers) {
        let bytes = match read {
            Ok(bytes) if bytes < USUAL_RECORD => bytes,
            Ok(_) => {
                buffer.resize(MAX_RECORD + 1, 0);
                let mut whole = [Reading { name: head(id), offset: 0, out: buffer.as_mut_slice() }];
                let read = access.pool.read_all(&mut whole).pop().unwrap_or(Ok(0));
                read.map_err(access.failed("read", id))?
            }
            Err(Errno::NOENT) => 0,
            Err(errno) => return Err(access.failed("read", id)(errno)),
        };
        records.push(buffer.get(..bytes).and_then(Record::from_bytes));
    }
    Ok(records)
}
