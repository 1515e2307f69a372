//! `gaussian`: a Gaussian filter over an image, row by row (the heavy kernel of Chen et al. 2012, DOSAS).
//!
//! A record is a row. Rows before and after a block come as halo, from neighbours if they lie elsewhere. If the image
//! is continued with its other end (`mode=wrap`), a first pass collects the rows at both ends.

mod border;
mod filter;
mod plane;
mod summary;
mod weights;
mod wrap_rows;

use std::ops::Range;
use std::sync::Arc;

use self::border::Border;
use self::filter::{Filter, ROWS};
use self::summary::{ImageSummary, ImageSummaryFold};
use self::weights::Weights;
use self::wrap_rows::{Rows, WrapRowsFold, decode};
use super::sum::require_elements;
use crate::catalog::{Accepts, Declaration};
use crate::convert::{narrow, widen};
use crate::element::{Element, with_element};
use crate::state::StateReader;
use crate::{
    Block, Ctx, DType, Fold, Input, Kernel, KernelError, Next, Numerics, Order, Output, ParamDecl, ParamKind,
    Params, Passes, Position, Sink, Spec, Step, Value,
};

const NAME: &str = "gaussian";

/// Element types that the kernel filters.
const TYPES: [DType; 4] = [DType::U8, DType::U16, DType::F32, DType::F64];

/// Widest reach, in rows or pixels.
const MAX_RADIUS: usize = 4096;

pub(crate) const DECLARATION: Declaration = Declaration {
    name: NAME,
    summary: "an image, blurred with a Gaussian filter",
    details: "Types u8, u16, f32, f64. Each row has W pixels of C values, and each channel is filtered separately. \
              The result equals scipy.ndimage.gaussian_filter in f64 with the same sigma, mode, cval and truncate, \
              up to the last bits of the weights. f32 is rounded once at the end, integers to the nearest (ties to \
              even). mask=3x3 is the mask (1 2 1, 2 4 2, 1 2 1) / 16 instead. mode=wrap reads the image twice. The \
              image must be the whole file after --skip.",
    accepts: &[Accepts::Elements],
    params: &[
        ParamDecl {
            required: true,
            ..ParamDecl::text(
                "shape",
                None,
                "height, width and, if there are several, channels",
                "1080,1920,3",
            )
        },
        ParamDecl::text("sigma", Some("2"), "standard deviation in pixels, or two: down and along", "1.5"),
        ParamDecl {
            name: "mask",
            kind: ParamKind::Choice(&["gaussian", "3x3"]),
            default: Some("gaussian"),
            required: false,
            help: "weights by sigma, or the fixed mask of three by three",
            example: "3x3",
        },
        ParamDecl {
            name: "mode",
            kind: ParamKind::Choice(&["reflect", "mirror", "nearest", "wrap", "constant"]),
            default: Some("reflect"),
            required: false,
            help: "continuation of the image beyond its border, with SciPy's names",
            example: "nearest",
        },
        ParamDecl::text("cval", Some("0"), "the constant of mode=constant", "0"),
        ParamDecl::text("truncate", Some("4"), "where the filter ends, in standard deviations", "3"),
        ParamDecl {
            name: "result",
            kind: ParamKind::Choice(&["image", "summary"]),
            default: Some("image"),
            required: false,
            help: "the filtered image, or only its results of sum and minmax",
            example: "summary",
        },
    ],
    result: &[
        ("shape", "height, width, channels"),
        ("type", "type of the elements"),
        ("sum, count", "result of sum over the filtered image, with result=summary"),
        ("min, min_index, max, max_index", "result of minmax over the filtered image, with result=summary"),
    ],
    rows: Some("the filtered image, as bytes of the same type and shape; none with result=summary"),
    numerics: Numerics::Fixed,
    bind,
};

fn bind(params: &Params, input: &Input) -> Result<Arc<dyn Kernel>, KernelError> {
    let (dtype, record) = require_elements(NAME, input)?;
    if !TYPES.contains(&dtype) {
        let why = format!("filters u8, u16, f32 and f64, not {dtype}");
        return Err(KernelError::WrongInput { kernel: NAME, why });
    }
    let bad_shape = || params.refuse("shape", "give height,width or height,width,channels, each at least 1");
    let shape: Option<Vec<u64>> = params.text("shape").split(',').map(|n| n.trim().parse().ok()).collect();
    let shape = shape.filter(|shape| !shape.contains(&0)).ok_or_else(bad_shape)?;
    let (height, width, channels) = match shape[..] {
        [height, width] => (height, width, 1),
        [height, width, channels] => (height, width, channels),
        _ => return Err(bad_shape()),
    };
    let row = width.checked_mul(channels).and_then(|n| n.checked_mul(dtype.size() as u64));
    let row = row
        .filter(|row| *row <= MAX_ROW_BYTES && height < 1 << 48)
        .ok_or_else(|| params.refuse("shape", format!("a row may have at most {MAX_ROW_BYTES} bytes")))?;
    if record != row && record != dtype.size() as u64 {
        let why = format!("a row of this shape has {row} bytes, but records have {record}");
        return Err(params.refuse("shape", why));
    }
    let positive = |name: &'static str, text: &str| match text.trim().parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok(x),
        _ => Err(params.refuse(name, "it must be a number above 0, for example 1.5")),
    };
    let truncate = positive("truncate", params.text("truncate"))?;
    let weights = |text: &str| {
        let sigma = positive("sigma", text)?;
        let radius = (truncate * sigma + 0.5).floor();
        if radius > MAX_RADIUS as f64 {
            return Err(
                params.refuse("sigma", format!("the filter may reach at most {MAX_RADIUS} pixels far"))
            );
        }
        Ok(Weights::gaussian(sigma, radius as usize))
    };
    let (down, along) = match (params.text("mask"), params.text("sigma").split_once(',')) {
        ("3x3", _) => (Weights::mask_3x3(), Weights::mask_3x3()),
        (_, Some((down, along))) => (weights(down)?, weights(along)?),
        (_, None) => (weights(params.text("sigma"))?, weights(params.text("sigma"))?),
    };
    let border = match params.text("mode") {
        "mirror" => Border::Mirror,
        "nearest" => Border::Nearest,
        "wrap" => Border::Wrap,
        "constant" => match params.text("cval").parse::<f64>() {
            Ok(value) => Border::Constant(value),
            Err(_) => return Err(params.refuse("cval", "it must be a number, for example 0")),
        },
        _ => Border::Reflect,
    };
    let (width, channels) = (width as usize, channels as usize);
    let summary = (params.text("result") == "summary").then(|| ImageSummary::new(dtype, row)).transpose()?;
    Ok(Arc::new(Gaussian { dtype, row, height, width, channels, down, along, border, summary }))
}

/// Most bytes of rows that are filtered and emitted together. A longer row is emitted alone.
const MAX_BATCH_BYTES: u64 = 1 << 20;

/// Longest row, in bytes.
const MAX_ROW_BYTES: u64 = 16 << 20;

#[derive(Clone)]
struct Gaussian {
    dtype: DType,
    row: u64,
    height: u64,
    width: usize,
    channels: usize,
    down: Weights,
    along: Weights,
    border: Border,
    /// The summary, if the request is for a summary and not for the image.
    summary: Option<ImageSummary>,
}

impl Gaussian {
    /// Number of rows at each end that the filter needs at the other end.
    fn reach(&self) -> u64 {
        (self.down.radius() as u64).min(self.height)
    }

    fn wraps(&self) -> bool {
        self.border == Border::Wrap && self.down.radius() > 0
    }
}

impl Kernel for Gaussian {
    fn spec(&self) -> Spec {
        let wraps = self.wraps();
        let summary_hint = self.summary.as_ref().map_or(0, ImageSummary::state_hint);
        Spec {
            halo: self.down.radius() as u64,
            order: Order::Any,
            numerics: Numerics::Fixed,
            output: if self.summary.is_some() { Output::Value } else { Output::Bytes },
            passes: if wraps { Passes::Several } else { Passes::One },
            state_hint: if wraps { 2 * self.reach() * (self.row + 8) } else { summary_hint },
            ..Spec::fixed(NAME, self.row)
        }
    }

    fn begin(&self, ctx: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        let rows = ctx.extent.end - ctx.extent.start;
        if rows != self.height || ctx.extent.start != 0 {
            let why = format!(
                "the shape says {} rows of {} bytes, but the selection has {rows}; select the whole image",
                self.height, self.row
            );
            return Err(KernelError::Domain { kernel: NAME, why });
        }
        if self.wraps() && ctx.round == 0 {
            return Ok(Box::new(WrapRowsFold::new(self.height, self.reach())));
        }
        let wrap_rows = if self.wraps() { decode(&ctx.shared, self.row)? } else { Rows::new() };
        let (down, along) = (self.down.clone(), self.along.clone());
        let filter = Filter::new(self.height as i64, self.width, self.channels, down, along, self.border);
        let summary = self.summary.as_ref().map(|summary| summary.begin(ctx)).transpose()?;
        let (kernel, filtered) = (self.clone(), Vec::new());
        Ok(Box::new(GaussianFold { kernel, wrap_rows, filter, filtered, refused: 0..0, summary }))
    }

    fn advance(&self, ctx: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        if self.wraps() && ctx.round == 0 {
            decode(whole, self.row)?;
            let wrap_rows = whole.to_vec();
            return Ok(if self.summary.is_some() { Next::Again(wrap_rows) } else { Next::Last(wrap_rows) });
        }
        let shape = [self.height, self.width as u64, self.channels as u64];
        let shape = if self.channels == 1 { &shape[..2] } else { &shape };
        let shape = Value::List(shape.iter().map(|n| Value::from(*n)).collect());
        let mut entries = vec![("shape", shape), ("type", Value::Text(self.dtype.name().into()))];
        if let Some(summary) = &self.summary {
            entries.extend(summary.advance(ctx, whole)?);
        }
        Ok(Next::Done(Value::Map(entries)))
    }
}

struct GaussianFold {
    kernel: Gaussian,
    wrap_rows: Rows,
    filter: Filter,
    /// Filtered rows, as bytes.
    filtered: Vec<u8>,
    /// Numbers of the rows in `filtered` if a full sink refused them. The state does not contain them, because a
    /// restored fold makes the same bytes again.
    refused: Range<u64>,
    /// The fold of the summary, if the request is for a summary. Then the fold emits no rows.
    summary: Option<ImageSummaryFold>,
}

impl GaussianFold {
    /// Filters the rows `numbers` of a block.
    fn filter_rows(&mut self, block: &Block<'_>, numbers: &Range<u64>) {
        let row = self.kernel.row as usize;
        let before = (block.before().len() / row) as u64;
        let first = (block.first() - before) as i64;
        let rows = block.bytes_with_halo();
        let (from, end) = (numbers.start as i64, numbers.end as i64);
        let (wrap_rows, filtered) = (&self.wrap_rows, &mut self.filtered);
        filtered.resize((end - from) as usize * row, 0);
        with_element!(self.kernel.dtype, T => {
            let read = |at: i64, out: &mut [f64]| {
                let near = usize::try_from(at - first).ok().and_then(|n| rows.get(n * row..(n + 1) * row));
                match near.or_else(|| wrap_rows.get(&(at as u64)).map(Vec::as_slice)) {
                    Some(bytes) => widen::<T>(bytes, out),
                    None => out.fill(0.0),
                }
            };
            let mut at = 0;
            let emit = |values: &[f64]| {
                let end = at + values.len() * T::SIZE;
                narrow::<T>(values, &mut filtered[at..end]);
                at = end;
            };
            self.filter.filter_rows(from, end, read, emit);
        });
    }
}

impl Fold for GaussianFold {
    fn update(&mut self, block: &Block<'_>, sink: &mut dyn Sink) -> Result<Step, KernelError> {
        let count = (MAX_BATCH_BYTES / self.kernel.row).clamp(1, ROWS as u64);
        for from in (block.first()..block.end()).step_by(count as usize) {
            let rows = from..block.end().min(from + count);
            if self.refused != rows {
                self.filter_rows(block, &rows);
            }
            self.refused = 0..0;
            if let Some(summary) = &mut self.summary {
                summary.take(from, rows.end - from, &self.filtered)?;
                continue;
            }
            if sink.put(Position::of_record(from), &self.filtered).is_err() {
                self.refused = rows;
                return Ok(Step::Full(from - block.first()));
            }
        }
        Ok(Step::Took(block.count()))
    }

    fn save(&self, out: &mut Vec<u8>) {
        if let Some(summary) = &self.summary {
            summary.save(out);
        }
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        match &mut self.summary {
            Some(summary) => summary.merge(later),
            None => StateReader::new(NAME, later).end(),
        }
    }
}
