//! Pictures of answers: one dimension as a line, two as a map. The same answer gives the same bytes on every machine.

mod bars;
mod canvas;
mod colours;
mod frame;
mod line;
mod map;
mod ticks;

use gristmill_client::Labels;

use crate::error::CliError;
use canvas::Canvas;
use frame::Frame;

/// Size of a picture in pixels.
const WIDTH: usize = 1000;
const HEIGHT: usize = 620;

/// A dimension of a picture.
pub struct Dimension {
    pub name: String,
    /// Number of elements.
    pub length: usize,
    /// Coordinates or names of the elements.
    pub labels: Option<Labels>,
    /// Units of the labels.
    pub units: Option<String>,
    /// Set if the labels are times.
    pub time: Option<gristmill_client::TimeUnits>,
}

/// The values and texts of a picture.
pub struct Picture {
    /// The line above the picture, and a smaller one below the title.
    pub title: String,
    pub subtitle: String,
    /// Name of the values, beside the axis or the colour bar.
    pub quantity: String,
    /// One or two dimensions.
    pub dimensions: Vec<Dimension>,
    /// The values in C order. NaN is missing.
    pub values: Vec<f64>,
    /// The edges of the bins of a histogram: one more than values. Empty for other pictures.
    pub edges: Vec<f64>,
}

impl Picture {
    /// The bytes of a PNG.
    ///
    /// # Errors
    /// Returns an error if there are no values, or other than one or two dimensions.
    pub fn png(&self) -> Result<Vec<u8>, CliError> {
        let elements = self.dimensions.iter().try_fold(1usize, |all, one| all.checked_mul(one.length));
        if elements != Some(self.values.len()) || self.values.is_empty() {
            return Err(CliError::Usage("there is nothing to draw: the answer is empty".into()));
        }
        let mut canvas = Canvas::new(WIDTH, HEIGHT);
        match &self.dimensions[..] {
            [across] if self.edges.len() == self.values.len() + 1 => bars::draw(&mut canvas, self, across),
            [across] => line::draw(&mut canvas, self, across),
            [down, across] => map::draw(&mut canvas, self, down, across),
            _ => {
                return Err(CliError::Usage(format!(
                    "an answer of {} dimensions cannot be drawn",
                    self.dimensions.len()
                )));
            }
        }
        canvas.png()
    }

    /// The smallest and the largest finite value, widened if they are equal; `None` if no value is finite.
    fn range(&self) -> Option<(f64, f64)> {
        let finite = || self.values.iter().copied().filter(|x| x.is_finite());
        let (low, high) =
            (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
        match low.partial_cmp(&high)? {
            std::cmp::Ordering::Less => Some((low, high)),
            std::cmp::Ordering::Equal => {
                let apart = if low == 0.0 { 1.0 } else { low.abs() * 0.01 };
                Some((low - apart, high + apart))
            }
            std::cmp::Ordering::Greater => None,
        }
    }

    fn draw_titles(&self, canvas: &mut Canvas, frame: &Frame) {
        let middle = (frame.left + frame.right) / 2;
        canvas.text(&self.title, middle, frame.top - 40, canvas::Size::Large, canvas::Align::Middle);
        canvas.text(&self.subtitle, middle, frame.top - 18, canvas::Size::Small, canvas::Align::Middle);
    }
}

impl Dimension {
    /// Positions of the elements, and whether they are coordinates. They are if these ascend or descend; else they are
    /// indices.
    fn positions(&self) -> (Vec<f64>, bool) {
        let rises = |all: &[f64]| {
            all.windows(2).all(|pair| pair[0] < pair[1]) || all.windows(2).all(|pair| pair[0] > pair[1])
        };
        match self.labels.as_ref().and_then(Labels::floats) {
            Some(all) if all.len() == self.length && all.iter().all(|x| x.is_finite()) && rises(&all) => {
                (all, true)
            }
            _ => ((0..self.length).map(|i| i as f64).collect(), false),
        }
    }

    /// The title of the axis.
    fn title(&self) -> String {
        match &self.units {
            Some(units) if self.time.is_none() => format!("{} [{units}]", self.name),
            _ => self.name.clone(),
        }
    }
}
