//! The fold of `sum`, `mean` and `var`: the number of values and their exact totals.

use gristmill_exact::{DecodeError, IntKind, IntMoments, IntSum, Moments, Sum};

use crate::element::first_nan;
use crate::nan::NanRule;
use crate::state::{StateReader, StateWriter};
use crate::{Block, DType, Fold, KernelError, Sink, Step};

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

/// Exact totals of values of one type.
pub(crate) trait Totals: Send + Sized + 'static {
    /// Totals of no values.
    fn new(dtype: DType) -> Self;
    /// Adds little-endian elements of that type.
    fn add(&mut self, dtype: DType, data: &[u8]);
    /// Number of NaNs among the values.
    fn nans(&self) -> u64;
    fn merge(&mut self, other: &Self);
    fn encode(&self, out: &mut Vec<u8>);
    /// Reads totals of values of that type. Returns also the number of bytes that they took.
    fn decode(dtype: DType, bytes: &[u8]) -> Result<(Self, usize), DecodeError>;
}

/// The fold: the number of values and their totals.
#[derive(Clone, Debug)]
pub(crate) struct Accumulate<T> {
    pub kernel: &'static str,
    pub dtype: DType,
    pub nan: NanRule,
    pub count: u64,
    pub totals: T,
}

impl<T: Totals> Accumulate<T> {
    pub fn new(kernel: &'static str, dtype: DType, nan: NanRule) -> Self {
        Accumulate { kernel, dtype, nan, count: 0, totals: T::new(dtype) }
    }

    pub fn decode(self, state: &[u8]) -> Result<Self, KernelError> {
        let mut read = StateReader::new(self.kernel, state);
        let count = read.u64()?;
        let (totals, used) = T::decode(self.dtype, read.rest()).map_err(|e| read.bad(e.to_string()))?;
        read.bytes(used)?;
        read.end()?;
        Ok(Accumulate { count, totals, ..self })
    }

    /// Number of values that count under the NaN rule.
    pub fn value_count(&self) -> u64 {
        match self.nan {
            NanRule::Skip => self.count.saturating_sub(self.totals.nans()),
            _ => self.count,
        }
    }
}

impl<T: Totals> Fold for Accumulate<T> {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        let data = block.data();
        let elements = (data.len() / self.dtype.size()) as u64;
        let nans = self.totals.nans();
        self.totals.add(self.dtype, data);
        if self.nan == NanRule::Error && self.totals.nans() != nans {
            let per_record = elements / block.count().max(1);
            self.nan.check(first_nan(self.dtype, data).map(|i| block.first() * per_record + i))?;
        }
        self.count += elements;
        Ok(Step::Took(block.count()))
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.count);
        self.totals.encode(out);
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        let later = Accumulate::<T>::new(self.kernel, self.dtype, self.nan).decode(later)?;
        self.count = self.count.saturating_add(later.count);
        self.totals.merge(&later.totals);
        Ok(())
    }
}

/// Defines totals with one type for floats and another for integers.
macro_rules! totals {
    ($name:ident, $float:ty, $int:ty) => {
        #[derive(Clone, Debug)]
        pub(crate) enum $name {
            Float(Box<$float>),
            Int($int),
        }

        impl Totals for $name {
            fn new(dtype: DType) -> Self {
                match int_kind(dtype) {
                    Some(_) => $name::Int(<$int>::new()),
                    None => $name::Float(Box::default()),
                }
            }

            fn add(&mut self, dtype: DType, data: &[u8]) {
                match (self, int_kind(dtype), dtype) {
                    ($name::Int(totals), Some(kind), _) => totals.add_le(kind, data),
                    ($name::Float(totals), _, DType::F32) => totals.add_f32_le(data),
                    ($name::Float(totals), ..) => totals.add_f64_le(data),
                    // Both were made for the same element type.
                    ($name::Int(_), None, _) => {}
                }
            }

            fn nans(&self) -> u64 {
                match self {
                    $name::Float(totals) => totals.nans(),
                    $name::Int(_) => 0,
                }
            }

            fn merge(&mut self, other: &Self) {
                match (self, other) {
                    ($name::Float(a), $name::Float(b)) => a.merge(b),
                    ($name::Int(a), $name::Int(b)) => a.merge(b),
                    // Both were made for the same element type.
                    _ => {}
                }
            }

            fn encode(&self, out: &mut Vec<u8>) {
                match self {
                    $name::Float(totals) => totals.encode(out),
                    $name::Int(totals) => totals.encode(out),
                }
            }

            fn decode(dtype: DType, bytes: &[u8]) -> Result<(Self, usize), DecodeError> {
                Ok(match int_kind(dtype) {
                    Some(_) => {
                        let (totals, used) = <$int>::decode(bytes)?;
                        ($name::Int(totals), used)
                    }
                    None => {
                        let (totals, used) = <$float>::decode(bytes)?;
                        ($name::Float(Box::new(totals)), used)
                    }
                })
            }
        }
    };
}

totals! { SumTotals, Sum, IntSum }
totals! { MomentTotals, Moments, IntMoments }
