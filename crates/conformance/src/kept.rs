//! Bytes that members of a crew keep, and the file that their objects form.

use gristmill_kernel::RowBatch;
use gristmill_layout::{Layout, SegmentTable, Segments};
use gristmill_runtime::{RunError, UnitEnd, UnitOutput};

/// The object of one member.
#[derive(Default)]
pub(crate) struct KeptObject {
    bytes: Vec<u8>,
    table: SegmentTable,
    /// Number of bytes of the current unit.
    made: u64,
}

impl UnitOutput for KeptObject {
    fn begin(&mut self, _: u64) -> Result<(), RunError> {
        self.made = 0;
        Ok(())
    }

    fn rows(&mut self, batch: RowBatch) -> Result<(), RunError> {
        self.made += batch.bytes().len() as u64;
        self.bytes.extend_from_slice(batch.bytes());
        Ok(())
    }

    fn end(&mut self, end: UnitEnd) -> Result<(), RunError> {
        match end.piece {
            Some((records, _)) => Ok(self.table.push(records, self.made)?),
            None => Ok(()),
        }
    }
}

/// Reads the file that these objects form.
pub(crate) fn kept_file(objects: &[KeptObject]) -> Result<Vec<u8>, RunError> {
    let tables: Vec<_> = objects.iter().map(|object| Some(object.table.clone())).collect();
    let layout = Layout::from(Segments::of_tables("kept", &tables)?);
    let mut out = Vec::new();
    for extent in layout.extents(0..u64::MAX) {
        let start = extent.object_offset as usize;
        let length = (extent.file.end - extent.file.start) as usize;
        let bytes =
            objects.get(extent.target as usize).and_then(|object| object.bytes.get(start..start + length));
        let cut = || RunError::BadPartial { why: "a piece is beyond the end of its object".into() };
        out.extend_from_slice(bytes.ok_or_else(cut)?);
    }
    Ok(out)
}
