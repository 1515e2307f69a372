//! Dimensions and variables of a netCDF file, while it is put together.

use gristmill_array::Op;
use gristmill_kernel::{ArrayType, DType};

use super::labels::{AxisCoordinate, Labels};
use super::netcdf::{Kind, NetcdfAttribute, NetcdfVariable};

/// Dimensions and variables of the file to write.
#[derive(Default)]
pub(super) struct NetcdfContent {
    pub dimensions: Vec<(String, u64)>,
    pub variables: Vec<NetcdfVariable>,
}

impl NetcdfContent {
    /// Returns the index of a dimension, and whether it is new. If another length has the name, the dimension gets
    /// another name.
    pub fn dimension(&mut self, name: &str, length: u64) -> (usize, bool) {
        let mut called = name.to_owned();
        loop {
            match self.dimensions.iter().position(|(other, _)| *other == called) {
                Some(place) if self.dimensions[place].1 == length => return (place, false),
                Some(_) => called.push_str("_other"),
                None => break,
            }
        }
        let as_named = called == name;
        self.dimensions.push((called, length));
        (self.dimensions.len() - 1, as_named)
    }

    /// Adds a coordinate. Texts become characters, padded with zeros to one length.
    pub fn coordinate(&mut self, name: &str, place: usize, coordinate: &AxisCoordinate) {
        let mut attributes = coordinate.attributes.clone();
        let number = |dtype| Kind::Elements(ArrayType::Number(dtype));
        let (dimensions, kind, data) = match &coordinate.labels {
            Labels::Floats(values) => {
                let data = values.iter().flat_map(|x| x.to_le_bytes()).collect();
                (vec![place], number(DType::F64), data)
            }
            Labels::Whole(values) => {
                let data = values.iter().flat_map(|n| n.to_le_bytes()).collect();
                (vec![place], number(DType::I32), data)
            }
            Labels::Texts(texts) => {
                let width = texts.iter().map(String::len).max().unwrap_or(0).max(1);
                let padded =
                    |text: &String| text.bytes().chain([0].into_iter().cycle()).take(width).collect();
                let data = texts.iter().flat_map::<Vec<u8>, _>(padded).collect();
                let (characters, _) = self.dimension(&format!("string{width}"), width as u64);
                attributes.push(("_Encoding".to_owned(), NetcdfAttribute::Text("utf-8".into())));
                (vec![place, characters], Kind::Characters, data)
            }
        };
        self.variables.push(NetcdfVariable { name: name.to_owned(), dimensions, kind, data, attributes });
    }

    /// Adds a variable of numbers along one dimension.
    fn numbers(&mut self, name: &str, place: usize, values: &[f64]) {
        let data = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        let kind = Kind::Elements(ArrayType::Number(DType::F64));
        let attributes = Vec::new();
        self.variables.push(NetcdfVariable {
            name: name.to_owned(),
            dimensions: vec![place],
            kind,
            data,
            attributes,
        });
    }

    /// Adds the axes of an operation with their coordinates. Returns those before and those after all other axes.
    pub fn added(&mut self, op: &Op) -> (Vec<usize>, Vec<usize>) {
        match op {
            Op::Quantile(shares) if shares.len() > 1 => {
                let (place, _) = self.dimension("quantile", shares.len() as u64);
                self.numbers("quantile", place, shares);
                (vec![place], Vec::new())
            }
            Op::Histogram(edges) => {
                let (place, _) = self.dimension("bin", edges.len() as u64 - 1);
                self.numbers("bin_low", place, &edges[..edges.len() - 1]);
                self.numbers("bin_high", place, &edges[1..]);
                (Vec::new(), vec![place])
            }
            _ => (Vec::new(), Vec::new()),
        }
    }
}
