//! What the numbers of a variable stand for: the attributes of the CF conventions, as xarray decodes them.
//!
//! | attribute | meaning |
//! |---|---|
//! | `_FillValue`, `missing_value` | such elements are missing: NaN. Any of several, also zero |
//! | `_Unsigned` | integers are to be read with, or without, a sign |
//! | `scale_factor`, `add_offset` | the value is `raw * scale_factor + add_offset` |
//! | `valid_min`, `valid_max`, `valid_range` | raw values outside are missing, where a request asks for it |
//!
//! The decoded type is the one that xarray (2024.9 and later, `coding/variables.py`) gives: integers with something
//! missing become f32 up to 16 bits, else f64; with a scale or an offset the type follows [`Meaning::decoded`]. Elements
//! are compared with missing values as they are stored, before any conversion, so an i64 beside a fill value of 2^53
//! is not lost; missing values that the stored type cannot hold, as a f64 1e20 beside f32 data, are taken as the
//! nearest it can hold (xarray leaves such elements in).

use gristmill_kernel::{ArrayType, DType};
use serde::{Deserialize, Serialize};

use crate::error::ArrayError;
use crate::expr::promoted;

/// Most missing values of one variable.
pub const MAX_MISSING: usize = 64;

/// A number of an attribute, exactly.
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
    /// Its type in the file.
    pub dtype: FactorType,
}

/// The type of a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FactorType {
    /// f64.
    F64,
    /// f32: data that is scaled by it alone is f32.
    F32,
    /// A number of a format that gives its numbers no type, as JSON. It counts as f64 where the type of the values is chosen, and
    /// takes their type where it is computed with, as a `float` of Python does.
    Untyped,
    /// An integer of so many bytes. Integers that are scaled by it alone stay integers.
    Integer {
        /// Bytes of it.
        bytes: u8,
        /// Whether it has a sign.
        signed: bool,
    },
}

impl FactorType {
    /// The type of a number in a file.
    pub const fn of(dtype: DType) -> FactorType {
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

    /// The integer type, if it is one.
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

    /// Whether an f32 that it is computed with stays one on the way.
    pub(crate) const fn keeps_f32(self) -> bool {
        match self {
            FactorType::F32 | FactorType::Untyped => true,
            FactorType::F64 => false,
            FactorType::Integer { bytes, .. } => bytes <= 2,
        }
    }
}

/// The attributes of one variable.
///
/// ```
/// use gristmill_array::{Exact, Factor, FactorType, Meaning, Values};
/// use gristmill_kernel::{ArrayType, DType};
///
/// let mut meaning = Meaning::of(DType::I16);
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
    /// `_Unsigned`, where it is given: true or false.
    pub unsigned: Option<bool>,
    /// `_FillValue` and all of `missing_value`. NaN among them says nothing.
    pub missing: Vec<Exact>,
    /// `scale_factor`.
    pub scale: Option<Factor>,
    /// `add_offset`.
    pub offset: Option<Factor>,
    /// The least and the largest valid value, as stored, where a request honours them.
    pub valid: (Option<Exact>, Option<Exact>),
}

impl Meaning {
    /// Numbers that are what they are.
    pub const fn of(raw: DType) -> Meaning {
        Meaning { raw, unsigned: None, missing: Vec::new(), scale: None, offset: None, valid: (None, None) }
    }

    /// The stored type, after `_Unsigned`.
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

    /// Whether elements may be missing that are not NaN in the file.
    pub fn masks(&self) -> bool {
        let said = |one: &Exact| !matches!(one, Exact::Float(x) if x.is_nan());
        self.missing.iter().any(said) || self.valid != (None, None)
    }

    /// The type of the decoded values. With a scale and an offset of one float type that type, but f64 for integers of 32
    /// bits; with an offset otherwise f64; with a scale alone its type. Integers with an integer scale alone have the type that
    /// holds both, and wrap around (xarray brings them to the type of the scale, where larger ones are lost); floats with one,
    /// and integers that may be missing, are f64. Without either, integers that may be missing are f32 up to 16 bits, else f64,
    /// and all else stays what it is. So do floats whose only missing value is NaN.
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

    /// Checks what [`Meaning::decode`] relies on.
    ///
    /// # Errors
    /// Too many missing values, and a range whose ends are the wrong way round.
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
