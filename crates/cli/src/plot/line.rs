//! One dimension: a line through its numbers, broken where they are missing.

use gristmill_client::Labels;

use super::canvas::{Canvas, Colour};
use super::frame::Frame;
use super::{Dimension, Picture, ticks};

const LINE: Colour = [31, 97, 148];

/// Most elements that have a dot each.
const DOTTED: usize = 60;

pub fn draw(canvas: &mut Canvas, picture: &Picture, across: &Dimension) {
    let (places, true_places) = across.places();
    let (low, high) = picture.range().unwrap_or((0.0, 1.0));
    let margin = (high - low) * 0.05;
    let ends = |all: &[f64]| {
        (
            all.iter().copied().fold(f64::INFINITY, f64::min),
            all.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        )
    };
    let (first, last) = ends(&places);
    // A single place has room on both sides.
    let aside = if first < last { (last - first) * 0.02 } else { 0.5 };
    let frame = Frame {
        left: 112,
        top: 62,
        right: canvas.width as i32 - 28,
        bottom: canvas.height as i32 - 62,
        x: (first - aside, last + aside),
        y: (low - margin, high + margin),
    };
    let below = frame.ticks_below(across, true_places);
    let beside = ticks::numbers(frame.y.0, frame.y.1, 9);
    frame.draw(canvas, &below, &beside, true);
    frame.names(canvas, &across.title(), &picture.quantity, 92);
    picture.titles(canvas, &frame);
    let point = |i: usize| {
        let value = *picture.values.get(i)?;
        value.is_finite().then(|| (frame.across(places[i]), frame.up(value)))
    };
    // Between groups that have words for names there is nothing.
    let words = matches!(across.labels, Some(Labels::Texts(_)));
    for i in 0..places.len() {
        let Some(here) = point(i) else { continue };
        match point(i + 1).filter(|_| i + 1 < places.len() && !words) {
            Some(next) => canvas.stroke(here, next, 2.0, LINE),
            // One between two that are missing would not be seen.
            None => canvas.stroke(here, here, 2.0, LINE),
        }
        if places.len() <= DOTTED {
            canvas.stroke(here, here, 6.0, LINE);
        }
    }
}
