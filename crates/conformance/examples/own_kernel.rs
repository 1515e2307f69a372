//! A kernel of one's own: how often the sign changes from one f64 to the next, wherever the two lie.

use std::sync::Arc;

use gristmill_conformance::{Case, check};
use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::*;

struct SignChanges;

/// Changes within a part, and whether its first and its last value are negative; `None` for no values.
#[derive(Clone, Copy)]
struct Part(Option<(u64, bool, bool)>);

impl Kernel for SignChanges {
    fn spec(&self) -> Spec {
        Spec::fixed("sign-changes", 8) // records of 8 bytes; partials are merged in the order of the file
    }
    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(Part(None)))
    }
    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        Ok(Next::Done(Part::decode(whole)?.0.map_or(0, |(changes, ..)| changes).into()))
    }
}

impl Part {
    fn decode(state: &[u8]) -> Result<Part, KernelError> {
        let mut read = StateReader::new("sign-changes", state);
        let part = if read.flag()? { Some((read.u64()?, read.flag()?, read.flag()?)) } else { None };
        read.end().map(|()| Part(part))
    }
    fn append(&mut self, later: Part) {
        self.0 = match (self.0, later.0) {
            (Some((a, first, end)), Some((b, begin, last))) => {
                Some((a.saturating_add(b).saturating_add(u64::from(end != begin)), first, last))
            }
            (one, other) => one.or(other),
        };
    }
}

impl Fold for Part {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        let negative = block.data().as_chunks().0.iter().map(|x| f64::from_le_bytes(*x) < 0.0);
        negative.for_each(|sign| self.append(Part(Some((0, sign, sign)))));
        Ok(Step::Took(block.count()))
    }
    fn save(&self, out: &mut Vec<u8>) {
        out.put_flag(self.0.is_some());
        if let Some((changes, first, last)) = self.0 {
            out.put_u64(changes);
            out.put_flag(first);
            out.put_flag(last);
        }
    }
    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        self.append(Part::decode(later)?);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let data = (0..300).flat_map(|i| f64::from(i).sin().to_le_bytes()).collect();
    check(&Case::new(Arc::new(SignChanges), Input::elements(DType::F64), data), 1, 50)?;
    println!("it keeps the laws");
    Ok(())
}
