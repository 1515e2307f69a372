//! What the elements of an axis stand for.

use gristmill_format::Variable;

use super::netcdf::Stated;
use super::output::kept;
use super::time::TimeUnits;

/// The coordinate of an axis of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisCoordinate {
    /// Its name.
    pub name: String,
    /// One label for each element of the axis.
    pub labels: Labels,
    /// The units that its file gives it.
    pub units: Option<String>,
    /// What its numbers count, where they are times.
    pub time: Option<TimeUnits>,
    /// As they are written to a file.
    pub(super) attributes: Vec<(String, Stated)>,
}

/// Labels of the elements of an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Labels {
    /// Numbers.
    Floats(Vec<f64>),
    /// Whole numbers.
    Whole(Vec<i32>),
    /// Words.
    Texts(Vec<String>),
}

impl Labels {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Labels::Floats(all) => all.len(),
            Labels::Whole(all) => all.len(),
            Labels::Texts(all) => all.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Numbers as floats; `None` for words.
    pub fn floats(&self) -> Option<Vec<f64>> {
        match self {
            Labels::Floats(all) => Some(all.clone()),
            Labels::Whole(all) => Some(all.iter().map(|n| f64::from(*n)).collect()),
            Labels::Texts(_) => None,
        }
    }
}

impl AxisCoordinate {
    /// These numbers in the units of a variable, and with its attributes.
    pub(super) fn of(variable: &Variable, name: &str, values: Vec<f64>) -> AxisCoordinate {
        let units = variable.attribute("units").and_then(|attribute| attribute.value.text());
        let names = ["long_name", "standard_name", "units", "calendar", "axis", "positive"];
        AxisCoordinate {
            name: name.to_owned(),
            labels: Labels::Floats(values),
            units: units.map(str::to_owned),
            // Times that cannot be told are numbers like others here; what needs them says so.
            time: TimeUnits::of(variable).ok().flatten(),
            attributes: kept(variable, &names),
        }
    }

    /// Labels for people: times as dates, numbers as they are.
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
