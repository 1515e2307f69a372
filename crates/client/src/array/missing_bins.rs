//! Answers over bins of time of which some are empty. An empty bin has the answer NaN, as in xarray.

use gristmill_kernel::{Array, ArrayType, DType, Value};

use super::{AnswerAxis, ArrayPlan};

impl ArrayPlan {
    /// Inserts NaN for empty bins into an answer. Integers and booleans become f64 if there are empty bins.
    pub fn with_missing_bins(&self, answer: Value) -> Value {
        let Value::Map(mut entries) = answer else { return answer };
        if self.axes.iter().any(|axis| axis.present.is_some()) {
            for (_, value) in &mut entries {
                if let Value::Array(array) = value
                    && array.shape.len() >= self.axes.len()
                {
                    *array = lengthen_axes(array, &self.axes, self.leading(array));
                }
            }
        }
        Value::Map(entries)
    }

    /// Number of axes that an array of the answer has before the axes of the plan.
    fn leading(&self, array: &Array) -> usize {
        match self.question.op {
            gristmill_array::Op::Quantile(_) => array.shape.len() - self.axes.len(),
            _ => 0,
        }
    }
}

fn lengthen_axes(array: &Array, axes: &[AnswerAxis], leading: usize) -> Array {
    let mut found = to_float(array);
    for (at, axis) in axes.iter().enumerate() {
        if let Some(present) = &axis.present {
            found = lengthen(&found, leading + at, axis.length as usize, present);
        }
    }
    found
}

/// Converts an array to a type that has NaN.
fn to_float(array: &Array) -> Array {
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

/// Lengthens one axis of an array: its elements go to `places`, and NaN to all other places.
fn lengthen(array: &Array, axis: usize, length: usize, places: &[usize]) -> Array {
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
