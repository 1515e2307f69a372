//! `sign-changes`: counts how often the sign changes from one f64 to the next, in files of any layout.

use std::sync::Arc;

use gristmill_kernel::catalog::{Accepts, Declaration};
use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::{
    Block, Ctx, DType, Fold, Input, Kernel, KernelError, Next, Numerics, ParamDecl, Params, Sink, Spec, Step,
    Value,
};

const NAME: &str = "sign-changes";

/// The description for users, and the function that makes the kernel.
pub const DECLARATION: Declaration = Declaration {
    name: NAME,
    summary: "how often the sign changes from one value to the next",
    details: "Values whose distance from 0 is at most `zero` have no sign and are passed over, and so are NaN.",
    accepts: &[Accepts::Elements],
    params: &[ParamDecl::text("zero", Some("0"), "what counts as 0", "0.01")],
    result: &[("changes", "integer"), ("count", "values with a sign")],
    rows: None,
    numerics: Numerics::Exact,
    bind,
};

/// Makes the kernel. The names of parameters and the kind of input have been checked.
fn bind(params: &Params, input: &Input) -> Result<Arc<dyn Kernel>, KernelError> {
    if input.element != Some(DType::F64) {
        return Err(KernelError::WrongInput { kernel: NAME, why: "takes f64 only".into() });
    }
    match params.text("zero").parse::<f64>() {
        Ok(zero) if zero >= 0.0 => Ok(Arc::new(SignChanges { zero, record: 8 * input.per_record() })),
        _ => Err(params.refuse("zero", "it must be a number of at least 0, for example 0.01")),
    }
}

struct SignChanges {
    zero: f64,
    /// Bytes of a record.
    record: u64,
}

/// The state of a part of the file.
#[derive(Clone, Copy, Default)]
struct Part {
    changes: u64,
    count: u64,
    /// Whether the first and the last value with a sign are negative; unused if there is no such value.
    ends: (bool, bool),
}

impl Kernel for SignChanges {
    fn spec(&self) -> Spec {
        // `fixed`: partial results are merged in the order of the file.
        Spec::fixed(NAME, self.record)
    }
    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(SignFold { zero: self.zero, part: Part::default() }))
    }
    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let part = Part::decode(whole)?;
        Ok(Next::Done(Value::Map(vec![("changes", part.changes.into()), ("count", part.count.into())])))
    }
}

impl Part {
    fn decode(state: &[u8]) -> Result<Part, KernelError> {
        let mut read = StateReader::new(NAME, state);
        let part = Part { changes: read.u64()?, count: read.u64()?, ends: (read.flag()?, read.flag()?) };
        read.end()?;
        Ok(part)
    }

    /// Appends the state of the part that comes next.
    fn append(&mut self, later: Part) {
        if self.count == 0 || later.count == 0 {
            *self = if self.count == 0 { later } else { *self };
            return;
        }
        let seam = u64::from(self.ends.1 != later.ends.0);
        // A state may come from a network, so its numbers must not overflow a sum.
        self.changes = self.changes.saturating_add(later.changes).saturating_add(seam);
        self.count = self.count.saturating_add(later.count);
        self.ends.1 = later.ends.1;
    }
}

struct SignFold {
    zero: f64,
    part: Part,
}

impl Fold for SignFold {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        let (values, _) = block.data().as_chunks();
        for x in values.iter().map(|x| f64::from_le_bytes(*x)).filter(|x| x.abs() > self.zero) {
            let negative = x < 0.0;
            self.part.append(Part { changes: 0, count: 1, ends: (negative, negative) });
        }
        Ok(Step::Took(block.count()))
    }
    fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.part.changes);
        out.put_u64(self.part.count);
        out.put_flag(self.part.ends.0);
        out.put_flag(self.part.ends.1);
    }
    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        self.part.append(Part::decode(later)?);
        Ok(())
    }
}
