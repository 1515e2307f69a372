//! The input of a kernel: the type of its elements, and how a file is cut into records.

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
    /// Every type, in the order in which users see them.
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

    /// Whether the type is floating-point, so that it can hold NaN.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64)
    }

    /// The value of one little-endian element, widened exactly. Bytes of another length than the type are returned
    /// unchanged.
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

    /// Parses a name. NumPy's codes are refused on purpose: `i8` means eight bits here and eight bytes in NumPy, and a
    /// wrong guess gives a wrong number.
    fn from_str(text: &str) -> Result<Self, KernelError> {
        DType::ALL
            .into_iter()
            .find(|dtype| dtype.name() == text)
            .ok_or_else(|| KernelError::UnknownType { given: text.to_owned() })
    }
}

/// Byte order of the elements in a file. Blocks for kernels are always little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ByteOrder {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first, as in network order and classic netCDF.
    Big,
}

impl ByteOrder {
    /// Converts elements of `size` bytes from this order to little-endian, in place.
    ///
    /// Bytes after the last whole element do not change.
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

/// The input of a kernel: elements in fixed-size records, opaque fixed-size records, or lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Input {
    /// Type of the elements inside a record; `None` for text and opaque bytes.
    pub element: Option<DType>,
    /// The rule that cuts the file into records.
    pub record: RecordRule,
    /// Bytes before the first record. They are needed for the offset of a record in the file.
    pub header: u64,
}

/// How a file is cut into records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordRule {
    /// Every record has this many bytes (at least 1).
    Fixed(u64),
    /// A record is a line: bytes up to and including `\n`. The last line may lack it.
    Lines,
}

impl Input {
    /// Elements of one type, with one element per record.
    pub const fn elements(dtype: DType) -> Input {
        Input { element: Some(dtype), record: RecordRule::Fixed(dtype.size() as u64), header: 0 }
    }

    /// Records of `bytes` bytes that consist of elements of one type.
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

    /// The input with the record size of a kernel that was bound to it. If the input has one element per record, a
    /// kernel may use records of several elements, such as points or rows.
    pub fn for_kernel(self, spec: &Spec) -> Input {
        match (self.element, self.record, spec.record) {
            (Some(dtype), RecordRule::Fixed(one), Record::Fixed(bytes)) if one == dtype.size() as u64 => {
                Input { record: RecordRule::Fixed(bytes), ..self }
            }
            _ => self,
        }
    }

    /// The same input after a header of `header` bytes.
    pub const fn with_header(self, header: u64) -> Input {
        Input { header, ..self }
    }

    /// Elements in one record; 1 if the elements have no type.
    pub fn per_record(&self) -> u64 {
        match (self.element, self.record) {
            (Some(dtype), RecordRule::Fixed(bytes)) => bytes / dtype.size() as u64,
            _ => 1,
        }
    }
}
