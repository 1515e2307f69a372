//! The dimensions of a file: names and lengths that several variables share.
//!
//! A dimension is a dataset, its *scale*, to which attributes of other datasets refer. An unlimited dimension is as
//! long as the longest variable along it, so a variable may have fewer elements than its shape. The others read as the
//! fill value.

use std::collections::HashMap;

use gristmill_kernel::ByteOrder;

use super::datasets::Object;
use super::walk::Walked;
use crate::dataset::{Dimension, Format, Kind, Storage, Variable};

/// Prefix that netCDF gives to a variable that has the name of a dimension but is not its coordinate.
const NOT_COORDINATE: &str = "_nc4_non_coord_";

/// All dimensions of a file.
pub struct Dimensions {
    pub all: Vec<Dimension>,
    /// Indices of the dimensions, by the address of the scale's header and by netCDF's number.
    by_address: HashMap<u64, usize>,
    by_number: HashMap<i64, usize>,
    /// Whether a netCDF library numbered the dimensions.
    pub netcdf: bool,
}

impl Dimensions {
    pub fn new(walked: &Walked) -> Dimensions {
        let mut out = Dimensions {
            all: Vec::new(),
            by_address: HashMap::new(),
            by_number: HashMap::new(),
            netcdf: false,
        };
        let mut scales: Vec<&Object> = walked.objects.iter().filter(|object| object.scale.is_scale).collect();
        scales.sort_by_key(|object| object.scale.number.unwrap_or(i64::MAX));
        for object in scales {
            let (Some(length), Some(limit)) = (object.shape.first(), object.limits.first()) else { continue };
            if out.by_address.contains_key(&object.address) {
                continue;
            }
            let index = out.all.len();
            out.by_address.insert(object.address, index);
            if let Some(number) = object.scale.number {
                out.by_number.entry(number).or_insert(index);
                out.netcdf = true;
            }
            let unlimited = *limit == u64::MAX;
            out.all.push(Dimension { name: object.path.clone(), length: *length, unlimited });
        }
        for object in &walked.objects {
            for (index, length) in out.axes(object).into_iter().zip(&object.shape) {
                if let Some(dimension) = index.and_then(|index| out.all.get_mut(index))
                    && dimension.unlimited
                {
                    dimension.length = dimension.length.max(*length);
                }
            }
        }
        out
    }

    /// Returns the dimension of each axis of a dataset.
    fn axes(&self, object: &Object) -> Vec<Option<usize>> {
        let scale = &object.scale;
        if let Some(numbers) = scale.coordinates.as_ref().filter(|all| all.len() == object.shape.len()) {
            return numbers.iter().map(|number| self.by_number.get(number).copied()).collect();
        }
        if scale.is_scale && object.shape.len() == 1 {
            return vec![self.by_address.get(&object.address).copied()];
        }
        let of_axis = |axis: usize| {
            let address = scale.axes.get(axis).copied().flatten()?;
            self.by_address.get(&address).copied()
        };
        (0..object.shape.len()).map(of_axis).collect()
    }

    /// Returns the variable of a dataset, or `None` if the dataset is only a dimension.
    pub fn variable(&self, object: &Object, format: Format) -> Option<Variable> {
        if object.scale.is_scale && object.scale.no_variable {
            return None;
        }
        let axes: Vec<Option<&Dimension>> =
            self.axes(object).into_iter().map(|index| index.and_then(|index| self.all.get(index))).collect();
        let storage = object.storage();
        let grows = format == Format::Netcdf4 && storage == Storage::Chunked;
        let lengths = object.shape.iter().zip(&object.limits).zip(&axes);
        let shape = lengths.map(|((length, limit), dimension)| match dimension {
            Some(dimension) if grows && dimension.unlimited && *limit == u64::MAX => {
                dimension.length.max(*length)
            }
            _ => *length,
        });
        let (folder, name) = object.path.rsplit_once('/').unwrap_or(("", &object.path));
        let name = name.strip_prefix(NOT_COORDINATE).unwrap_or(name);
        Some(Variable {
            path: if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") },
            dimensions: axes
                .iter()
                .map(|axis| axis.map_or_else(String::new, |axis| axis.name.clone()))
                .collect(),
            kind: object.kind.clone(),
            order: match object.kind {
                Kind::Number(_) => object.order,
                Kind::Other(_) => ByteOrder::Little,
            },
            shape: shape.collect(),
            chunk: object.chunk(),
            storage,
            filters: object.filter_names(),
            fill: object.fill(),
            attributes: object.attributes.clone(),
        })
    }
}
