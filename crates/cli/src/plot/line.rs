//! One dimension: a line through the values, with gaps for missing ones.

use gristmill_client::Labels;

use super::canvas::{Canvas, Colour};
use super::frame::Frame;
use super::{Dimension, Picture, ticks};

const LINE: Colour = [31, 97, 148];

/// Most elements for which each has a dot.
const DOTTED: usize = 60;

pub fn draw(canvas: &mut Canvas, picture: &Picture, across: &Dimension) {
    let (positions, by_coordinate) = across.positions();
    let (low, high) = picture.range().unwrap_or((0.0, 1.0));
    let margin = (high - low) * 0.05;
    let ends = |all: &[f64]| {
        (
            all.iter().copied().fold(f64::INFINITY, f64::min),
            all.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        )
    };
    let (first, last) = ends(&positions);
    // A single element has room on both sides.
    let aside = if first < last { (last - first) * 0.02 } else { 0.5 };
    let frame = Frame {
        left: 112,
        top: 62,
        right: canvas.width as i32 - 28,
        bottom: canvas.height as i32 - 62,
        x: (first - aside, last + aside),
        y: (low - margin, high + margin),
    };
    let below = frame.ticks_below(across, by_coordinate);
    let beside = ticks::numbers(frame.y.0, frame.y.1, 9);
    frame.draw(canvas, &below, &beside, true);
    frame.draw_names(canvas, &across.title(), &picture.quantity, 92);
    picture.draw_titles(canvas, &frame);
    let point = |i: usize| {
        let value = *picture.values.get(i)?;
        value.is_finite().then(|| (frame.across(positions[i]), frame.up(value)))
    };
    // Nothing lies between groups with names.
    let words = matches!(across.labels, Some(Labels::Texts(_)));
    for i in 0..positions.len() {
        let Some(point_here) = point(i) else { continue };
        match point(i + 1).filter(|_| i + 1 < positions.len() && !words) {
            Some(next) => canvas.stroke(point_here, next, 2.0, LINE),
            // A single value between missing ones is drawn as a dot.
            None => canvas.stroke(point_here, point_here, 2.0, LINE),
        }
        if positions.len() <= DOTTED {
            canvas.stroke(point_here, point_here, 6.0, LINE);
        }
    }
}
