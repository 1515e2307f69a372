//! Decoding of a variable's numbers by the attributes of the CF conventions, as xarray does it.
//!
//! | attribute | meaning |
//! |---|---|
//! | `_FillValue`, `missing_value` | elements equal to one of these values, which may be zero, are missing: NaN |
//! | `_Unsigned` | integers are read without a sign (true) or with one (false) |
//! | `scale_factor`, `add_offset` | the value is `raw * scale_factor + add_offset` |
//! | `valid_min`, `valid_max`, `valid_range` | raw values outside are missing, if a request asks for it |
//!
//! The decoded type is that of xarray (2024.9 and later, `coding/variables.py`): integers with missing values become
//! f32 up to 16 bits, else f64; with a scale or an offset the type follows [`Meaning::decoded`]. Stored elements are
//! compared with missing values before any conversion, so an i64 next to a fill value of 2^53 keeps its value. A
//! missing value that the stored type cannot hold, such as an f64 1e20 for f32 data, is replaced by the nearest value
//! of that type; xarray does not mask such elements.

use gristmill_kernel::{ArrayType, DType};
use serde::{Deserialize, Serialize};

use crate::error::ArrayError;
use crate::expr::promoted;

/// Most missing values of one variable.
pub const MAX_MISSING: usize = 64;

/// The exact number of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Exact {
    /// An integer.
    Int(i128),
    /// A float; f32 widened.
    Float(f64),
}

/// A `scale_factor` or `add_offset`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// The number.
    pub value: f64,
    /// The type of the number in the file.
    pub dtype: FactorType,
}

/// The type of a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FactorType {
    /// f64.
    F64,
    /// f32. Data with a scale of this type and no offset is f32.
    F32,
    /// A number of a format without number types, such as JSON. It counts as f64 when the type of the values is chosen,
    /// and takes their type in arithmetic, as a `float` of Python does.
    Untyped,
    /// An integer. Integers with a scale of this type and no offset stay integers.
    Integer {
        /// Size in bytes: 1, 2, 4 or 8.
        bytes: u8,
        /// Whether the type is signed.
        signed: bool,
    },
}

impl FactorType {
    /// The factor type of a number that a file stores with a type.
    pub const fn from_dtype(dtype: DType) -> FactorType {
        match dtype {
            DType::F32 => FactorType::F32,
            DType::F64 => FactorType::F64,
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
                FactorType::Integer { bytes: dtype.size() as u8, signed: true }
            }
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => {
                FactorType::Integer { bytes: dtype.size() as u8, signed: false }
            }
        }
    }

    /// The integer type, or `None` for a float.
    const fn integer(self) -> Option<DType> {
        match self {
            FactorType::Integer { bytes: 1, signed: true } => Some(DType::I8),
            FactorType::Integer { bytes: 2, signed: true } => Some(DType::I16),
            FactorType::Integer { bytes: 4, signed: true } => Some(DType::I32),
            FactorType::Integer { bytes: 8, signed: true } => Some(DType::I64),
            FactorType::Integer { bytes: 1, .. } => Some(DType::U8),
            FactorType::Integer { bytes: 2, .. } => Some(DType::U16),
            FactorType::Integer { bytes: 4, .. } => Some(DType::U32),
            FactorType::Integer { bytes: 8, .. } => Some(DType::U64),
            _ => None,
        }
    }

    /// Whether arithmetic of an f32 with this factor is done in f32.
    pub(crate) const fn keeps_f32(self) -> bool {
        match self {
            FactorType::F32 | FactorType::Untyped => true,
            FactorType::F64 => false,
            FactorType::Integer { bytes, .. } => bytes <= 2,
        }
    }
}

/// The attributes by which the numbers of one variable are decoded.
///
/// ```
/// use gristmill_array::{Exact, Factor, FactorType, Meaning, Values};
/// use gristmill_kernel::{ArrayType, DType};
///
/// let mut meaning = Meaning::plain(DType::I16);
/// meaning.missing = vec![Exact::Int(0), Exact::Int(-999)];
/// meaning.scale = Some(Factor { value: 0.5, dtype: FactorType::F32 });
/// assert_eq!(meaning.decoded(), ArrayType::Number(DType::F32));
/// let raw: Vec<u8> = [0i16, 3, -999].iter().flat_map(|x| x.to_le_bytes()).collect();
/// let Values::F32(values) = meaning.decode(&raw)? else { unreachable!() };
/// assert!(values[0].is_nan() && values[1] == 1.5 && values[2].is_nan());
/// # Ok::<(), gristmill_array::ArrayError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Meaning {
    /// The type in the file.
    pub raw: DType,
    /// `_Unsigned`, if it is given.
    pub unsigned: Option<bool>,
    /// `_FillValue` and all of `missing_value`. A NaN among them has no effect on the values.
    pub missing: Vec<Exact>,
    /// `scale_factor`.
    pub scale: Option<Factor>,
    /// `add_offset`.
    pub offset: Option<Factor>,
    /// The least and the largest valid stored value, if a request asks for the valid range.
    pub valid: (Option<Exact>, Option<Exact>),
}

impl Meaning {
    /// A variable without attributes: the values are the stored numbers.
    pub const fn plain(raw: DType) -> Meaning {
        Meaning { raw, unsigned: None, missing: Vec::new(), scale: None, offset: None, valid: (None, None) }
    }

    /// The stored type, with the sign that `_Unsigned` gives.
    pub const fn stored(&self) -> DType {
        match (self.unsigned, self.raw) {
            (Some(true), DType::I8) => DType::U8,
            (Some(true), DType::I16) => DType::U16,
            (Some(true), DType::I32) => DType::U32,
            (Some(true), DType::I64) => DType::U64,
            (Some(false), DType::U8) => DType::I8,
            (Some(false), DType::U16) => DType::I16,
            (Some(false), DType::U32) => DType::I32,
            (Some(false), DType::U64) => DType::I64,
            (_, raw) => raw,
        }
    }

    /// Returns whether some stored numbers other than NaN mean missing.
    pub fn masks(&self) -> bool {
        let is_number = |one: &Exact| !matches!(one, Exact::Float(x) if x.is_nan());
        self.missing.iter().any(is_number) || self.valid != (None, None)
    }

    /// The type of the decoded values.
    ///
    /// | attributes | type |
    /// |---|---|
    /// | only NaN is missing, stored as floats | the stored type |
    /// | scale and offset, both f32 | f32, but f64 for integers of 32 bits |
    /// | any other offset | f64 |
    /// | float scale without an offset | the type of the scale |
    /// | integer scale of integers without missing values | the type that holds both; values wrap around |
    /// | any other integer scale | f64 |
    /// | neither, integers with missing values | f32 up to 16 bits, else f64 |
    /// | neither, all others | the stored type |
    pub fn decoded(&self) -> ArrayType {
        let (stored, masks) = (self.stored(), self.masks());
        let float = |single| ArrayType::Number(if single { DType::F32 } else { DType::F64 });
        if stored.is_float() && !self.missing.is_empty() && !masks {
            return ArrayType::Number(stored);
        }
        match (self.scale, self.offset) {
            (None, None) if masks && !stored.is_float() => float(stored.size() <= 2),
            (None, None) => ArrayType::Number(stored),
            (Some(scale), Some(offset)) => {
                let narrow = stored.is_float() || stored.size() != 4;
                float(scale.dtype == FactorType::F32 && offset.dtype == FactorType::F32 && narrow)
            }
            (None, Some(_)) => float(false),
            (Some(scale), None) => match scale.dtype.integer() {
                Some(integer) if !masks && !stored.is_float() => {
                    promoted(ArrayType::Number(stored), ArrayType::Number(integer))
                }
                _ => float(scale.dtype == FactorType::F32),
            },
        }
    }

    /// Checks the attributes.
    ///
    /// # Errors
    /// Returns [`ArrayError::Meaning`] if there are more than [`MAX_MISSING`] missing values, or if the least valid
    /// value is above the largest.
    pub fn check(&self) -> Result<(), ArrayError> {
        if self.missing.len() > MAX_MISSING {
            let why = format!("{} values are given; at most {MAX_MISSING} are taken", self.missing.len());
            return Err(ArrayError::Meaning { name: "missing_value", why });
        }
        let number = |one: Exact| match one {
            Exact::Int(n) => n as f64,
            Exact::Float(x) => x,
        };
        if let (Some(low), Some(high)) = self.valid
            && number(low) > number(high)
        {
            let why = "the least valid value is above the largest".into();
            return Err(ArrayError::Meaning { name: "valid_range", why });
        }
        Ok(())
    }
}
