//! Pixels, and the shapes that are drawn on them.

use std::convert::Infallible;

use embedded_graphics::draw_target::DrawTarget;
use embedded_graphics::geometry::{OriginDimensions, Point, Size as Extent};
use embedded_graphics::mono_font::{MonoFont, MonoTextStyle, iso_8859_1};
use embedded_graphics::pixelcolor::BinaryColor;
use embedded_graphics::text::{Baseline, Text};
use embedded_graphics::{Drawable, Pixel};

use crate::error::CliError;

/// Red, green, blue.
pub type Colour = [u8; 3];

pub const WHITE: Colour = [255, 255, 255];
pub const INK: Colour = [34, 34, 34];
pub const FAINT: Colour = [226, 226, 226];

/// Sizes of letters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Size {
    Small,
    Large,
}

impl Size {
    const fn font(self) -> &'static MonoFont<'static> {
        match self {
            Size::Small => &iso_8859_1::FONT_8X13,
            Size::Large => &iso_8859_1::FONT_10X20,
        }
    }

    /// Width and height of a letter.
    pub const fn letter(self) -> (i32, i32) {
        let size = self.font().character_size;
        (size.width as i32, size.height as i32)
    }
}

/// The part of a text that is at the given x.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Start,
    Middle,
    End,
}

pub struct Canvas {
    pub width: usize,
    pub height: usize,
    pixels: Vec<Colour>,
}

impl Canvas {
    pub fn new(width: usize, height: usize) -> Canvas {
        Canvas { width, height, pixels: vec![WHITE; width * height] }
    }

    /// Mixes a colour into a pixel; a `share` of 1 replaces the old colour. Pixels outside the canvas are ignored.
    pub fn blend(&mut self, x: i32, y: i32, colour: Colour, share: f64) {
        let inside = usize::try_from(x).ok().zip(usize::try_from(y).ok());
        let Some((x, y)) = inside.filter(|(x, y)| *x < self.width && *y < self.height) else { return };
        for (old, new) in self.pixels[y * self.width + x].iter_mut().zip(colour) {
            *old = (f64::from(*old) + (f64::from(new) - f64::from(*old)) * share).round() as u8;
        }
    }

    pub fn set(&mut self, x: i32, y: i32, colour: Colour) {
        self.blend(x, y, colour, 1.0);
    }

    /// Fills a rectangle. The ends of both ranges are excluded.
    pub fn fill(&mut self, x: std::ops::Range<i32>, y: std::ops::Range<i32>, colour: Colour) {
        for y in y {
            x.clone().for_each(|x| self.set(x, y, colour));
        }
    }

    /// Draws the edge of a rectangle, both corners included.
    pub fn edge(&mut self, left: i32, top: i32, right: i32, bottom: i32, colour: Colour) {
        for (x, y) in [(left..right + 1, top), (left..right + 1, bottom)] {
            self.fill(x, y..y + 1, colour);
        }
        for (x, y) in [(left, top..bottom + 1), (right, top..bottom + 1)] {
            self.fill(x..x + 1, y, colour);
        }
    }

    /// Draws a line with soft edges and round ends. A line of zero length is a dot.
    pub fn stroke(&mut self, from: (f64, f64), to: (f64, f64), width: f64, colour: Colour) {
        let reach = width / 2.0 + 1.0;
        let across = |a: f64, b: f64| ((a.min(b) - reach).floor() as i32, (a.max(b) + reach).ceil() as i32);
        let ((left, right), (top, bottom)) = (across(from.0, to.0), across(from.1, to.1));
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx * dx + dy * dy;
        for y in top..=bottom {
            for x in left..=right {
                let (px, py) = (f64::from(x) - from.0, f64::from(y) - from.1);
                let along = if length > 0.0 { ((px * dx + py * dy) / length).clamp(0.0, 1.0) } else { 0.0 };
                let (ex, ey) = (px - along * dx, py - along * dy);
                let cover = width / 2.0 + 0.5 - (ex * ex + ey * ey).sqrt();
                if cover > 0.0 {
                    self.blend(x, y, colour, cover.min(1.0));
                }
            }
        }
    }

    /// Draws a text. Its height is centred at `y`.
    pub fn text(&mut self, text: &str, x: i32, y: i32, size: Size, align: Align) {
        let (letter, height) = size.letter();
        let width = text.chars().count() as i32 * letter;
        let left = match align {
            Align::Start => x,
            Align::Middle => x - width / 2,
            Align::End => x - width,
        };
        self.letters(text, size, |dx, dy| (left + dx, y - height / 2 + dy));
    }

    /// Draws a text that reads upwards, centred at a point.
    pub fn text_upwards(&mut self, text: &str, x: i32, y: i32, size: Size) {
        let (letter, height) = size.letter();
        let width = text.chars().count() as i32 * letter;
        self.letters(text, size, |dx, dy| (x - height / 2 + dy, y + width / 2 - dx));
    }

    fn letters(&mut self, text: &str, size: Size, place: impl Fn(i32, i32) -> (i32, i32)) {
        let mut ink = Ink { canvas: self, place };
        let style = MonoTextStyle::new(size.font(), BinaryColor::On);
        let text = Text::with_baseline(text, Point::zero(), style, Baseline::Top);
        // It cannot fail: pixels outside are ignored.
        let _: Result<Point, Infallible> = text.draw(&mut ink);
    }

    /// The bytes of a PNG.
    pub fn png(&self) -> Result<Vec<u8>, CliError> {
        let failed = |error: png::EncodingError| CliError::Output(error.into());
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(failed)?;
        writer.write_image_data(self.pixels.as_flattened()).map_err(failed)?;
        writer.finish().map_err(failed)?;
        Ok(out)
    }
}

/// A target for letters. `place` maps their pixels to the canvas, and so can turn them.
struct Ink<'a, P> {
    canvas: &'a mut Canvas,
    place: P,
}

impl<P> OriginDimensions for Ink<'_, P> {
    fn size(&self) -> Extent {
        Extent::new(u32::MAX / 2, u32::MAX / 2)
    }
}

impl<P: Fn(i32, i32) -> (i32, i32)> DrawTarget for Ink<'_, P> {
    type Color = BinaryColor;
    type Error = Infallible;

    fn draw_iter<I: IntoIterator<Item = Pixel<BinaryColor>>>(&mut self, pixels: I) -> Result<(), Infallible> {
        for Pixel(at, colour) in pixels {
            if colour == BinaryColor::On {
                let (x, y) = (self.place)(at.x, at.y);
                self.canvas.set(x, y, INK);
            }
        }
        Ok(())
    }
}
