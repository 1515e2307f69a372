//! HDF5's filters by their numbers (the registry of The HDF Group).

use hdf5_reader::messages::filter_pipeline::FilterDescription;

use crate::FormatError;
use crate::filter::Filter;

/// Returns the filters of a dataset, in the order of writing.
pub fn filters(variable: &str, all: &[FilterDescription]) -> Result<Vec<Filter>, FormatError> {
    all.iter()
        .map(|filter| {
            Ok(match filter.id {
                1 => Filter::Zlib,
                2 => Filter::Shuffle { size: filter.client_data.first().copied().unwrap_or(1) },
                3 => Filter::Fletcher32,
                4 => Filter::Szip(filter.client_data.clone()),
                32_000 => Filter::Lzf,
                32_001 => Filter::Blosc,
                32_004 => Filter::Lz4Hdf5,
                32_015 => Filter::Zstd,
                _ => {
                    return Err(FormatError::unsupported(
                        variable,
                        format!(
                            "its filter {} is not supported; write it again with deflate, zstd, lz4 or blosc",
                            name(filter)
                        ),
                    ));
                }
            })
        })
        .collect()
}

/// The usual name of a filter, which may be unsupported.
pub fn name(filter: &FilterDescription) -> String {
    let known = match filter.id {
        1 => "deflate",
        2 => "shuffle",
        3 => "fletcher32",
        4 => "szip",
        5 => "nbit",
        6 => "scaleoffset",
        307 => "bzip2",
        32_000 => "lzf",
        32_001 => "blosc",
        32_004 => "lz4",
        32_008 => "bitshuffle",
        32_013 => "zfp",
        32_015 => "zstd",
        32_017 | 32_024 => "sz",
        32_026 => "blosc2",
        id => {
            return match &filter.name {
                Some(name) if !name.is_empty() => format!("{name} ({id})"),
                _ => format!("number {id}"),
            };
        }
    };
    known.to_owned()
}
