//! Classic netCDF: CDF-1, CDF-2 and CDF-5 (the netCDF classic format specification, and PnetCDF's for CDF-5). The crate
//! `netcdf-reader` parses the header. The locations of the data follow from it by arithmetic.
//!
//! Fixed variables are stored one after the other, each padded to 4 bytes. Record variables are stored record by
//! record. A record has a part of each variable, in the order of the header, padded to 4 bytes. A single record
//! variable has no padding.

use std::sync::Arc;

use gristmill_kernel::{ByteOrder, DType};
use netcdf_reader::classic::{data::compute_record_stride, header};
use netcdf_reader::{NcAttrValue, NcAttribute, NcDimension, NcFormat, NcType, NcVariable};

use crate::attribute::{Attribute, AttributeValue};
use crate::dataset::{Dataset, Dimension, Format, Kind, Storage, Variable};
use crate::raw::{ElementRun, ElementRuns};
use crate::source::{self, Source};
use crate::{FormatError, MAX_ATTRIBUTE_BYTES, MAX_DIMENSIONS, MAX_METADATA_BYTES, MAX_VARIABLES};

/// Bytes of the header that are read first. Each further read has four times as many, until the header is complete.
const FIRST_HEADER: u64 = 64 << 10;

/// Most dimensions of a file, including dimensions of no variable.
const MAX_FILE_DIMENSIONS: usize = 1 << 16;

/// Opens a file that begins with `CDF`.
pub fn open(source: Arc<dyn Source>) -> Result<Dataset, FormatError> {
    let (format, header, streaming) = read_header(&*source)?;
    FormatError::limit("variables", header.variables.len() as u64, MAX_VARIABLES as u64)?;
    FormatError::limit("dimensions of the file", header.dimensions.len() as u64, MAX_FILE_DIMENSIONS as u64)?;
    if header.dimensions.iter().filter(|dimension| dimension.is_unlimited).count() > 1 {
        return Err(bad("it has more than one unlimited dimension"));
    }
    let stride = compute_record_stride(&header.variables).map_err(bad)?;
    let records = if streaming { record_count(&header, stride, source.len()) } else { header.numrecs };
    let length = |dimension: &NcDimension| if dimension.is_unlimited { records } else { dimension.size };
    let dimensions = header
        .dimensions
        .iter()
        .map(|dimension| Dimension {
            name: trim_zeros(&dimension.name),
            length: length(dimension),
            unlimited: dimension.is_unlimited,
        })
        .collect();
    let mut variables = Vec::with_capacity(header.variables.len());
    let mut runs = Vec::with_capacity(header.variables.len());
    for variable in &header.variables {
        FormatError::limit("dimensions", variable.dimensions.len() as u64, MAX_DIMENSIONS as u64)?;
        if variable.dimensions.iter().skip(1).any(|dimension| dimension.is_unlimited) {
            return Err(bad(format!("the unlimited dimension of {:?} is not its first", variable.name)));
        }
        let interleaved = variable.is_record_var && stride != variable.record_size;
        runs.push(ElementRun {
            begin: variable.data_offset,
            stride: variable.is_record_var.then_some(stride),
            axes: None,
        });
        variables.push(describe(variable, length, interleaved)?);
    }
    Ok(Dataset {
        format,
        groups: Vec::new(),
        dimensions,
        attributes: attributes(&header.global_attributes)?,
        variables,
        tables: Box::new(ElementRuns { source, runs }),
    })
}

/// Reads the header. Also returns whether it leaves the number of records open.
fn read_header(source: &dyn Source) -> Result<(Format, header::ClassicHeader, bool), FormatError> {
    let mut bytes = FIRST_HEADER;
    loop {
        let start = source::read(source, 0, bytes.min(source.len()), MAX_METADATA_BYTES)?;
        let (format, parsed) = match start.get(3) {
            Some(1) => (Format::Cdf1, NcFormat::Classic),
            Some(2) => (Format::Cdf2, NcFormat::Offset64),
            Some(5) => (Format::Cdf5, NcFormat::Cdf5),
            Some(version) => return Err(bad(format!("version {version} is not known, only 1, 2 and 5 are"))),
            None => return Err(bad("it is cut off")),
        };
        let streaming = match format {
            Format::Cdf5 => start.get(4..12) == Some(&[0xff; 8]),
            _ => start.get(4..8) == Some(&[0xff; 4]),
        };
        match header::parse_header(&start, parsed) {
            Ok(header) => return Ok((format, header, streaming)),
            // A header that is cut off can give any error.
            Err(_) if bytes < source.len().min(MAX_METADATA_BYTES) => {
                bytes = bytes.saturating_mul(4).min(MAX_METADATA_BYTES);
            }
            Err(error) => return Err(bad(error)),
        }
    }
}

/// Returns the number of records that fit the file, for a header that leaves it open.
fn record_count(header: &header::ClassicHeader, stride: u64, length: u64) -> u64 {
    let records = header.variables.iter().filter(|variable| variable.is_record_var);
    let Some(begin) = records.map(|variable| variable.data_offset).min() else { return 0 };
    length.saturating_sub(begin).checked_div(stride).unwrap_or(0)
}

fn describe(
    variable: &NcVariable,
    length: impl Fn(&NcDimension) -> u64,
    interleaved: bool,
) -> Result<Variable, FormatError> {
    let kind = match &variable.dtype {
        NcType::Byte => Kind::Number(DType::I8),
        NcType::Short => Kind::Number(DType::I16),
        NcType::Int => Kind::Number(DType::I32),
        NcType::Int64 => Kind::Number(DType::I64),
        NcType::UByte => Kind::Number(DType::U8),
        NcType::UShort => Kind::Number(DType::U16),
        NcType::UInt => Kind::Number(DType::U32),
        NcType::UInt64 => Kind::Number(DType::U64),
        NcType::Float => Kind::Number(DType::F32),
        NcType::Double => Kind::Number(DType::F64),
        NcType::Char => Kind::Other("text".to_owned()),
        other => {
            return Err(bad(format!(
                "{:?} has a type that classic netCDF has not: {other:?}",
                variable.name
            )));
        }
    };
    let attributes = attributes(&variable.attributes)?;
    let fill = match kind {
        Kind::Number(dtype) => Some(fill_of(dtype, &attributes)),
        Kind::Other(_) => None,
    };
    Ok(Variable {
        path: trim_zeros(&variable.name),
        dimensions: variable.dimensions.iter().map(|dimension| trim_zeros(&dimension.name)).collect(),
        kind,
        order: ByteOrder::Big,
        shape: variable.dimensions.iter().map(length).collect(),
        chunk: None,
        storage: if interleaved { Storage::Records } else { Storage::Contiguous },
        filters: Vec::new(),
        fill,
        attributes,
    })
}

/// Returns the fill value of the attribute, or else that of the format.
fn fill_of(dtype: DType, attributes: &[Attribute]) -> Vec<u8> {
    let given = attributes.iter().find(|attribute| attribute.name == "_FillValue");
    match given.map(|attribute| &attribute.value) {
        Some(AttributeValue::Numbers { dtype: same, bytes, .. })
            if *same == dtype && bytes.len() == dtype.size() =>
        {
            bytes.clone()
        }
        _ => default_fill(dtype),
    }
}

/// Returns the default fill value of netCDF libraries (`NC_FILL_*` of netcdf.h), little-endian.
fn default_fill(dtype: DType) -> Vec<u8> {
    const FLOAT: f64 = 9.969_209_968_386_869e36;
    match dtype {
        DType::I8 => (-127i8).to_le_bytes().to_vec(),
        DType::U8 => 255u8.to_le_bytes().to_vec(),
        DType::I16 => (-32_767i16).to_le_bytes().to_vec(),
        DType::U16 => 65_535u16.to_le_bytes().to_vec(),
        DType::I32 => (-2_147_483_647i32).to_le_bytes().to_vec(),
        DType::U32 => 4_294_967_295u32.to_le_bytes().to_vec(),
        DType::I64 => (-9_223_372_036_854_775_806i64).to_le_bytes().to_vec(),
        DType::U64 => 18_446_744_073_709_551_614u64.to_le_bytes().to_vec(),
        DType::F32 => (FLOAT as f32).to_le_bytes().to_vec(),
        DType::F64 => FLOAT.to_le_bytes().to_vec(),
    }
}

fn attributes(all: &[NcAttribute]) -> Result<Vec<Attribute>, FormatError> {
    FormatError::limit("attributes", all.len() as u64, MAX_VARIABLES as u64)?;
    all.iter()
        .map(|attribute| Ok(Attribute { name: trim_zeros(&attribute.name), value: value(&attribute.value)? }))
        .collect()
}

fn value(value: &NcAttrValue) -> Result<AttributeValue, FormatError> {
    let (dtype, bytes) = match value {
        NcAttrValue::Chars(text) => {
            FormatError::limit("bytes of an attribute", text.len() as u64, MAX_ATTRIBUTE_BYTES as u64)?;
            return Ok(AttributeValue::Text(trim_zeros(text)));
        }
        NcAttrValue::Strings(texts) => return Ok(AttributeValue::Texts(texts.clone())),
        NcAttrValue::UserDefined { .. } => {
            return Ok(AttributeValue::Other("of a type of its own".to_owned()));
        }
        NcAttrValue::Bytes(all) => (DType::I8, all.iter().flat_map(|x| x.to_le_bytes()).collect()),
        NcAttrValue::Shorts(all) => (DType::I16, all.iter().flat_map(|x| x.to_le_bytes()).collect()),
        NcAttrValue::Ints(all) => (DType::I32, all.iter().flat_map(|x| x.to_le_bytes()).collect()),
        NcAttrValue::Int64s(all) => (DType::I64, all.iter().flat_map(|x| x.to_le_bytes()).collect()),
        NcAttrValue::UBytes(all) => (DType::U8, all.clone()),
        NcAttrValue::UShorts(all) => (DType::U16, all.iter().flat_map(|x| x.to_le_bytes()).collect()),
        NcAttrValue::UInts(all) => (DType::U32, all.iter().flat_map(|x| x.to_le_bytes()).collect()),
        NcAttrValue::UInt64s(all) => (DType::U64, all.iter().flat_map(|x| x.to_le_bytes()).collect()),
        NcAttrValue::Floats(all) => (DType::F32, all.iter().flat_map(|x| x.to_le_bytes()).collect()),
        NcAttrValue::Doubles(all) => (DType::F64, all.iter().flat_map(|x| x.to_le_bytes()).collect()),
    };
    let bytes: Vec<u8> = bytes;
    FormatError::limit("bytes of an attribute", bytes.len() as u64, MAX_ATTRIBUTE_BYTES as u64)?;
    let scalar = bytes.len() == dtype.size();
    Ok(AttributeValue::Numbers { dtype, bytes, scalar, typed: true })
}

/// Removes the zeros that C programs write after names and texts.
fn trim_zeros(text: &str) -> String {
    text.trim_end_matches('\0').to_owned()
}

fn bad(why: impl std::fmt::Display) -> FormatError {
    FormatError::damaged("netCDF", why.to_string())
}
