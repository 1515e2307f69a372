//! The box of a plot: positions of numbers, ticks and their labels.

use super::Dimension;
use super::canvas::{Align, Canvas, FAINT, INK, Size};
use super::ticks::{self, Tick};

/// Length of a tick, and the gap between a tick and its label, in pixels.
const TICK: i32 = 5;
const GAP: i32 = 4;

/// A box, both corners included, and the numbers at its edges: at the left and right, at the bottom and top.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub left: i32,
    pub top: i32,
    pub right: i32,
    pub bottom: i32,
    pub x: (f64, f64),
    pub y: (f64, f64),
}

impl Frame {
    /// The pixel of a number, from left to right.
    pub fn across(&self, x: f64) -> f64 {
        f64::from(self.left) + (x - self.x.0) / (self.x.1 - self.x.0) * f64::from(self.right - self.left)
    }

    /// The pixel of a number, from bottom to top.
    pub fn up(&self, y: f64) -> f64 {
        f64::from(self.bottom) - (y - self.y.0) / (self.y.1 - self.y.0) * f64::from(self.bottom - self.top)
    }

    /// Ticks of a dimension along the bottom, as many as fit beside each other.
    pub fn ticks_below(&self, dimension: &Dimension, by_coordinate: bool) -> Vec<Tick> {
        let room = self.right - self.left;
        for most in (1..=12).rev() {
            let ticks =
                ticks::along(dimension, by_coordinate, self.x.0.min(self.x.1), self.x.0.max(self.x.1), most);
            let widest = ticks.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0) as i32;
            if ticks.len() as i32 * (widest + 2) * Size::Small.letter().0 <= room {
                return ticks;
            }
        }
        Vec::new()
    }

    /// Draws the edge and the ticks, and with `grid` faint lines.
    pub fn draw(&self, canvas: &mut Canvas, below: &[Tick], beside: &[Tick], grid: bool) {
        for (x, text) in below {
            let x = self.across(*x).round() as i32;
            if !(self.left..=self.right).contains(&x) {
                continue;
            }
            if grid {
                canvas.fill(x..x + 1, self.top..self.bottom, FAINT);
            }
            canvas.fill(x..x + 1, self.bottom..self.bottom + TICK + 1, INK);
            let below = self.bottom + TICK + GAP + Size::Small.letter().1 / 2;
            canvas.text(text, x, below, Size::Small, Align::Middle);
        }
        for (y, text) in beside {
            let y = self.up(*y).round() as i32;
            if !(self.top..=self.bottom).contains(&y) {
                continue;
            }
            if grid {
                canvas.fill(self.left..self.right, y..y + 1, FAINT);
            }
            canvas.fill(self.left - TICK..self.left, y..y + 1, INK);
            canvas.text(text, self.left - TICK - GAP, y, Size::Small, Align::End);
        }
        canvas.edge(self.left, self.top, self.right, self.bottom, INK);
    }

    /// Draws the names of both axes. The name of the vertical axis is `aside` pixels left of the box.
    pub fn draw_names(&self, canvas: &mut Canvas, below: &str, beside: &str, aside: i32) {
        let middle = (self.left + self.right) / 2;
        canvas.text(below, middle, self.bottom + 40, Size::Small, Align::Middle);
        canvas.text_upwards(beside, self.left - aside, (self.top + self.bottom) / 2, Size::Small);
    }
}
