//! What the records of a selection are: element type, record size, or lines of text.

use std::fmt;
use std::str::FromStr;

use crate::element::{Element, with_element};
use crate::{KernelError, Record, Spec, Value};

/// The type of one element of a file. Values are two's complement or IEEE 754.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

impl DType {
    /// Every type, in the order in which they are listed to people.
    pub const ALL: [DType; 10] = [
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::F32,
        DType::F64,
    ];

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            DType::I8 | DType::U8 => 1,
            DType::I16 | DType::U16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 | DType::F64 => 8,
        }
    }

    /// Whether the type is a floating-point one, which can hold NaN.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64)
    }

    /// The value of one little-endian element, widened exactly; of other than its size in bytes, those bytes.
    pub fn value(self, bytes: &[u8]) -> Value {
        if bytes.len() != self.size() {
            return Value::Bytes(bytes.to_vec());
        }
        with_element!(self, T => T::read(bytes).value())
    }

    /// The name used on the command line and on the wire: `i8` to `u64`, `f32`, `f64`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = KernelError;

    /// NumPy's codes are refused on purpose: `i8` is eight bits here and eight bytes there, and a wrong guess is
    /// a wrong number.
    fn from_str(text: &str) -> Result<Self, KernelError> {
        DType::ALL
            .into_iter()
            .find(|dtype| dtype.name() == text)
            .ok_or_else(|| KernelError::UnknownType { given: text.to_owned() })
    }
}

/// Byte order of the elements in a file. Blocks given to kernels are always little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ByteOrder {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first, as in network order and classic netCDF.
    Big,
}

impl ByteOrder {
    /// Turns elements of `size` bytes from this order into little-endian ones, in place.
    ///
    /// Bytes after the last whole element are left alone.
    pub fn to_little(self, size: usize, data: &mut [u8]) {
        if self == ByteOrder::Little {
            return;
        }
        match size {
            2 => swap::<2>(data),
            4 => swap::<4>(data),
            8 => swap::<8>(data),
            _ => {}
        }
    }
}

fn swap<const N: usize>(data: &mut [u8]) {
    let (elements, _) = data.as_chunks_mut::<N>();
    for element in elements {
        element.reverse();
    }
}

/// What a kernel will be given: elements in fixed-size records, opaque fixed-size records, or lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Input {
    /// Type of the elements inside a record; `None` for text and opaque bytes.
    pub element: Option<DType>,
    /// What a record is.
    pub record: RecordRule,
    /// Bytes before the first record, so that the offset of one in the file can be told.
    pub header: u64,
}

/// How a file is cut into records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordRule {
    /// Every record has this many bytes (at least 1).
    Fixed(u64),
    /// A record is a line: bytes up to and with `\n`; the last line may lack it.
    Lines,
}

impl Input {
    /// Elements of one type, one element a record.
    pub const fn elements(dtype: DType) -> Input {
        Input { element: Some(dtype), record: RecordRule::Fixed(dtype.size() as u64), header: 0 }
    }

    /// Records of `bytes` bytes made of elements of one type.
    ///
    /// # Errors
    /// The error is [`KernelError::RecordNotElements`] if `bytes` is 0 or not a multiple of the size of an element.
    pub fn typed_records(dtype: DType, bytes: u64) -> Result<Input, KernelError> {
        if bytes == 0 || !bytes.is_multiple_of(dtype.size() as u64) {
            return Err(KernelError::RecordNotElements { record: bytes, dtype });
        }
        Ok(Input { element: Some(dtype), record: RecordRule::Fixed(bytes), header: 0 })
    }

    /// Opaque or text records of a fixed size.
    ///
    /// # Errors
    /// The error is [`KernelError::EmptyRecord`] if `bytes` is 0.
    pub fn records(bytes: u64) -> Result<Input, KernelError> {
        if bytes == 0 {
            return Err(KernelError::EmptyRecord);
        }
        Ok(Input { element: None, record: RecordRule::Fixed(bytes), header: 0 })
    }

    /// Lines of text.
    pub const fn lines() -> Input {
        Input { element: None, record: RecordRule::Lines, header: 0 }
    }

    /// The same as a kernel has it that was bound to it: where no more is said than the type of the elements, a kernel
    /// may make records of several, such as points or rows.
    pub fn for_kernel(self, spec: &Spec) -> Input {
        match (self.element, self.record, spec.record) {
            (Some(dtype), RecordRule::Fixed(one), Record::Fixed(bytes)) if one == dtype.size() as u64 => {
                Input { record: RecordRule::Fixed(bytes), ..self }
            }
            _ => self,
        }
    }

    /// The same behind a header of so many bytes.
    pub const fn with_header(self, header: u64) -> Input {
        Input { header, ..self }
    }

    /// Elements in one record; 1 where there are no typed elements.
    pub fn per_record(&self) -> u64 {
        match (self.element, self.record) {
            (Some(dtype), RecordRule::Fixed(bytes)) => bytes / dtype.size() as u64,
            _ => 1,
        }
    }
}
