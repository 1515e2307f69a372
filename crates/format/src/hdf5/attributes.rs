//! Attributes of HDF5 objects, including those that name the dimensions.

use hdf5_reader::{Attribute as Read, Dataset, Datatype, StringSize};

use super::types;
use crate::attribute::{Attribute, AttributeValue};
use crate::{FormatError, MAX_ATTRIBUTE_BYTES, MAX_DIMENSIONS, MAX_VARIABLES};

/// Attributes that netCDF and the dimension scales of HDF5 use internally.
const INTERNAL: [&str; 7] = [
    "DIMENSION_LIST",
    "REFERENCE_LIST",
    "DIMENSION_LABELS",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_nc3_strict",
    "_NCProperties",
];

/// Beginning of the `NAME` of a scale that is not a variable.
const NO_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable";

/// Returns the attributes that users see.
pub fn visible(all: &[Read]) -> Result<Vec<Attribute>, FormatError> {
    FormatError::limit("attributes", all.len() as u64, MAX_VARIABLES as u64)?;
    let is_scale = class_is_scale(all);
    let hidden = |name: &str| INTERNAL.contains(&name) || (is_scale && matches!(name, "CLASS" | "NAME"));
    let shown = all.iter().filter(|attribute| !hidden(&attribute.name));
    shown
        .map(|attribute| {
            Ok(Attribute { name: attribute.name.trim_end_matches('\0').to_owned(), value: value(attribute)? })
        })
        .collect()
}

fn value(read: &Read) -> Result<AttributeValue, FormatError> {
    FormatError::limit("bytes of an attribute", read.raw_data.len() as u64, MAX_ATTRIBUTE_BYTES as u64)?;
    if let Datatype::String { .. } = &read.datatype {
        return Ok(texts(read));
    }
    if let Some(texts) = &read.decoded_strings {
        return Ok(of_texts(read, texts.clone()));
    }
    let (dtype, order) = match &read.datatype {
        Datatype::FixedPoint { size, signed, byte_order } => (types::integer(*size, *signed), *byte_order),
        Datatype::FloatingPoint { size: 4, byte_order } => (Some(gristmill_kernel::DType::F32), *byte_order),
        Datatype::FloatingPoint { size: 8, byte_order } => (Some(gristmill_kernel::DType::F64), *byte_order),
        other => return Ok(AttributeValue::Other(types::words(other))),
    };
    let Some(dtype) = dtype.filter(|_| read.shape.len() <= 1) else {
        return Ok(AttributeValue::Other(format!(
            "{} with shape {:?}",
            types::words(&read.datatype),
            read.shape
        )));
    };
    let mut bytes = read.raw_data.clone();
    types::order(order).to_little(dtype.size(), &mut bytes);
    Ok(AttributeValue::Numbers { dtype, bytes, scalar: read.shape.is_empty(), typed: true })
}

fn texts(read: &Read) -> AttributeValue {
    // In netCDF-4 an attribute without characters has a null dataspace.
    if matches!(&read.datatype, Datatype::String { size: StringSize::Fixed(_), .. })
        && read.raw_data.is_empty()
    {
        return AttributeValue::Text(String::new());
    }
    match read.read_strings() {
        Ok(texts) => of_texts(read, texts),
        Err(_) if fixed(read).is_some() => {
            of_texts(read, fixed(read).into_iter().flatten().map(lossy).collect())
        }
        Err(error) => AttributeValue::Other(format!("text that cannot be read ({error})")),
    }
}

/// Returns the texts of an attribute whose texts have one number of bytes.
fn fixed(read: &Read) -> Option<std::slice::Chunks<'_, u8>> {
    match &read.datatype {
        Datatype::String { size: StringSize::Fixed(size), .. } if *size > 0 => {
            Some(read.raw_data.chunks(*size as usize))
        }
        _ => None,
    }
}

/// Decodes text that claims to be UTF-8 and is not, such as the degree signs of many files, as netCDF4-python does.
fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

fn of_texts(read: &Read, mut texts: Vec<String>) -> AttributeValue {
    for text in &mut texts {
        text.truncate(text.trim_end_matches('\0').len());
    }
    match (read.shape.is_empty(), texts.len()) {
        (true, 1) => AttributeValue::Text(texts.pop().unwrap_or_default()),
        _ => AttributeValue::Texts(texts),
    }
}

fn class_is_scale(all: &[Read]) -> bool {
    text_of(all, "CLASS").is_some_and(|class| class == "DIMENSION_SCALE")
}

fn text_of(all: &[Read], name: &str) -> Option<String> {
    let attribute = all.iter().find(|attribute| attribute.name == name)?;
    attribute.read_strings().ok()?.into_iter().next()
}

fn integers_of(all: &[Read], name: &str) -> Option<Vec<i64>> {
    let attribute = all.iter().find(|attribute| attribute.name == name)?;
    if attribute.shape.iter().any(|length| *length > MAX_DIMENSIONS as u64) {
        return None;
    }
    let value = value(attribute).ok()?;
    if let Some(one) = value.integer() {
        return Some(vec![one]);
    }
    let integer = |value: &gristmill_kernel::Value| match value {
        gristmill_kernel::Value::Int(n) => i64::try_from(*n).ok(),
        _ => None,
    };
    value.numbers()?.iter().map(integer).collect()
}

/// The dataset that resolves references of its attributes.
pub struct Reference<'a> {
    pub dataset: &'a Dataset,
    /// Bytes of an address.
    pub size: usize,
}

/// The dimensions that the attributes of a dataset name.
#[derive(Default)]
pub struct Scale {
    /// Whether the dataset is a dimension scale.
    pub is_scale: bool,
    /// Whether the dataset is only a dimension and not a variable.
    pub no_variable: bool,
    /// netCDF's number of the dimension.
    pub number: Option<i64>,
    /// Numbers of the dimensions of a coordinate variable that has several.
    pub coordinates: Option<Vec<i64>>,
    /// Address of the header of each axis's scale; `None` for an axis without a scale.
    pub axes: Vec<Option<u64>>,
}

impl Scale {
    pub fn from_attributes(all: &[Read], references: &Reference<'_>) -> Scale {
        let number = integers_of(all, "_Netcdf4Dimid").and_then(|numbers| numbers.first().copied());
        Scale {
            is_scale: class_is_scale(all),
            no_variable: text_of(all, "NAME").is_some_and(|name| name.starts_with(NO_VARIABLE)),
            number,
            coordinates: integers_of(all, "_Netcdf4Coordinates"),
            axes: axes(all, references),
        }
    }
}

/// Returns the first scale of each axis. The attribute has a list of references to object headers for each axis.
fn axes(all: &[Read], references: &Reference<'_>) -> Vec<Option<u64>> {
    let lists = all.iter().find(|attribute| attribute.name == "DIMENSION_LIST");
    let Some(Read { datatype: Datatype::VarLen { base, .. }, raw_data, .. }) = lists else {
        return Vec::new();
    };
    if !matches!(**base, Datatype::Reference { .. }) {
        return Vec::new();
    }
    let each = references.dataset.vlen_reference_size();
    let first = |list: &[u8]| {
        let count = list.first_chunk::<4>().map(|count| u32::from_le_bytes(*count))?;
        // An axis may have several scales; the first names it.
        if count == 0 || count as usize > MAX_DIMENSIONS {
            return None;
        }
        let references = references.dataset.resolve_vlen_reference_bytes(list, references.size).ok()?;
        let address = references.get(..references.len() / count as usize)?;
        let mut bytes = [0; 8];
        bytes.get_mut(..address.len())?.copy_from_slice(address);
        Some(u64::from_le_bytes(bytes))
    };
    raw_data.chunks_exact(each.max(1)).take(MAX_DIMENSIONS).map(first).collect()
}
