//! A generator: records have no bytes, and each gives many rows. The state has the position within a record.

use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::{
    Block, Ctx, Fold, Kernel, KernelError, Next, Output, Position, Record, Sink, Spec, Step,
};

/// Kernel over this number of virtual records. Record i gives the rows `(i, j)` for each j <= i.
pub struct Triangle(pub u64);

#[derive(Default)]
struct TriangleFold {
    rows: u64,
    /// Number of rows of the next record that were given already.
    cursor: u64,
}

impl Kernel for Triangle {
    fn spec(&self) -> Spec {
        Spec { record: Record::Index(self.0), output: Output::Bytes, ..Spec::fixed("triangle", 1) }
    }
    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(TriangleFold::default()))
    }
    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let (rows, cursor) = decode(whole)?;
        if cursor != 0 {
            return Err(StateReader::new("triangle", whole).bad("a record is unfinished"));
        }
        Ok(Next::Done(rows.into()))
    }
}

fn decode(state: &[u8]) -> Result<(u64, u64), KernelError> {
    let mut read = StateReader::new("triangle", state);
    let state = (read.u64()?, read.u64()?);
    read.end()?;
    Ok(state)
}

impl Fold for TriangleFold {
    fn update(&mut self, block: &Block<'_>, sink: &mut dyn Sink) -> Result<Step, KernelError> {
        for i in block.first()..block.end() {
            while self.cursor <= i {
                let at = Position { record: i, part: self.cursor };
                if sink.put(at, &(i * 1000 + self.cursor).to_le_bytes()).is_err() {
                    return Ok(Step::Full(i - block.first()));
                }
                self.cursor += 1;
                self.rows += 1;
            }
            self.cursor = 0;
        }
        Ok(Step::Took(block.count()))
    }
    fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.rows);
        out.put_u64(self.cursor);
    }
    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        let (rows, cursor) = decode(later)?;
        self.rows = self.rows.saturating_add(rows);
        self.cursor = cursor;
        Ok(())
    }
}
