//! The number types of HDF5 datatypes.
//!
//! HDF5 describes numbers bit by bit. Only numbers with the bits of a machine's own types count as numbers. The reader
//! leaves out the description, so this module reads it from the message (section IV.A.2.d of the specification).

use gristmill_kernel::{ByteOrder, DType};
use hdf5_reader::{ByteOrder as Order, Datatype, StringSize};

use crate::dataset::Kind;

/// Returns the kind of a datatype and its byte order. `raw` is its message.
pub fn kind_of(datatype: &Datatype, raw: &[u8]) -> (Kind, ByteOrder) {
    let other = |what: String| (Kind::Other(what), ByteOrder::Little);
    match datatype {
        Datatype::FixedPoint { size, signed, byte_order } => match integer(*size, *signed) {
            Some(dtype) if plain_bits(raw, u16::from(*size) * 8) => (Kind::Number(dtype), order(*byte_order)),
            _ => other(format!("integers of {size} bytes with bits left out, or of another width")),
        },
        Datatype::FloatingPoint { size, byte_order } => match ieee(raw) {
            Some(dtype) => (Kind::Number(dtype), order(*byte_order)),
            None => other(match size {
                2 => "floats of 16 bits".to_owned(),
                _ => format!("floats of {size} bytes that are not of IEEE 754"),
            }),
        },
        other_type => other(words(other_type)),
    }
}

/// Returns the integer type of a width in bytes.
pub fn integer(size: u8, signed: bool) -> Option<DType> {
    Some(match (size, signed) {
        (1, true) => DType::I8,
        (2, true) => DType::I16,
        (4, true) => DType::I32,
        (8, true) => DType::I64,
        (1, false) => DType::U8,
        (2, false) => DType::U16,
        (4, false) => DType::U32,
        (8, false) => DType::U64,
        _ => return None,
    })
}

pub fn order(order: Order) -> ByteOrder {
    match order {
        Order::LittleEndian => ByteOrder::Little,
        Order::BigEndian => ByteOrder::Big,
    }
}

/// Returns whether an integer uses all its bits: its offset is 0 and its precision is `bits`.
fn plain_bits(raw: &[u8], bits: u16) -> bool {
    let [low, high] = bits.to_le_bytes();
    raw.get(8..12) == Some(&[0, 0, low, high])
}

/// Returns the float type if sign, exponent and mantissa are at the positions of IEEE 754.
fn ieee(raw: &[u8]) -> Option<DType> {
    // Flags: byte order in bits 0 and 6 (6 is VAX), the leading bit of the mantissa is implied (2 in bits 4 and 5),
    // place of the sign. Then offset, precision, place and size of exponent and mantissa, bias.
    let [_, flags, sign, _, ..] = raw else { return None };
    if flags & 0x70 != 0x20 {
        return None;
    }
    match (sign, raw.get(8..20)?) {
        (31, [0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0]) => Some(DType::F32),
        (63, [0, 0, 64, 0, 52, 11, 0, 52, 0xff, 3, 0, 0]) => Some(DType::F64),
        _ => None,
    }
}

/// Describes a type that is not a number.
pub fn words(datatype: &Datatype) -> String {
    match datatype {
        Datatype::FixedPoint { size, .. } => format!("integers of {size} bytes"),
        Datatype::FloatingPoint { size, .. } => format!("floats of {size} bytes"),
        Datatype::String { size: StringSize::Fixed(bytes), .. } => format!("text of {bytes} bytes"),
        Datatype::String { size: StringSize::Variable, .. } => "text of any length".to_owned(),
        Datatype::Compound { fields, .. } => {
            let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
            match names.as_slice() {
                ["r", "i"] | ["real", "imag"] => "complex numbers (a compound type)".to_owned(),
                _ => format!("a compound type of {} fields", names.len()),
            }
        }
        Datatype::Enum { members, .. } => {
            let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
            match names.as_slice() {
                ["FALSE", "TRUE"] => "booleans (an enumeration)".to_owned(),
                _ => format!("an enumeration of {} names", names.len()),
            }
        }
        Datatype::VarLen { base, .. } if base.is_vlen_string_base() => "text of any length".to_owned(),
        Datatype::VarLen { .. } => "lists of any length".to_owned(),
        Datatype::Array { .. } => "arrays".to_owned(),
        Datatype::Opaque { size, .. } => format!("opaque values of {size} bytes"),
        Datatype::Reference { .. } => "references".to_owned(),
        Datatype::Bitfield { size, .. } => format!("bit fields of {size} bytes"),
    }
}
