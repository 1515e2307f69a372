//! Answers over bins of time of which some have no times: NaN stands there, as in xarray.

use gristmill_kernel::{Array, ArrayType, DType, Value};

use super::{AnswerAxis, ArrayPlan};

impl ArrayPlan {
    /// An answer as its axes have it: with NaN where nothing was asked. Whole numbers and truth become f64 then.
    pub fn spread(&self, answer: Value) -> Value {
        let Value::Map(mut entries) = answer else { return answer };
        if self.axes.iter().any(|axis| axis.asked.is_some()) {
            for (_, value) in &mut entries {
                if let Value::Array(array) = value
                    && array.shape.len() >= self.axes.len()
                {
                    *array = spread(array, &self.axes, self.leading(array));
                }
            }
        }
        Value::Map(entries)
    }

    /// The axes of an array of the answer that stand before those of the plan.
    fn leading(&self, array: &Array) -> usize {
        match self.question.op {
            gristmill_array::Op::Quantile(_) => array.shape.len() - self.axes.len(),
            _ => 0,
        }
    }
}

fn spread(array: &Array, axes: &[AnswerAxis], leading: usize) -> Array {
    let mut found = floating(array);
    for (at, axis) in axes.iter().enumerate() {
        if let Some(asked) = &axis.asked {
            found = along(&found, leading + at, axis.length as usize, asked);
        }
    }
    found
}

/// In a type that has NaN.
fn floating(array: &Array) -> Array {
    let dtype = match array.dtype {
        ArrayType::Number(dtype) if dtype.is_float() => return array.clone(),
        _ => ArrayType::Number(DType::F64),
    };
    let number = |value: Value| match value {
        Value::Int(n) => n as f64,
        Value::Float(x) => x,
        _ => f64::NAN,
    };
    let data = array.values().flat_map(|value| number(value).to_le_bytes()).collect();
    Array { dtype, shape: array.shape.clone(), data }
}

/// With more elements along one axis: those that there are at these places, and NaN at all others.
fn along(array: &Array, axis: usize, length: usize, places: &[usize]) -> Array {
    let single = array.dtype == ArrayType::Number(DType::F32);
    let nan = if single { f32::NAN.to_le_bytes().to_vec() } else { f64::NAN.to_le_bytes().to_vec() };
    let product = |lengths: &[u64]| lengths.iter().product::<u64>() as usize;
    let mut shape = array.shape.clone();
    let (before, behind) = (product(&shape[..axis]), product(&shape[axis + 1..]) * nan.len());
    shape[axis] = length as u64;
    let mut data = nan.repeat(before * length * behind / nan.len());
    for row in 0..before {
        for (from, to) in places.iter().enumerate() {
            let (from, to) = ((row * places.len() + from) * behind, (row * length + to) * behind);
            data[to..to + behind].copy_from_slice(&array.data[from..from + behind]);
        }
    }
    Array { dtype: array.dtype, shape, data }
}
