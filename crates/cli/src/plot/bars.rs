//! Histograms: bars from zero, each as wide as its bin.

use super::canvas::{Canvas, Colour};
use super::frame::Frame;
use super::{Dimension, Picture, ticks};

const BAR: Colour = [31, 97, 148];

/// Widest bar without a gap beside it, in pixels. Gaps would hide narrower bars.
const TOUCHING: i32 = 6;

pub fn draw(canvas: &mut Canvas, picture: &Picture, across: &Dimension) {
    let most = picture.values.iter().copied().filter(|x| x.is_finite()).fold(0.0, f64::max);
    let high = if most > 0.0 { most * 1.05 } else { 1.0 };
    let ends = picture.edges.first().copied().zip(picture.edges.last().copied());
    let (first, last) = ends.filter(|(first, last)| first < last).unwrap_or((0.0, 1.0));
    let frame = Frame {
        left: 112,
        top: 62,
        right: canvas.width as i32 - 28,
        bottom: canvas.height as i32 - 62,
        x: (first, last),
        y: (0.0, high),
    };
    let below = frame.ticks_below(across, true);
    let beside = ticks::numbers(frame.y.0, frame.y.1, 9);
    // Bars hide the lines of the grid, and the frame is drawn over them.
    frame.draw(canvas, &below, &beside, true);
    for (value, edges) in picture.values.iter().zip(picture.edges.windows(2)) {
        let (from, to) = (frame.across(edges[0]).round() as i32, frame.across(edges[1]).round() as i32);
        let gap = i32::from(to - from > TOUCHING);
        let top = frame.up(value.max(0.0)).round() as i32;
        if value.is_finite() && top < frame.bottom {
            canvas.fill(from + gap..to.max(from + gap + 1), top..frame.bottom, BAR);
        }
    }
    frame.draw(canvas, &below, &beside, false);
    frame.draw_names(canvas, &across.title(), &picture.quantity, 92);
    picture.draw_titles(canvas, &frame);
}
