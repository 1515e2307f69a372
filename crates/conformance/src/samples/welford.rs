//! Running mean and variance in floats. The merge rounds, so the kernel keeps the laws only inside `Tree`.

use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::{Block, Ctx, Fold, Kernel, KernelError, Next, Numerics, Sink, Spec, Step, Value};

use super::floats;

/// Kernel for the mean and the sum of squared distances from it, by Welford's update and Chan's merge.
pub struct Welford;

#[derive(Clone, Copy, Default)]
struct WelfordFold {
    count: u64,
    mean: f64,
    m2: f64,
}

impl Kernel for Welford {
    fn spec(&self) -> Spec {
        Spec { numerics: Numerics::Approximate, ..Spec::fixed("welford", 8) }
    }
    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(WelfordFold::default()))
    }
    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let fold = decode(whole)?;
        Ok(Next::Done(Value::List(vec![fold.count.into(), Value::float(fold.mean), Value::float(fold.m2)])))
    }
}

fn decode(state: &[u8]) -> Result<WelfordFold, KernelError> {
    let mut read = StateReader::new("welford", state);
    let fold = WelfordFold { count: read.u64()?, mean: read.f64()?, m2: read.f64()? };
    read.end()?;
    Ok(fold)
}

impl Fold for WelfordFold {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        for x in floats(block) {
            self.count += 1;
            let distance = x - self.mean;
            self.mean += distance / self.count as f64;
            self.m2 += distance * (x - self.mean);
        }
        Ok(Step::Took(block.count()))
    }
    fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.count);
        out.put_f64(self.mean);
        out.put_f64(self.m2);
    }
    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        let later = decode(later)?;
        if self.count == 0 || later.count == 0 {
            *self = if self.count == 0 { later } else { *self };
            return Ok(());
        }
        let (a, b) = (self.count as f64, later.count as f64);
        let distance = later.mean - self.mean;
        self.mean += distance * b / (a + b);
        self.m2 += later.m2 + distance * distance * a * b / (a + b);
        self.count = self.count.saturating_add(later.count);
        Ok(())
    }
}
