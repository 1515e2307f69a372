//! The fold of `sum` and `mean`: how many values, and their exact sum.

use gristmill_exact::{IntKind, IntSum, Sum};

use crate::element::first_nan;
use crate::nan::NanRule;
use crate::state::{StateReader, StateWriter};
use crate::{Block, DType, Fold, KernelError, Sink, Spec, Step};

/// The integer type of a [`DType`], or `None` for floats.
pub(crate) fn int_kind(dtype: DType) -> Option<IntKind> {
    Some(match dtype {
        DType::I8 => IntKind::I8,
        DType::I16 => IntKind::I16,
        DType::I32 => IntKind::I32,
        DType::I64 => IntKind::I64,
        DType::U8 => IntKind::U8,
        DType::U16 => IntKind::U16,
        DType::U32 => IntKind::U32,
        DType::U64 => IntKind::U64,
        DType::F32 | DType::F64 => return None,
    })
}

/// The exact sum of one kind of number.
#[derive(Clone, Debug)]
pub(crate) enum Total {
    Float(Box<Sum>),
    Int(IntSum),
}

/// Number of values and exact sum.
#[derive(Clone, Debug)]
pub(crate) struct Accumulate {
    pub kernel: &'static str,
    pub dtype: DType,
    pub nan: NanRule,
    pub count: u64,
    pub total: Total,
}

impl Accumulate {
    pub fn new(kernel: &'static str, dtype: DType, nan: NanRule) -> Accumulate {
        let total = match int_kind(dtype) {
            Some(_) => Total::Int(IntSum::new()),
            None => Total::Float(Box::default()),
        };
        Accumulate { kernel, dtype, nan, count: 0, total }
    }

    pub fn decode(mut self, state: &[u8]) -> Result<Accumulate, KernelError> {
        let mut read = StateReader::new(self.kernel, state);
        self.count = read.u64()?;
        let used;
        (self.total, used) = match self.total {
            Total::Float(_) => {
                let (sum, used) = Sum::decode(read.rest()).map_err(|e| read.bad(e.to_string()))?;
                (Total::Float(Box::new(sum)), used)
            }
            Total::Int(_) => {
                let (sum, used) = IntSum::decode(read.rest()).map_err(|e| read.bad(e.to_string()))?;
                (Total::Int(sum), used)
            }
        };
        read.bytes(used)?;
        read.end()?;
        Ok(self)
    }

    /// Values that count, as the NaN rule has it.
    pub fn counted(&self) -> u64 {
        match (&self.total, self.nan) {
            (Total::Float(sum), NanRule::Skip) => self.count.saturating_sub(sum.nans()),
            _ => self.count,
        }
    }

    /// What a kernel with this fold declares.
    pub fn spec(kernel: &'static str, record: u64) -> Spec {
        Spec { order: crate::Order::Any, state_hint: 600, ..Spec::fixed(kernel, record) }
    }
}

impl Fold for Accumulate {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        let data = block.data();
        let elements = (data.len() / self.dtype.size()) as u64;
        match &mut self.total {
            Total::Int(sum) => {
                if let Some(kind) = int_kind(self.dtype) {
                    sum.add_le(kind, data);
                }
            }
            Total::Float(sum) => {
                let nans = sum.nans();
                if self.dtype == DType::F32 {
                    sum.add_f32_le(data)
                } else {
                    sum.add_f64_le(data)
                }
                if self.nan == NanRule::Error && sum.nans() != nans {
                    let per_record = elements / block.count().max(1);
                    self.nan.check(first_nan(self.dtype, data).map(|i| block.first() * per_record + i))?;
                }
            }
        }
        self.count += elements;
        Ok(Step::Took(block.count()))
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.count);
        match &self.total {
            Total::Float(sum) => sum.encode(out),
            Total::Int(sum) => sum.encode(out),
        }
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        let later = Accumulate::new(self.kernel, self.dtype, self.nan).decode(later)?;
        self.count = self.count.saturating_add(later.count);
        match (&mut self.total, &later.total) {
            (Total::Float(a), Total::Float(b)) => a.merge(b),
            (Total::Int(a), Total::Int(b)) => a.merge(b),
            // Both were made for the same element type.
            _ => {}
        }
        Ok(())
    }
}
