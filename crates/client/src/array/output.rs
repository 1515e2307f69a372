//! The answer as a file.

use std::path::Path;

use gristmill_format::AttributeValue;
use gristmill_kernel::{Array, ArrayType, DType, Value};

use super::netcdf::{self, Stated, Written};
use super::{ArrayPlan, npy};
use crate::ClientError;

/// Attributes that are true of what was made of a variable, too.
const KEPT: [&str; 2] = ["long_name", "standard_name"];

/// The formats of files that answers become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayFile {
    /// Classic netCDF, with dimensions, coordinates and attributes.
    Netcdf,
    /// NumPy's `.npy`: one array.
    Npy,
}

impl ArrayFile {
    /// The format that the end of a name says.
    pub fn of(path: &Path) -> Option<ArrayFile> {
        match path.extension()?.to_str()? {
            "nc" | "nc4" | "cdf" => Some(ArrayFile::Netcdf),
            "npy" => Some(ArrayFile::Npy),
            _ => None,
        }
    }
}

impl ArrayPlan {
    /// The bytes of a file with the answer. `op`: how it was made, for the attribute `cell_methods`.
    ///
    /// # Errors
    /// Several arrays where the format has one; a coordinate that cannot be read.
    pub fn file(&self, answer: &Value, format: ArrayFile, op: &str) -> Result<Vec<u8>, ClientError> {
        let arrays = arrays(answer);
        match (format, &arrays[..]) {
            (ArrayFile::Npy, [(_, array)]) => Ok(npy::file(array)),
            (ArrayFile::Npy, several) => Err(ClientError::Usage(format!(
                "the answer has {} arrays and a .npy file one; write it to a .nc file, or print it with --json",
                several.len()
            ))),
            (ArrayFile::Netcdf, _) => self.netcdf(&arrays, op),
        }
    }

    fn netcdf(&self, arrays: &[(&str, Array)], op: &str) -> Result<Vec<u8>, ClientError> {
        let (mut dimensions, mut written): (Vec<(String, u64)>, Vec<Written>) = (Vec::new(), Vec::new());
        for axis in &self.axes {
            let place = dimensions.len();
            dimensions.push((plain(&axis.name), axis.length));
            let Some((variable, values)) = self.coordinate(axis)? else { continue };
            written.push(Written {
                name: plain(&axis.name),
                dimensions: vec![place],
                dtype: ArrayType::Number(DType::F64),
                data: values.iter().flat_map(|x| x.to_le_bytes()).collect(),
                attributes: kept(variable, &["units", "calendar", "axis", "positive"]),
            });
        }
        let name = plain(&self.variable.path);
        for (answer, array) in arrays {
            // A quantile has an axis more before the others, a histogram behind them.
            let more = array.shape.len().saturating_sub(self.axes.len());
            let first = *answer != "histogram";
            let mut axes: Vec<usize> = (0..self.axes.len()).collect();
            for (at, length) in
                (0..more).zip(if first { &array.shape[..more] } else { &array.shape[self.axes.len()..] })
            {
                axes.insert(if first { at } else { self.axes.len() + at }, dimensions.len());
                dimensions.push((format!("{answer}_{at}"), *length));
            }
            let same_units =
                matches!(*answer, "mean" | "min" | "max" | "sum" | "std" | "quantile" | "median");
            let mut attributes = kept(&self.variable, if same_units { &["units"] } else { &[] });
            attributes.push(("cell_methods".into(), Stated::Text(self.cell_methods(op))));
            if let ArrayType::Number(dtype @ (DType::F32 | DType::F64)) = array.dtype {
                let nan = if dtype == DType::F32 {
                    f32::NAN.to_le_bytes().to_vec()
                } else {
                    f64::NAN.to_le_bytes().to_vec()
                };
                attributes.push(("_FillValue".into(), Stated::Numbers(dtype, nan)));
            }
            let name = if arrays.len() == 1 { name.clone() } else { format!("{name}_{answer}") };
            let (dtype, data) = (array.dtype, array.data.clone());
            written.push(Written { name, dimensions: axes, dtype, data, attributes });
        }
        let about = [("Conventions".to_owned(), Stated::Text("CF-1.8".into()))];
        Ok(netcdf::file(&dimensions, &written, &about))
    }

    /// As CF section 7.3 has it: the dimensions that were reduced, and how.
    fn cell_methods(&self, op: &str) -> String {
        let kept: Vec<&str> =
            self.axes.iter().filter(|axis| !axis.reduced).map(|axis| axis.name.as_str()).collect();
        let all = (0..self.variable.shape.len()).map(|axis| super::select::name(&self.variable, axis));
        let reduced: Vec<String> = all.filter(|name| !kept.contains(&name.as_str())).collect();
        let over: String = reduced.iter().map(|name| format!("{}: ", plain(name))).collect();
        let method = match op {
            "min" => "minimum",
            "max" => "maximum",
            "std" => "standard_deviation",
            "var" => "variance",
            op => op,
        };
        format!("{over}{method}")
    }
}

/// The arrays of an answer, by name.
fn arrays(answer: &Value) -> Vec<(&'static str, Array)> {
    let Value::Map(entries) = answer else { return Vec::new() };
    let array = |(name, value): &(&'static str, Value)| match value {
        Value::Array(array) => Some((*name, array.clone())),
        _ => None,
    };
    entries.iter().filter_map(array).collect()
}

/// A name without its groups, which classic netCDF does not have.
fn plain(name: &str) -> String {
    name.replace('/', "_")
}

fn kept(variable: &gristmill_format::Variable, besides: &[&str]) -> Vec<(String, Stated)> {
    let stated = |name: &&str| {
        let value = &variable.attribute(name)?.value;
        let stated = match value {
            AttributeValue::Numbers { dtype, bytes, .. } => Stated::Numbers(*dtype, bytes.clone()),
            value => Stated::Text(value.text()?.to_owned()),
        };
        Some(((*name).to_owned(), stated))
    };
    KEPT.iter().chain(besides).filter_map(stated).collect()
}
