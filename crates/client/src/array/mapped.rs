//! Axes that a request maps to groups, windows or bins of time, and weights along axes: from names to a reduction.

use gristmill_array::{Boundary, Groups, Reduction, Selected, Weights, Windows};
use gristmill_format::{Dataset, Variable};

use super::labels::AxisCoordinate;
use super::resample::Frequency;
use super::time::TimeUnits;
use super::{AnswerAxis, axis_names, coordinate, group, weight};
use crate::ClientError;

/// The mapped axes of a request and its weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapping {
    /// Grouped axes. Each is grouped by a variable, or by times and a part of a date, as in `time.month`.
    pub groups: Vec<(String, String)>,
    /// Axes with windows, the length of a window, and the treatment of elements that do not fill one.
    pub windows: Vec<(String, u64, Boundary)>,
    /// Axes of times, and the length of their bins.
    pub bins: Vec<(String, Frequency)>,
    /// Axes with weights: a variable, or [`COSINE_OF_LATITUDE`](super::COSINE_OF_LATITUDE).
    pub weights: Vec<(String, String)>,
}

/// The mapped axes and the weights, for a reduction and its answer.
#[derive(Debug, Default)]
pub(super) struct Mapped {
    groups: Vec<Groups>,
    windows: Vec<Windows>,
    weights: Vec<Weights>,
    /// Numbers of the mapped axes in the selection, with the axes of the answer that take their places.
    axes: Vec<(usize, AnswerAxis)>,
}

impl Mapped {
    /// Whether an axis of the selection is mapped.
    pub fn has(&self, place: usize) -> bool {
        self.axis(place).is_some()
    }

    /// The axis of the answer that takes the place of an axis of the selection.
    pub fn axis(&self, place: usize) -> Option<&AnswerAxis> {
        self.axes.iter().find(|(at, _)| *at == place).map(|(_, axis)| axis)
    }

    /// Whether any axis is mapped.
    pub fn any(&self) -> bool {
        !self.axes.is_empty()
    }

    /// Adds the groups, windows and weights to a reduction.
    pub fn reduction(self, reduction: Reduction) -> Reduction {
        let Mapped { groups, windows, weights, .. } = self;
        Reduction { groups, windows, weights, ..reduction }
    }
}

/// One axis of the selection.
struct Axis<'a> {
    /// Number of the axis in the array; `place` is its number without dropped axes.
    at: usize,
    place: usize,
    /// The selected elements, as indices of the whole axis.
    taken: Vec<usize>,
    dataset: &'a Dataset,
    variable: &'a Variable,
}

/// Maps axes and reads weights.
///
/// # Errors
/// Returns an error if an axis does not exist, is selected at one index or is mapped twice, or if a variable does not
/// fit its axis or cannot be read.
pub(super) fn map_axes(
    dataset: &Dataset,
    variable: &Variable,
    selected: &Selected,
    mapping: &Mapping,
) -> Result<Mapped, ClientError> {
    let axis = |name: &str| {
        let at = axis_names::find(variable, name)?;
        let range = selected.axes[at];
        if range.dropped {
            let text = format!("axis {name} is selected at one index, so there is nothing to group or weigh");
            return Err(ClientError::Usage(text));
        }
        let place = selected.axes[..at].iter().filter(|range| !range.dropped).count();
        group::check_count(name, range.count)?;
        let taken = (0..range.count).map(|i| (range.first + i * range.step) as usize).collect();
        Ok(Axis { at, place, taken, dataset, variable })
    };
    let mut mapped = Mapped::default();
    for (name, by) in &mapping.groups {
        let axis = axis(name)?;
        let found = group::group_by(dataset, variable, axis.at, &axis.taken, by)?;
        mapped.groups(&axis, found.labels, found.coordinate, None)?;
    }
    for (name, frequency) in &mapping.bins {
        let axis = axis(name)?;
        let (labels, coordinate) = axis.bins(name, *frequency)?;
        let (labels, present) = drop_empty_bins(labels, coordinate.labels.len());
        mapped.groups(&axis, labels, coordinate, present)?;
    }
    for (name, length, boundary) in &mapping.windows {
        let axis = axis(name)?;
        mapped.windows.push(Windows { axis: axis.place as i64, length: *length, boundary: *boundary });
        let answer = axis.windowed(*length, *boundary)?;
        mapped.add(&axis, answer)?;
    }
    for (name, by) in &mapping.weights {
        let axis = axis(name)?;
        let values = weight::axis_weights(dataset, variable, axis.at, &axis.taken, by)?;
        mapped.weights.push(Weights { axis: axis.place as i64, values });
    }
    Ok(mapped)
}

impl Mapped {
    fn groups(
        &mut self,
        axis: &Axis,
        labels: Vec<i64>,
        found: AxisCoordinate,
        present: Option<Vec<usize>>,
    ) -> Result<(), ClientError> {
        let length = found.labels.len() as u64;
        let count = present.as_ref().map_or(length, |present| present.len() as u64);
        self.groups.push(Groups { axis: axis.place as i64, labels, count });
        let name = found.name.clone();
        self.add(axis, AnswerAxis { name, length, reduced: false, coordinate: Some(found), present })
    }

    fn add(&mut self, axis: &Axis, answer: AnswerAxis) -> Result<(), ClientError> {
        if self.has(axis.place) {
            return Err(ClientError::Usage(format!(
                "axis {} is grouped twice; one of --groupby, --coarsen and --resample is possible",
                axis_names::name(axis.variable, axis.at)
            )));
        }
        self.axes.push((axis.place, answer));
        Ok(())
    }
}

impl Axis<'_> {
    /// Returns the bin of each element, and the beginnings of the bins.
    fn bins(&self, name: &str, frequency: Frequency) -> Result<(Vec<i64>, AxisCoordinate), ClientError> {
        let found = coordinate::find(self.dataset, self.variable, self.at);
        let units = found.map(TimeUnits::from_variable).transpose()?.flatten();
        let Some((found, units)) = found.zip(units) else {
            return Err(ClientError::Usage(format!(
                "{name} has no coordinate with units as in 'days since 2001-01-01', so it cannot be resampled"
            )));
        };
        let values = coordinate::values(self.dataset, found)?.values;
        let time = |at: &usize| values.get(*at).and_then(|x| units.instant(*x));
        let times: Vec<Option<i64>> = self.taken.iter().map(time).collect();
        let bins = frequency.bins(units.calendar, times.iter().flatten().copied())?;
        let labels = times.iter().map(|time| time.map_or(-1, |time| bins.bin_of(time))).collect();
        let begins = bins.numbers(&units);
        if begins.len() as u64 != bins.count {
            return Err(ClientError::Usage(format!("{name}: its times are too far away to be resampled")));
        }
        Ok((labels, AxisCoordinate::new(found, &found.path, begins)))
    }

    /// Returns the axis of windows. The coordinate of a window is the mean of the coordinates of its elements.
    fn windowed(&self, length: u64, boundary: Boundary) -> Result<AnswerAxis, ClientError> {
        let (all, window) = (self.taken.len() as u64, length.max(1));
        let count = if boundary == Boundary::Pad { all.div_ceil(window) } else { all / window };
        let name = axis_names::name(self.variable, self.at);
        let coordinate = match coordinate::find(self.dataset, self.variable, self.at) {
            None => None,
            Some(found) => {
                let values = coordinate::values(self.dataset, found)?.values;
                let taken: Vec<f64> = self.taken.iter().filter_map(|at| values.get(*at).copied()).collect();
                let means = taken.chunks(usize::try_from(window).unwrap_or(usize::MAX)).map(mean);
                let means = means.take(count as usize).collect();
                Some(AxisCoordinate::new(found, &name, means))
            }
        };
        Ok(AnswerAxis { name, length: count, reduced: false, coordinate, present: None })
    }
}

/// Renumbers labels without the empty ones of `count` bins. Also returns the other bins, or `None` if no bin is empty.
fn drop_empty_bins(mut labels: Vec<i64>, count: usize) -> (Vec<i64>, Option<Vec<usize>>) {
    let mut there = vec![false; count];
    for label in &labels {
        if let Some(bin) = usize::try_from(*label).ok().and_then(|bin| there.get_mut(bin)) {
            *bin = true;
        }
    }
    if there.iter().all(|any| *any) {
        return (labels, None);
    }
    let present: Vec<usize> = (0..count).filter(|bin| there[*bin]).collect();
    for label in &mut labels {
        let place = usize::try_from(*label).ok().and_then(|bin| present.binary_search(&bin).ok());
        *label = place.map_or(-1, |place| place as i64);
    }
    (labels, Some(present))
}

/// The mean of the values that are not NaN.
fn mean(values: &[f64]) -> f64 {
    let there = || values.iter().filter(|x| !x.is_nan());
    there().sum::<f64>() / there().count() as f64
}
