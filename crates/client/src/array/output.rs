//! Answers as files.

use std::path::Path;

use gristmill_kernel::{Array, ArrayType, DType, Value};

use super::netcdf::{self, Kind, NetcdfAttribute, NetcdfVariable};
use super::netcdf_attributes::{copied_attributes, netcdf_attribute};
use super::netcdf_content::NetcdfContent;
use super::{AnswerAxis, ArrayPlan, axis_names, npy};
use crate::ClientError;

/// A file format for answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayFile {
    /// Classic netCDF, with dimensions, coordinates and attributes.
    Netcdf,
    /// NumPy's `.npy`: one array.
    Npy,
}

impl ArrayFile {
    /// Returns the format that the ending of a name means.
    pub fn from_path(path: &Path) -> Option<ArrayFile> {
        match path.extension()?.to_str()? {
            "nc" | "nc4" | "cdf" => Some(ArrayFile::Netcdf),
            "npy" => Some(ArrayFile::Npy),
            _ => None,
        }
    }
}

impl ArrayPlan {
    /// Checks, before anything is computed, that a format can hold the answer.
    ///
    /// # Errors
    /// Returns [`ClientError::Usage`] if the answer has several arrays and the format is `.npy`, or if it has an axis
    /// of length 0 and the format is netCDF.
    pub fn fits(&self, format: ArrayFile) -> Result<(), ClientError> {
        match format {
            ArrayFile::Npy if self.question.op.several() => Err(ClientError::Usage(
                "the answer has several arrays and a .npy file one; write it to a .nc file, or print it with --json".into(),
            )),
            ArrayFile::Npy => Ok(()),
            ArrayFile::Netcdf => match self.axes.iter().find(|axis| axis.length == 0) {
                Some(axis) => Err(ClientError::Usage(format!(
                    "nothing of {} is selected, and a netCDF file has no axis of length 0; select more, or print the answer",
                    axis.name
                ))),
                None => Ok(()),
            },
        }
    }

    /// Returns the bytes of a file with the answer. `op` is the operation for the attribute `cell_methods`, and `made`
    /// a line for the attribute `history` with the time and the command.
    ///
    /// # Errors
    /// Returns the errors of [`fits`](ArrayPlan::fits), and an error if a coordinate cannot be read.
    pub fn file(
        &self,
        answer: &Value,
        format: ArrayFile,
        op: &str,
        made: &str,
    ) -> Result<Vec<u8>, ClientError> {
        self.fits(format)?;
        let arrays = arrays(answer);
        match (format, &arrays[..]) {
            (ArrayFile::Npy, [(_, array), ..]) => Ok(npy::file(array)),
            _ => self.netcdf(&arrays, op, made),
        }
    }

    fn netcdf(&self, arrays: &[(&str, Array)], op: &str, history: &str) -> Result<Vec<u8>, ClientError> {
        let mut content = NetcdfContent::default();
        let mut axes = Vec::new();
        for axis in &self.axes {
            let (place, new) = content.dimension(&plain(&axis.name), axis.length);
            axes.push(place);
            if let Some(coordinate) = self.coordinate(axis)?.filter(|_| new) {
                content.coordinate(&plain(&axis.name), place, &coordinate);
            }
        }
        let (before, behind) = content.added(&self.question.op);
        let name = plain(&self.variable.path);
        for (answer, array) in arrays {
            let dimensions = [&before[..], &axes, &behind].concat();
            let name = if arrays.len() == 1 { name.clone() } else { format!("{name}_{answer}") };
            let attributes = self.attributes(answer, op, array.dtype);
            let (kind, data) = (Kind::Elements(array.dtype), array.data.clone());
            content.variables.push(NetcdfVariable { name, dimensions, kind, data, attributes });
        }
        Ok(netcdf::file(&content.dimensions, &content.variables, &self.about(history)))
    }

    /// Returns the attributes of the file, with a new first line of its history, as other tools write it.
    fn about(&self, history: &str) -> Vec<(String, NetcdfAttribute)> {
        // The attribute `coordinates` names variables that the answer does not have.
        let kept = self.dataset.attributes.iter().filter(|attribute| attribute.name != "coordinates");
        let mut about: Vec<(String, NetcdfAttribute)> = kept
            .filter_map(|attribute| Some((attribute.name.clone(), netcdf_attribute(attribute)?)))
            .collect();
        let place = |about: &[(String, NetcdfAttribute)], name: &str| {
            about.iter().position(|(other, _)| other == name)
        };
        if place(&about, "Conventions").is_none() {
            about.insert(0, ("Conventions".to_owned(), NetcdfAttribute::Text("CF-1.8".into())));
        }
        let line = |before: Option<&NetcdfAttribute>| match before {
            Some(NetcdfAttribute::Text(before)) if !before.is_empty() => {
                NetcdfAttribute::Text(format!("{history}\n{before}"))
            }
            _ => NetcdfAttribute::Text(history.to_owned()),
        };
        match place(&about, "history") {
            Some(at) => about[at].1 = line(Some(&about[at].1)),
            None => about.push(("history".to_owned(), line(None))),
        }
        about
    }

    /// Returns the variables that the expression reads, with their names in it, as text.
    pub fn inputs(&self) -> String {
        let others = self.question.others.iter().map(|(name, path)| format!(", {name} = {path}"));
        format!("x = {}{}", self.variable.path, others.collect::<String>())
    }

    /// Returns the attributes of an array of the answer. An expression changes units and names, so it leaves only a
    /// comment.
    fn attributes(&self, answer: &str, op: &str, dtype: ArrayType) -> Vec<(String, NetcdfAttribute)> {
        let same_units = self.units(answer).is_some();
        let mut attributes = match &self.question.expr {
            None => copied_attributes(
                &self.variable,
                if same_units { &["long_name", "standard_name", "units"] } else { &["long_name"] },
            ),
            Some(expr) => {
                vec![("comment".into(), NetcdfAttribute::Text(format!("{}; {expr}", self.inputs())))]
            }
        };
        if let Some(methods) = self.cell_methods(op) {
            attributes.push(("cell_methods".into(), NetcdfAttribute::Text(methods)));
        }
        let nan = match dtype {
            ArrayType::Number(DType::F32) => Some((DType::F32, f32::NAN.to_le_bytes().to_vec())),
            ArrayType::Number(DType::F64) => Some((DType::F64, f64::NAN.to_le_bytes().to_vec())),
            _ => None,
        };
        attributes
            .extend(nan.map(|(dtype, nan)| ("_FillValue".into(), NetcdfAttribute::Numbers(dtype, nan))));
        attributes
    }

    /// The units of an array of the answer, or `None` if they differ from those of the variable.
    pub fn units(&self, answer: &str) -> Option<&str> {
        let same = matches!(answer, "mean" | "min" | "max" | "sum" | "std" | "quantile" | "median");
        let units = self.variable.attribute("units").filter(|_| same && self.question.expr.is_none());
        units.and_then(|attribute| attribute.value.text())
    }

    /// Returns the attribute `cell_methods` (CF section 7.3 and appendix E): the earlier methods, then the reduced
    /// dimensions and the method.
    fn cell_methods(&self, op: &str) -> Option<String> {
        let method = match op {
            "min" => "minimum",
            "max" => "maximum",
            "std" => "standard_deviation",
            "var" => "variance",
            "mean" | "sum" | "median" => op,
            _ => return None,
        };
        let whole = |axis: &AnswerAxis| !axis.reduced && axis.coordinate.is_none();
        let stays = |name: &String| self.axes.iter().any(|axis| whole(axis) && axis.name == *name);
        let taken = (0..self.selected.axes.len()).filter(|axis| !self.selected.axes[*axis].dropped);
        let names = taken.map(|axis| axis_names::name(&self.variable, axis)).filter(|name| !stays(name));
        let over: String = names.map(|name| format!("{}: ", plain(&name))).collect();
        let weights = &self.question.mapping.weights;
        let weighted: Vec<String> = weights.iter().map(|(axis, by)| format!("{axis} by {by}")).collect();
        let comment = match weighted.is_empty() {
            true => String::new(),
            false => format!(" (comment: weighted along {})", weighted.join(", ")),
        };
        let before = self.variable.attribute("cell_methods").filter(|_| self.question.expr.is_none());
        let before = before.and_then(|attribute| attribute.value.text()).unwrap_or_default().trim();
        let joint = if before.is_empty() { "" } else { " " };
        (!over.is_empty()).then(|| format!("{before}{joint}{over}{method}{comment}"))
    }
}

/// Returns the arrays of an answer with their names.
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
