//! References of the built-in kernels. They are as simple as possible: they have the whole input at once, and numbers
//! of any size.

mod bins;
mod fractions;
mod order;
mod sums;
mod text;

use gristmill_conformance::Answer;
use gristmill_kernel::{DType, Input, KernelError, RecordRule, Value};

/// Exact value of an element.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    pub fn is_nan(self) -> bool {
        matches!(self, Number::Float(x) if x.is_nan())
    }

    /// The nearest f64.
    pub fn float(self) -> f64 {
        match self {
            Number::Int(n) => n as f64,
            Number::Float(x) => x,
        }
    }

    pub fn value(self) -> Value {
        match self {
            Number::Int(n) => Value::Int(n),
            Number::Float(x) => Value::float(x),
        }
    }
}

/// A request, and its elements if its input has elements.
pub struct NaiveRequest<'a> {
    pub kernel: &'static str,
    params: &'a [(String, String)],
    pub input: Input,
    pub data: &'a [u8],
    /// Index and value of each element that is not NaN.
    pub numbers: Vec<(u64, Number)>,
    /// Indices of the elements that are NaN.
    pub nans: Vec<u64>,
}

impl NaiveRequest<'_> {
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    pub fn flag(&self, name: &str) -> bool {
        self.param(name) == Some("true")
    }

    pub fn skips(&self) -> bool {
        self.param("nan") == Some("skip")
    }

    /// Whether the answer is NaN.
    pub fn answer_is_nan(&self) -> bool {
        !self.nans.is_empty() && !self.skips()
    }

    /// Number of values that count. NaN count unless they are skipped.
    pub fn count(&self) -> u64 {
        (self.numbers.len() + if self.skips() { 0 } else { self.nans.len() }) as u64
    }

    /// Size of a record, in bytes.
    pub fn record_bytes(&self) -> usize {
        match self.input.record {
            RecordRule::Fixed(bytes) => bytes as usize,
            RecordRule::Lines => 1,
        }
    }

    pub fn empty(&self) -> KernelError {
        KernelError::Empty { kernel: self.kernel, why: "there is nothing" }
    }

    pub fn domain(&self) -> KernelError {
        KernelError::Domain { kernel: self.kernel, why: "the values allow no answer".into() }
    }
}

/// Computes the answer of a built-in kernel.
pub fn answer(kernel: &'static str, params: &[(String, String)], input: Input, data: &[u8]) -> Answer {
    let mut request = NaiveRequest { kernel, params, input, data, numbers: Vec::new(), nans: Vec::new() };
    if let Some(dtype) = input.element {
        for (index, bytes) in (0..).zip(data.chunks_exact(dtype.size())) {
            match number(dtype, bytes) {
                x if x.is_nan() => request.nans.push(index),
                x => request.numbers.push((index, x)),
            }
        }
    }
    if request.param("nan") == Some("error")
        && let Some(index) = request.nans.first()
    {
        return Err(KernelError::NotANumber { index: *index }).into();
    }
    match kernel {
        "sum" | "mean" | "var" => sums::answer(&request).into(),
        "min" | "max" | "minmax" => order::extremes(&request).into(),
        "median" | "quantile" => order::quantiles(&request).into(),
        "top" => order::top(&request).into(),
        "unique" => order::unique(&request).into(),
        "histogram" => bins::histogram(&request).into(),
        "lookup" => bins::lookup(&request),
        "count" => Value::Map(vec![("count", text::count(&request).into())]).into(),
        "first" | "last" => text::first_or_last(&request).into(),
        "grep" => text::grep(&request),
        "wc" => text::wc(&request).into(),
        other => panic!("kernel '{other}' has no reference; write one in {}", file!()),
    }
}

fn number(dtype: DType, bytes: &[u8]) -> Number {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    match dtype {
        DType::I8 => Number::Int((bits as i8).into()),
        DType::I16 => Number::Int((bits as i16).into()),
        DType::I32 => Number::Int((bits as i32).into()),
        DType::I64 => Number::Int((bits as i64).into()),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => Number::Int(bits.into()),
        DType::F32 => Number::Float(f32::from_bits(bits as u32).into()),
        DType::F64 => Number::Float(f64::from_bits(bits)),
    }
}
