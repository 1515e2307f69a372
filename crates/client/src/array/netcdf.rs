//! Answers as classic netCDF files: CDF-2, or CDF-5 if a type or a length needs it ("The NetCDF Classic Format
//! Specification", Unidata).

use gristmill_kernel::{ArrayType, DType};

/// A variable of the file to write.
pub(super) struct NetcdfVariable {
    pub name: String,
    /// Indices in the list of dimensions.
    pub dimensions: Vec<usize>,
    pub kind: Kind,
    /// The elements, little-endian, in C order.
    pub data: Vec<u8>,
    pub attributes: Vec<(String, NetcdfAttribute)>,
}

/// The kind of a variable's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Elements(ArrayType),
    /// Bytes of texts of one length, which is the last dimension.
    Characters,
}

/// An attribute of the file to write.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NetcdfAttribute {
    Text(String),
    /// Numbers, little-endian.
    Numbers(DType, Vec<u8>),
}

const DIMENSION: u32 = 10;
const VARIABLE: u32 = 11;
const ATTRIBUTE: u32 = 12;
const CHAR: u32 = 2;

/// Code of a type in the file.
const fn code(dtype: DType) -> u32 {
    match dtype {
        DType::I8 => 1,
        DType::I16 => 3,
        DType::I32 => 4,
        DType::F32 => 5,
        DType::F64 => 6,
        DType::U8 => 7,
        DType::U16 => 8,
        DType::U32 => 9,
        DType::I64 => 10,
        DType::U64 => 11,
    }
}

impl Kind {
    /// Code of the type in the file, and bytes of an element. A boolean is a byte of 1 or 0.
    const fn stored(self) -> (u32, usize) {
        match self {
            Kind::Characters => (CHAR, 1),
            Kind::Elements(ArrayType::Bool) => (code(DType::I8), 1),
            Kind::Elements(ArrayType::Number(dtype)) => (code(dtype), dtype.size()),
        }
    }
}

/// Returns the bytes of the file.
pub(super) fn file(
    dimensions: &[(String, u64)],
    variables: &[NetcdfVariable],
    attributes: &[(String, NetcdfAttribute)],
) -> Vec<u8> {
    let types = |list: &[(String, NetcdfAttribute)]| {
        list.iter()
            .any(|(_, stated)| matches!(stated, NetcdfAttribute::Numbers(dtype, _) if code(*dtype) > 6))
    };
    let wide = dimensions.iter().any(|(_, length)| *length > i32::MAX as u64)
        || variables.iter().any(|one| {
            one.kind.stored().0 > 6 || one.data.len() > i32::MAX as usize - 3 || types(&one.attributes)
        });
    // Offsets do not change the length of the header, so it is first made without them.
    let mut header = Header { out: Vec::new(), wide };
    header.write(dimensions, variables, attributes, &vec![0; variables.len()]);
    let mut begin = header.out.len() as u64;
    let mut begins = Vec::new();
    for one in variables {
        begins.push(begin);
        begin += padded(one.data.len()) as u64;
    }
    let mut header = Header { out: Vec::with_capacity(begin as usize), wide };
    header.write(dimensions, variables, attributes, &begins);
    for one in variables {
        header.numbers(one.kind.stored().1, &one.data);
    }
    header.out
}

const fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(4)
}

struct Header {
    out: Vec<u8>,
    /// Whether the file is CDF-5: counts and lengths have 64 bits.
    wide: bool,
}

impl Header {
    fn write(
        &mut self,
        dimensions: &[(String, u64)],
        variables: &[NetcdfVariable],
        attributes: &[(String, NetcdfAttribute)],
        begins: &[u64],
    ) {
        self.out.extend_from_slice(if self.wide { b"CDF\x05" } else { b"CDF\x02" });
        self.count(0);
        self.list(DIMENSION, dimensions.len());
        for (name, length) in dimensions {
            self.name(name);
            self.count(*length);
        }
        self.attributes(attributes);
        self.list(VARIABLE, variables.len());
        for (one, begin) in variables.iter().zip(begins) {
            self.name(&one.name);
            self.count(one.dimensions.len() as u64);
            one.dimensions.iter().for_each(|dimension| self.count(*dimension as u64));
            self.attributes(&one.attributes);
            self.word(one.kind.stored().0);
            self.count(padded(one.data.len()) as u64);
            self.out.extend_from_slice(&begin.to_be_bytes());
        }
    }

    fn word(&mut self, n: u32) {
        self.out.extend_from_slice(&n.to_be_bytes());
    }

    /// Appends a count. It fits, because a larger one makes the file a wide one.
    fn count(&mut self, n: u64) {
        if self.wide { self.out.extend_from_slice(&n.to_be_bytes()) } else { self.word(n as u32) }
    }

    fn list(&mut self, tag: u32, length: usize) {
        self.word(if length == 0 { 0 } else { tag });
        self.count(length as u64);
    }

    fn name(&mut self, name: &str) {
        self.count(name.len() as u64);
        self.out.extend_from_slice(name.as_bytes());
        self.pad(name.len());
    }

    fn pad(&mut self, bytes: usize) {
        self.out.resize(self.out.len() + padded(bytes) - bytes, 0);
    }

    fn attributes(&mut self, attributes: &[(String, NetcdfAttribute)]) {
        self.list(ATTRIBUTE, attributes.len());
        for (name, stated) in attributes {
            self.name(name);
            match stated {
                NetcdfAttribute::Text(text) => {
                    self.word(CHAR);
                    self.name(text);
                }
                NetcdfAttribute::Numbers(dtype, bytes) => {
                    self.word(code(*dtype));
                    self.count((bytes.len() / dtype.size()) as u64);
                    self.numbers(dtype.size(), bytes);
                }
            }
        }
    }

    /// Appends little-endian numbers as big-endian ones, padded to a multiple of 4 bytes.
    fn numbers(&mut self, size: usize, bytes: &[u8]) {
        for one in bytes.chunks_exact(size) {
            self.out.extend(one.iter().rev());
        }
        self.pad(bytes.len());
    }
}
