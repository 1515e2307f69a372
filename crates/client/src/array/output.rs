//! The answer as a file.

use std::path::Path;

use gristmill_array::Op;
use gristmill_format::{Attribute, AttributeValue, Variable};
use gristmill_kernel::{Array, ArrayType, DType, Value};

use super::labels::{AxisCoordinate, Labels};
use super::netcdf::{self, Kind, Stated, Written};
use super::{AnswerAxis, ArrayPlan, npy};
use crate::ClientError;

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
    /// Refuses, before anything is computed, an answer that a format does not hold.
    ///
    /// # Errors
    /// Several arrays where the format has one; an axis of length 0 where it has none.
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

    /// The bytes of a file with the answer. `op`: how it was made, for the attribute `cell_methods`; `made`: when and by which
    /// command, a line of the attribute `history`.
    ///
    /// # Errors
    /// Several arrays where the format has one; a coordinate that cannot be read.
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
        let mut made = Made::default();
        let mut axes = Vec::new();
        for axis in &self.axes {
            let (place, new) = made.dimension(&plain(&axis.name), axis.length);
            axes.push(place);
            if let Some(coordinate) = self.coordinate(axis)?.filter(|_| new) {
                made.coordinate(&plain(&axis.name), place, &coordinate);
            }
        }
        let (before, behind) = made.added(&self.question.op);
        let name = plain(&self.variable.path);
        for (answer, array) in arrays {
            let dimensions = [&before[..], &axes, &behind].concat();
            let name = if arrays.len() == 1 { name.clone() } else { format!("{name}_{answer}") };
            let attributes = self.attributes(answer, op, array.dtype);
            let (kind, data) = (Kind::Elements(array.dtype), array.data.clone());
            made.variables.push(Written { name, dimensions, kind, data, attributes });
        }
        Ok(netcdf::file(&made.dimensions, &made.variables, &self.about(history)))
    }

    /// The attributes of the file, with one more line of its history: before the others, as other tools write it.
    fn about(&self, history: &str) -> Vec<(String, Stated)> {
        // One that names variables, which are not in the answer.
        let kept = self.dataset.attributes.iter().filter(|attribute| attribute.name != "coordinates");
        let mut about: Vec<(String, Stated)> =
            kept.filter_map(|attribute| Some((attribute.name.clone(), stated(attribute)?))).collect();
        let place =
            |about: &[(String, Stated)], name: &str| about.iter().position(|(other, _)| other == name);
        if place(&about, "Conventions").is_none() {
            about.insert(0, ("Conventions".to_owned(), Stated::Text("CF-1.8".into())));
        }
        let line = |before: Option<&Stated>| match before {
            Some(Stated::Text(before)) if !before.is_empty() => Stated::Text(format!("{history}\n{before}")),
            _ => Stated::Text(history.to_owned()),
        };
        match place(&about, "history") {
            Some(at) => about[at].1 = line(Some(&about[at].1)),
            None => about.push(("history".to_owned(), line(None))),
        }
        about
    }

    /// The variables that the expression reads, each with what it is called there.
    pub fn inputs(&self) -> String {
        let others = self.question.others.iter().map(|(name, path)| format!(", {name} = {path}"));
        format!("x = {}{}", self.variable.path, others.collect::<String>())
    }

    /// What is said of an array of the answer. What was computed of each element first has other units, and another name.
    fn attributes(&self, answer: &str, op: &str, dtype: ArrayType) -> Vec<(String, Stated)> {
        let same_units = self.units(answer).is_some();
        let mut attributes = match &self.question.expr {
            None => kept(
                &self.variable,
                if same_units { &["long_name", "standard_name", "units"] } else { &["long_name"] },
            ),
            Some(expr) => {
                vec![("comment".into(), Stated::Text(format!("{}; {expr}", self.inputs())))]
            }
        };
        if let Some(methods) = self.cell_methods(op) {
            attributes.push(("cell_methods".into(), Stated::Text(methods)));
        }
        let nan = match dtype {
            ArrayType::Number(DType::F32) => Some((DType::F32, f32::NAN.to_le_bytes().to_vec())),
            ArrayType::Number(DType::F64) => Some((DType::F64, f64::NAN.to_le_bytes().to_vec())),
            _ => None,
        };
        attributes.extend(nan.map(|(dtype, nan)| ("_FillValue".into(), Stated::Numbers(dtype, nan))));
        attributes
    }

    /// The units of an array of the answer, where they are those of the variable.
    pub fn units(&self, answer: &str) -> Option<&str> {
        let same = matches!(answer, "mean" | "min" | "max" | "sum" | "std" | "quantile" | "median");
        let units = self.variable.attribute("units").filter(|_| same && self.question.expr.is_none());
        units.and_then(|attribute| attribute.value.text())
    }

    /// As CF section 7.3 and appendix E have it: what was done before, and behind it the dimensions that were reduced, and how.
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
        let names = taken.map(|axis| super::select::name(&self.variable, axis)).filter(|name| !stays(name));
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

/// Dimensions and variables of a file that is made.
#[derive(Default)]
struct Made {
    dimensions: Vec<(String, u64)>,
    variables: Vec<Written>,
}

impl Made {
    /// The place of a dimension, and whether it is new. One of the same name and another length gets another name.
    fn dimension(&mut self, name: &str, length: u64) -> (usize, bool) {
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

    /// Texts become characters, filled up with zeros to one length.
    fn coordinate(&mut self, name: &str, place: usize, coordinate: &AxisCoordinate) {
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
                attributes.push(("_Encoding".to_owned(), Stated::Text("utf-8".into())));
                (vec![place, characters], Kind::Characters, data)
            }
        };
        self.variables.push(Written { name: name.to_owned(), dimensions, kind, data, attributes });
    }

    /// Numbers along one dimension.
    fn numbers(&mut self, name: &str, place: usize, values: &[f64]) {
        let data = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        let kind = Kind::Elements(ArrayType::Number(DType::F64));
        let attributes = Vec::new();
        self.variables.push(Written {
            name: name.to_owned(),
            dimensions: vec![place],
            kind,
            data,
            attributes,
        });
    }

    /// The axes that an operation adds before and behind the others, with what they stand for.
    fn added(&mut self, op: &Op) -> (Vec<usize>, Vec<usize>) {
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

/// These attributes of a variable, as it has them.
pub(super) fn kept(variable: &Variable, names: &[&str]) -> Vec<(String, Stated)> {
    names.iter().filter_map(|name| Some(((*name).to_owned(), stated(variable.attribute(name)?)?))).collect()
}

/// An attribute as classic netCDF has it; `None` for what it has not. Whole numbers without a type are small ones where that does.
fn stated(attribute: &Attribute) -> Option<Stated> {
    let small = |value: &Value| match value {
        Value::Int(n) => i32::try_from(*n).ok(),
        _ => None,
    };
    Some(match &attribute.value {
        AttributeValue::Numbers { dtype, bytes, typed, .. } => {
            let numbers = attribute.value.numbers().unwrap_or_default();
            match numbers.iter().map(small).collect::<Option<Vec<i32>>>() {
                Some(all) if !typed => {
                    Stated::Numbers(DType::I32, all.into_iter().flat_map(i32::to_le_bytes).collect())
                }
                _ => Stated::Numbers(*dtype, bytes.clone()),
            }
        }
        value => Stated::Text(value.text()?.to_owned()),
    })
}
