//! Kernels over f64 records that break one law each. They show that the suite finds and names the broken law.

use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::{Block, Ctx, Fold, Kernel, KernelError, Next, Order, Sink, Spec, Step, Value};

/// Kernel that breaks the law of blocks: its answer is the number of blocks.
pub struct BlockCounter;
/// Kernel that breaks the law of save: some saved states lose one record.
pub struct Forgetful;
/// Kernel that breaks the law of merge: it keeps the longer part only.
pub struct LeftHeavy;
/// Kernel that breaks the law of order: it declares `Any`, and keeps the part that was merged first.
pub struct FirstWins;
/// Kernel that breaks the law of states: it panics on a state that is too short.
pub struct Panicky;

/// Kernel that breaks the contract of update: it takes no record.
pub struct Idler;
/// Kernel that keeps every law except the one of the reference: it always answers 0.
pub struct Zero;

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Blocks,
    Save,
    Merge,
    Order,
    State,
    Idle,
    None,
}

struct Faulty {
    fault: Fault,
    count: u64,
    first: Option<u64>,
}

impl Faulty {
    fn decode(&self, state: &[u8]) -> Result<(u64, Option<u64>), KernelError> {
        if self.fault == Fault::State {
            return Ok((state[..8].iter().map(|byte| u64::from(*byte)).sum(), None));
        }
        let mut read = StateReader::new("faulty", state);
        let count = read.u64()?;
        let first = if read.flag()? { Some(read.u64()?) } else { None };
        read.end()?;
        Ok((count, first))
    }
}

impl Fold for Faulty {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        self.first = self.first.or(Some(block.first()));
        match self.fault {
            Fault::Blocks => self.count += 1,
            Fault::State => self.count = 0,
            _ => self.count += block.count(),
        }
        Ok(Step::Took(if self.fault == Fault::Idle { 0 } else { block.count() }))
    }
    fn save(&self, out: &mut Vec<u8>) {
        let lost = u64::from(self.fault == Fault::Save && self.count % 3 == 1 && self.count > 3);
        out.put_u64(self.count - lost);
        if self.fault != Fault::State {
            out.put_flag(self.first.is_some());
            self.first.iter().for_each(|first| out.put_u64(*first));
        }
    }
    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        let (count, first) = self.decode(later)?;
        match self.fault {
            Fault::Merge => self.count = self.count.max(count),
            _ => self.count = self.count.saturating_add(count),
        }
        self.first = self.first.or(first);
        Ok(())
    }
}

macro_rules! faulty {
    ($($name:ident, $label:literal, $fault:expr, $order:expr, $answer:expr);* $(;)?) => {$(
        impl Kernel for $name {
            fn spec(&self) -> Spec {
                Spec { order: $order, ..Spec::fixed($label, 8) }
            }
            fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
                Ok(Box::new(Faulty { fault: $fault, count: 0, first: None }))
            }
            fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
                let (count, first) = Faulty { fault: $fault, count: 0, first: None }.decode(whole)?;
                let answer: fn(u64, Option<u64>) -> u64 = $answer;
                Ok(Next::Done(Value::from(answer(count, first))))
            }
        }
    )*};
}

faulty! {
    BlockCounter, "block-counter", Fault::Blocks, Order::File, |count, _| count;
    Forgetful, "forgetful", Fault::Save, Order::File, |count, _| count;
    LeftHeavy, "left-heavy", Fault::Merge, Order::File, |count, _| count;
    FirstWins, "first-wins", Fault::Order, Order::Any, |_, first| first.unwrap_or(0);
    Idler, "idler", Fault::Idle, Order::Any, |count, _| count;
    Zero, "zero", Fault::None, Order::Any, |_, _| 0;
    Panicky, "panicky", Fault::State, Order::Any, |count, _| count;
}
