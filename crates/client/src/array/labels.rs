//! Labels of the elements of an axis.

use gristmill_format::Variable;

use super::netcdf::NetcdfAttribute;
use super::netcdf_attributes::copied_attributes;
use super::time::TimeUnits;

/// The coordinate of an axis of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisCoordinate {
    /// The name of the coordinate.
    pub name: String,
    /// One label for each element of the axis.
    pub labels: Labels,
    /// The attribute `units`.
    pub units: Option<String>,
    /// The units of its times, if its numbers are times.
    pub time: Option<TimeUnits>,
    /// Attributes for an output file.
    pub(super) attributes: Vec<(String, NetcdfAttribute)>,
}

/// Labels of the elements of an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Labels {
    /// Numbers.
    Floats(Vec<f64>),
    /// Whole numbers.
    Whole(Vec<i32>),
    /// Texts.
    Texts(Vec<String>),
}

impl Labels {
    /// Number of labels.
    pub fn len(&self) -> usize {
        match self {
            Labels::Floats(all) => all.len(),
            Labels::Whole(all) => all.len(),
            Labels::Texts(all) => all.len(),
        }
    }

    /// Whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns numbers as floats, and `None` for texts.
    pub fn floats(&self) -> Option<Vec<f64>> {
        match self {
            Labels::Floats(all) => Some(all.clone()),
            Labels::Whole(all) => Some(all.iter().map(|n| f64::from(*n)).collect()),
            Labels::Texts(_) => None,
        }
    }
}

impl AxisCoordinate {
    /// A coordinate of numbers with the units and the attributes of a variable.
    pub(super) fn new(variable: &Variable, name: &str, values: Vec<f64>) -> AxisCoordinate {
        let units = variable.attribute("units").and_then(|attribute| attribute.value.text());
        let names = ["long_name", "standard_name", "units", "calendar", "axis", "positive"];
        AxisCoordinate {
            name: name.to_owned(),
            labels: Labels::Floats(values),
            units: units.map(str::to_owned),
            // Times that cannot be read count as plain numbers here. Code that needs times reports the error.
            time: TimeUnits::from_variable(variable).ok().flatten(),
            attributes: copied_attributes(variable, &names),
        }
    }

    /// Returns the labels as texts for people. Times are dates.
    pub fn texts(&self) -> Vec<String> {
        match (&self.labels, &self.time) {
            (Labels::Floats(all), Some(time)) => {
                let text = |x: &f64| time.instant(*x).map_or_else(|| x.to_string(), |at| time.text(at));
                all.iter().map(text).collect()
            }
            (Labels::Floats(all), None) => all.iter().map(f64::to_string).collect(),
            (Labels::Whole(all), _) => all.iter().map(i32::to_string).collect(),
            (Labels::Texts(all), _) => all.clone(),
        }
    }
}
