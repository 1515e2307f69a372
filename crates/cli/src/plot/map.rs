//! Two dimensions: a coloured cell for each value, and a colour bar. Coordinates ascend to the right and upwards, so
//! that north is up.

use super::canvas::{Align, Canvas, Colour, INK, Size, WHITE};
use super::colours::{MISSING, table};
use super::frame::Frame;
use super::{Dimension, Picture, ticks};

/// Width of the colour bar, and its distance from the map, in pixels.
const BAR: i32 = 20;
const BAR_GAP: i32 = 24;

/// Room around the map, in pixels.
const LEFT: i32 = 116;
const TOP: i32 = 62;
const RIGHT: i32 = 140;
const BOTTOM: i32 = 62;

pub fn draw(canvas: &mut Canvas, picture: &Picture, down: &Dimension, across: &Dimension) {
    let ((rows, rows_by_coordinate), (columns, columns_by_coordinate)) =
        (down.positions(), across.positions());
    let (y_edges, x_edges) = (edges(&rows, down), edges(&columns, across));
    let ends = |all: &[f64]| match (all.first(), all.last()) {
        (Some(a), Some(b)) => (a.min(*b), a.max(*b)),
        _ => (0.0, 1.0),
    };
    let (x, y) = (ends(&x_edges), ends(&y_edges));
    let (right, bottom) = (canvas.width as i32 - RIGHT, canvas.height as i32 - BOTTOM);
    let mut frame = Frame { left: LEFT, top: TOP, right, bottom, x, y };
    if degrees(down) && degrees(across) && rows_by_coordinate && columns_by_coordinate {
        frame = square_degrees(frame);
    }
    let colours = table();
    let range = picture.range();
    let colour = |value: f64| match range {
        _ if value.is_nan() => MISSING,
        Some((low, high)) => {
            colours[(((value - low) / (high - low)).clamp(0.0, 1.0) * 255.0).round() as usize]
        }
        None => MISSING,
    };
    let pixels = |from: i32, to: i32, ends: (f64, f64), edges: &[f64]| -> Vec<Option<usize>> {
        let count = f64::from(to - from + 1);
        let number = |i: i32| ends.0 + (f64::from(i) + 0.5) / count * (ends.1 - ends.0);
        (0..to - from + 1).map(|i| cell(edges, number(i))).collect()
    };
    let at_x = pixels(frame.left, frame.right, frame.x, &x_edges);
    let at_y = pixels(frame.top, frame.bottom, frame.y, &y_edges);
    for (y, row) in (frame.top..).zip(at_y.iter().rev()) {
        for (x, column) in (frame.left..).zip(&at_x) {
            let value =
                row.zip(*column).and_then(|(row, column)| picture.values.get(row * columns.len() + column));
            canvas.set(x, y, value.map_or(WHITE, |value| colour(*value)));
        }
    }
    let below = frame.ticks_below(across, columns_by_coordinate);
    let beside = ticks::along(down, rows_by_coordinate, y.0, y.1, 9);
    frame.draw(canvas, &below, &beside, false);
    let widest = beside.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0) as i32;
    let aside = (widest * Size::Small.letter().0 + 26).min(frame.left - 8);
    frame.draw_names(canvas, &across.title(), &down.title(), aside);
    picture.draw_titles(canvas, &frame);
    bar(canvas, &frame, picture, range, &colours);
}

fn bar(
    canvas: &mut Canvas,
    map: &Frame,
    picture: &Picture,
    range: Option<(f64, f64)>,
    colours: &[Colour; 256],
) {
    let (left, right) = (map.right + BAR_GAP, map.right + BAR_GAP + BAR);
    let Some(ends) = range else {
        canvas.fill(left..right + 1, map.top..map.bottom + 1, MISSING);
        canvas.text("all missing", right + 8, (map.top + map.bottom) / 2, Size::Small, Align::Start);
        return canvas.edge(left, map.top, right, map.bottom, INK);
    };
    let height = f64::from((map.bottom - map.top).max(1));
    for y in map.top..=map.bottom {
        let share = f64::from(map.bottom - y) / height;
        canvas.fill(left..right + 1, y..y + 1, colours[(share * 255.0).round() as usize]);
    }
    let scale = Frame { left, right, y: ends, ..*map };
    let mut widest = 0;
    for (value, text) in ticks::numbers(ends.0, ends.1, 9) {
        let y = scale.up(value).round() as i32;
        canvas.fill(right + 1..right + 6, y..y + 1, INK);
        canvas.text(&text, right + 10, y, Size::Small, Align::Start);
        widest = widest.max(text.chars().count() as i32);
    }
    canvas.edge(left, map.top, right, map.bottom, INK);
    let (letter, height) = Size::Small.letter();
    let aside = (right + 10 + widest * letter + height).min(canvas.width as i32 - height / 2 - 1);
    canvas.text_upwards(&picture.quantity, aside, (map.top + map.bottom) / 2, Size::Small);
}

/// Shrinks a frame so that a degree has the same length in both directions.
fn square_degrees(frame: Frame) -> Frame {
    let (wide, high) = (frame.x.1 - frame.x.0, frame.y.1 - frame.y.0);
    let (width, height) = (f64::from(frame.right - frame.left), f64::from(frame.bottom - frame.top));
    let degree = (width / wide).min(height / high);
    // A narrow strip stays visible.
    let (new_width, new_height) = ((degree * wide).max(120.0) as i32, (degree * high).max(120.0) as i32);
    let (left, top) = (frame.left, frame.top);
    let space = ((width as i32 - new_width) / 2, (height as i32 - new_height) / 2);
    Frame {
        left: left + space.0,
        right: left + space.0 + new_width,
        top: top + space.1,
        bottom: top + space.1 + new_height,
        ..frame
    }
}

fn degrees(dimension: &Dimension) -> bool {
    dimension.units.as_ref().is_some_and(|units| units.starts_with("degree"))
}

/// Edges of cells: midway between their positions. Cells of latitude end at the poles.
fn edges(positions: &[f64], dimension: &Dimension) -> Vec<f64> {
    let [first, .., last] = positions else {
        return positions.iter().flat_map(|x| [x - 0.5, x + 0.5]).collect();
    };
    let between = positions.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0);
    let inner: Vec<f64> = between.collect();
    let ends = (first - (inner[0] - first), last + (last - inner[inner.len() - 1]));
    let north = dimension.units.as_ref().is_some_and(|units| units.starts_with("degrees_north"));
    let at = |x: f64| if north { x.clamp(-90.0, 90.0) } else { x };
    [ends.0].into_iter().chain(inner).chain([ends.1]).map(at).collect()
}

/// Index of the cell that contains a number.
fn cell(edges: &[f64], x: f64) -> Option<usize> {
    let ascends = edges.first() <= edges.last();
    let before = edges.partition_point(|edge| if ascends { *edge <= x } else { *edge > x });
    (1..edges.len()).contains(&before).then(|| before - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_meet_midway() {
        let plain = |units: Option<&str>| Dimension {
            name: "x".into(),
            length: 3,
            labels: None,
            units: units.map(str::to_owned),
            time: None,
        };
        assert_eq!(edges(&[1.0, 2.0, 4.0], &plain(None)), [0.5, 1.5, 3.0, 5.0]);
        assert_eq!(edges(&[7.0], &plain(None)), [6.5, 7.5]);
        assert_eq!(edges(&[90.0, 0.0, -90.0], &plain(Some("degrees_north"))), [90.0, 45.0, -45.0, -90.0]);
        let down = [5.0, 3.0, 1.5, 0.5];
        assert_eq!(
            [6.0, 4.0, 2.0, 1.0, 0.0].map(|x| cell(&down, x)),
            [None, Some(0), Some(1), Some(2), None]
        );
        assert_eq!([0.0, 2.0, 4.0].map(|x| cell(&[0.5, 1.5, 3.0], x)), [None, Some(1), None]);
    }
}
