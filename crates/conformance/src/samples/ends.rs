//! The first and the last line: records are lines, and their order matters.

use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::{Block, Ctx, Fold, Kernel, KernelError, Next, Sink, Spec, Step, Value};

/// Kernel for the first and the last line of a text.
pub struct Ends;

/// First and last line. `None` if there are no lines.
type Found = Option<(Vec<u8>, Vec<u8>)>;

#[derive(Default)]
struct EndsFold(Found);

impl Kernel for Ends {
    fn spec(&self) -> Spec {
        Spec::lines("ends")
    }
    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(EndsFold::default()))
    }
    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let Some((first, last)) = decode(whole)? else {
            return Err(KernelError::Empty { kernel: "ends", why: "there are no lines" });
        };
        Ok(Next::Done(Value::List(vec![Value::Bytes(first), Value::Bytes(last)])))
    }
}

fn decode(state: &[u8]) -> Result<Found, KernelError> {
    let mut read = StateReader::new("ends", state);
    let ends = if read.flag()? { Some((read.blob()?.to_vec(), read.blob()?.to_vec())) } else { None };
    read.end()?;
    Ok(ends)
}

impl Fold for EndsFold {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        for line in block.data().split_inclusive(|byte| *byte == b'\n') {
            let (_, last) = self.0.get_or_insert_with(|| (line.to_vec(), Vec::new()));
            line.clone_into(last);
        }
        Ok(Step::Took(block.count()))
    }
    fn save(&self, out: &mut Vec<u8>) {
        out.put_flag(self.0.is_some());
        if let Some((first, last)) = &self.0 {
            out.put_blob(first);
            out.put_blob(last);
        }
    }
    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        self.0 = match (self.0.take(), decode(later)?) {
            (Some((first, _)), Some((_, last))) => Some((first, last)),
            (mine, later) => mine.or(later),
        };
        Ok(())
    }
}
