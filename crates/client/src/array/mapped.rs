//! Axes whose elements become groups, windows or bins of time, and weights along axes: from names to what a reduction takes.

use gristmill_array::{Boundary, Groups, Reduction, Selected, Weights, Windows};
use gristmill_format::{Dataset, Variable};

use super::labels::AxisCoordinate;
use super::resample::Frequency;
use super::time::TimeUnits;
use super::{AnswerAxis, coordinate, group, select, weight};
use crate::ClientError;

/// What becomes of axes that are neither kept nor reduced, and what elements weigh.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapping {
    /// Axes, and what their elements are grouped by: a variable, or times and a part of a date, as in `time.month`.
    pub groups: Vec<(String, String)>,
    /// Axes, the length of windows, and what becomes of elements that do not fill one.
    pub windows: Vec<(String, u64, Boundary)>,
    /// Axes with times, and the bins that they fall into.
    pub bins: Vec<(String, Frequency)>,
    /// Axes, and what their elements weigh: a variable, or [`COSINE_OF_LATITUDE`](super::COSINE_OF_LATITUDE).
    pub weights: Vec<(String, String)>,
}

/// The axes that are mapped, as a reduction and an answer have them.
#[derive(Debug, Default)]
pub(super) struct Mapped {
    groups: Vec<Groups>,
    windows: Vec<Windows>,
    weights: Vec<Weights>,
    /// Places among the axes of the selection, and what stands there in the answer.
    axes: Vec<(usize, AnswerAxis)>,
}

impl Mapped {
    /// Whether an axis of the selection is mapped.
    pub fn has(&self, place: usize) -> bool {
        self.axis(place).is_some()
    }

    /// What stands in the answer in the place of an axis of the selection.
    pub fn axis(&self, place: usize) -> Option<&AnswerAxis> {
        self.axes.iter().find(|(at, _)| *at == place).map(|(_, axis)| axis)
    }

    /// Whether any axis is mapped.
    pub fn any(&self) -> bool {
        !self.axes.is_empty()
    }

    /// A reduction with groups, windows and weights.
    pub fn reduction(self, reduction: Reduction) -> Reduction {
        let Mapped { groups, windows, weights, .. } = self;
        Reduction { groups, windows, weights, ..reduction }
    }
}

/// One axis of the selection.
struct Axis<'a> {
    /// Of the array, and among those that the selection left.
    at: usize,
    place: usize,
    /// The elements that are taken, as indices of the whole axis.
    taken: Vec<usize>,
    dataset: &'a Dataset,
    variable: &'a Variable,
}

/// Works out what becomes of axes.
///
/// # Errors
/// Axes that are not there, that were taken at one index, or that are named twice; variables that do not fit.
pub(super) fn of(
    dataset: &Dataset,
    variable: &Variable,
    selected: &Selected,
    mapping: &Mapping,
) -> Result<Mapped, ClientError> {
    let axis = |said: &str| {
        let at = select::axis(variable, said)?;
        let range = selected.axes[at];
        if range.dropped {
            let text =
                format!("axis {said} is taken at one index, and so there is nothing to group or weigh");
            return Err(ClientError::Usage(text));
        }
        let place = selected.axes[..at].iter().filter(|range| !range.dropped).count();
        group::bounded(said, range.count)?;
        let taken = (0..range.count).map(|i| (range.first + i * range.step) as usize).collect();
        Ok(Axis { at, place, taken, dataset, variable })
    };
    let mut mapped = Mapped::default();
    for (said, by) in &mapping.groups {
        let axis = axis(said)?;
        let found = group::by(dataset, variable, axis.at, &axis.taken, by)?;
        mapped.groups(&axis, found.labels, found.coordinate, None)?;
    }
    for (said, frequency) in &mapping.bins {
        let axis = axis(said)?;
        let (labels, coordinate) = axis.bins(said, *frequency)?;
        let (labels, asked) = of_those_there(labels, coordinate.labels.len());
        mapped.groups(&axis, labels, coordinate, asked)?;
    }
    for (said, length, boundary) in &mapping.windows {
        let axis = axis(said)?;
        mapped.windows.push(Windows { axis: axis.place as i64, length: *length, boundary: *boundary });
        let answer = axis.windowed(*length, *boundary)?;
        mapped.add(&axis, answer)?;
    }
    for (said, by) in &mapping.weights {
        let axis = axis(said)?;
        let values = weight::along(dataset, variable, axis.at, &axis.taken, by)?;
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
        asked: Option<Vec<usize>>,
    ) -> Result<(), ClientError> {
        let length = found.labels.len() as u64;
        let count = asked.as_ref().map_or(length, |asked| asked.len() as u64);
        self.groups.push(Groups { axis: axis.place as i64, labels, count });
        let name = found.name.clone();
        self.add(axis, AnswerAxis { name, length, reduced: false, coordinate: Some(found), asked })
    }

    fn add(&mut self, axis: &Axis, answer: AnswerAxis) -> Result<(), ClientError> {
        if self.has(axis.place) {
            return Err(ClientError::Usage(format!(
                "axis {} is grouped twice; one of --groupby, --coarsen and --resample is possible",
                select::name(axis.variable, axis.at)
            )));
        }
        self.axes.push((axis.place, answer));
        Ok(())
    }
}

impl Axis<'_> {
    /// The bin of each element, and where bins begin.
    fn bins(&self, said: &str, frequency: Frequency) -> Result<(Vec<i64>, AxisCoordinate), ClientError> {
        let found = coordinate::of(self.dataset, self.variable, self.at);
        let units = found.map(TimeUnits::of).transpose()?.flatten();
        let Some((found, units)) = found.zip(units) else {
            return Err(ClientError::Usage(format!(
                "{said} has no coordinate with units as in 'days since 2001-01-01', so it cannot be resampled"
            )));
        };
        let values = coordinate::values(self.dataset, found)?.values;
        let time = |at: &usize| values.get(*at).and_then(|x| units.instant(*x));
        let times: Vec<Option<i64>> = self.taken.iter().map(time).collect();
        let bins = frequency.bins(units.calendar, times.iter().flatten().copied())?;
        let labels = times.iter().map(|time| time.map_or(-1, |time| bins.of(time))).collect();
        let begins = bins.numbers(&units);
        if begins.len() as u64 != bins.count {
            return Err(ClientError::Usage(format!("{said}: its times are too far away to be resampled")));
        }
        Ok((labels, AxisCoordinate::of(found, &found.path, begins)))
    }

    /// Windows are where the mean of their coordinates is.
    fn windowed(&self, length: u64, boundary: Boundary) -> Result<AnswerAxis, ClientError> {
        let (all, window) = (self.taken.len() as u64, length.max(1));
        let count = if boundary == Boundary::Pad { all.div_ceil(window) } else { all / window };
        let name = select::name(self.variable, self.at);
        let coordinate = match coordinate::of(self.dataset, self.variable, self.at) {
            None => None,
            Some(found) => {
                let values = coordinate::values(self.dataset, found)?.values;
                let taken: Vec<f64> = self.taken.iter().filter_map(|at| values.get(*at).copied()).collect();
                let means = taken.chunks(usize::try_from(window).unwrap_or(usize::MAX)).map(mean);
                let means = means.take(count as usize).collect();
                Some(AxisCoordinate::of(found, &name, means))
            }
        };
        Ok(AnswerAxis { name, length: count, reduced: false, coordinate, asked: None })
    }
}

/// Labels of the bins that have any elements, counted among these, and which those are where not all of `count` are.
fn of_those_there(mut labels: Vec<i64>, count: usize) -> (Vec<i64>, Option<Vec<usize>>) {
    let mut there = vec![false; count];
    for label in &labels {
        if let Some(bin) = usize::try_from(*label).ok().and_then(|bin| there.get_mut(bin)) {
            *bin = true;
        }
    }
    if there.iter().all(|any| *any) {
        return (labels, None);
    }
    let asked: Vec<usize> = (0..count).filter(|bin| there[*bin]).collect();
    for label in &mut labels {
        let place = usize::try_from(*label).ok().and_then(|bin| asked.binary_search(&bin).ok());
        *label = place.map_or(-1, |place| place as i64);
    }
    (labels, Some(asked))
}

/// The mean of what is not missing.
fn mean(values: &[f64]) -> f64 {
    let there = || values.iter().filter(|x| !x.is_nan());
    there().sum::<f64>() / there().count() as f64
}
