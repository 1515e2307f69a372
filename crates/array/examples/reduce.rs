//! Answers requests over raw arrays. Each line of standard input is a JSON object, each line of standard output an
//! answer.
//!
//! ```json
//! {"data": "x.raw", "shape": [4, 6], "chunk": [2, 3], "type": "f32", "op": "mean", "axes": [0], "seed": 7}
//! ```
//! `data` has the elements in C order, little-endian. They are cut into chunks, which are dealt to some folds in an
//! order drawn from `seed`, saved and merged: the answer may not depend on it. An answer is `{"result": {NAME: {"type",
//! "shape", "bytes"}}, "numerics"}` with the elements as hexadecimal digits, or `{"error"}`. The tests in Python use
//! it.

use std::error::Error;
use std::io::{BufRead, Write};

use gristmill_array::{
    ArrayReduce, Boundary, EdgeChunks, Exact, Factor, FactorType, Grid, Groups, Meaning, Op, Reduction,
    Request, Weights, Windows,
};
use gristmill_kernel::{Block, Ctx, Kernel, Next, NoRows, Value, saved};
use serde::Deserialize;
use serde_json::{Value as Json, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    data: String,
    shape: Vec<u64>,
    chunk: Vec<u64>,
    #[serde(default)]
    clipped: bool,
    r#type: String,
    #[serde(default)]
    missing: Vec<Json>,
    /// A number, and whether it is an f32.
    scale: Option<(f64, bool)>,
    offset: Option<(f64, bool)>,
    unsigned: Option<bool>,
    #[serde(default)]
    valid: (Option<Json>, Option<Json>),
    #[serde(default)]
    selection: String,
    expr: Option<String>,
    op: String,
    #[serde(default)]
    q: Vec<f64>,
    #[serde(default)]
    bins: Vec<f64>,
    axes: Option<Vec<i64>>,
    #[serde(default)]
    keepdims: bool,
    skipna: Option<bool>,
    #[serde(default)]
    ddof: u64,
    #[serde(default)]
    min_count: u64,
    #[serde(default)]
    weights: Vec<(i64, Vec<f64>)>,
    #[serde(default)]
    groups: Vec<(i64, Vec<i64>, u64)>,
    #[serde(default)]
    windows: Vec<(i64, u64, String)>,
    #[serde(default)]
    seed: u64,
}

fn exact(number: &Json) -> Result<Exact, String> {
    match number {
        Json::Number(n) if n.is_i64() || n.is_u64() => {
            n.to_string().parse().map(Exact::Int).map_err(|e| format!("{e}"))
        }
        Json::Number(n) => n.as_f64().map(Exact::Float).ok_or_else(|| format!("{n} is no f64")),
        Json::String(text) => text.parse().map(Exact::Float).map_err(|_| format!("{text} is no number")),
        other => Err(format!("{other} is no number")),
    }
}

impl Asked {
    fn op(&self) -> Result<Op, String> {
        Ok(match self.op.as_str() {
            "quantile" => Op::Quantile(self.q.clone()),
            "histogram" => Op::Histogram(self.bins.clone()),
            name => Op::named(name).ok_or_else(|| format!("there is no operation {name}"))?,
        })
    }

    fn request(&self) -> Result<Request, Box<dyn Error>> {
        let edges = if self.clipped { EdgeChunks::Clipped } else { EdgeChunks::Whole };
        let factor = |given: Option<(f64, bool)>| {
            given.map(|(value, single)| {
                let dtype = if single { FactorType::F32 } else { FactorType::F64 };
                Factor { value, dtype }
            })
        };
        let meaning = Meaning {
            unsigned: self.unsigned,
            missing: self.missing.iter().map(exact).collect::<Result<_, _>>()?,
            scale: factor(self.scale),
            offset: factor(self.offset),
            valid: (
                self.valid.0.as_ref().map(exact).transpose()?,
                self.valid.1.as_ref().map(exact).transpose()?,
            ),
            ..Meaning::plain(self.r#type.parse()?)
        };
        let windows = self.windows.iter().map(|(axis, length, boundary)| Windows {
            axis: *axis,
            length: *length,
            boundary: match boundary.as_str() {
                "exact" => Boundary::Exact,
                "trim" => Boundary::Trim,
                _ => Boundary::Pad,
            },
        });
        let weights =
            self.weights.iter().map(|(axis, values)| Weights { axis: *axis, values: values.clone() });
        let groups = self.groups.iter().map(|(axis, labels, count)| Groups {
            axis: *axis,
            labels: labels.clone(),
            count: *count,
        });
        Ok(Request {
            grid: Grid::new(self.shape.clone(), self.chunk.clone(), edges)?,
            meaning,
            others: Vec::new(),
            constants: Vec::new(),
            selection: self.selection.parse()?,
            expr: self.expr.as_deref().map(str::parse).transpose()?,
            reduction: Reduction {
                axes: self.axes.clone(),
                keepdims: self.keepdims,
                skipna: self.skipna,
                ddof: self.ddof,
                min_count: self.min_count,
                weights: weights.collect(),
                groups: groups.collect(),
                windows: windows.collect(),
                ..Reduction::new(self.op()?)
            },
        })
    }
}

/// Returns the bytes of a chunk of an array in C order. Elements outside the array get any bytes.
fn chunk(grid: &Grid, size: usize, data: &[u8], number: u64) -> Vec<u8> {
    let (origin, inside, stored) = (grid.origin(number), grid.clipped(number), grid.stored(number));
    let elements: u64 = stored.iter().product();
    let mut out = vec![0xa5; elements as usize * size];
    for n in 0..inside.iter().product::<u64>() {
        let (mut rest, mut from, mut to) = (n, 0, 0);
        let (mut from_stride, mut to_stride) = (1, 1);
        for axis in (0..origin.len()).rev() {
            let i = rest % inside[axis];
            rest /= inside[axis];
            from += (origin[axis] + i) * from_stride;
            to += i * to_stride;
            from_stride *= grid.shape()[axis];
            to_stride *= stored[axis];
        }
        let (from, to) = (from as usize * size, to as usize * size);
        out[to..to + size].copy_from_slice(&data[from..from + size]);
    }
    out
}

fn answer(line: &str) -> Result<Json, Box<dyn Error>> {
    let asked: Asked = serde_json::from_str(line)?;
    let request = asked.request()?;
    let data = std::fs::read(&asked.data)?;
    let (grid, size) = (request.grid.clone(), request.meaning.raw.size());
    if data.len() as u64 != grid.shape().iter().product::<u64>() * size as u64 {
        return Err("the file has not as many bytes as the shape".into());
    }
    let kernel = ArrayReduce::bind(request)?;
    let mut rng = fastrand::Rng::with_seed(asked.seed);
    let mut ctx = Ctx::first(0..grid.chunks());
    let value = loop {
        let mut numbers: Vec<u64> = kernel.chunks().collect();
        rng.shuffle(&mut numbers);
        let mut folds = (0..rng.usize(1..4)).map(|_| kernel.begin(&ctx)).collect::<Result<Vec<_>, _>>()?;
        for number in numbers {
            let at = rng.usize(0..folds.len());
            let fold = &mut folds[at];
            fold.update(&Block::new(number, 1, &chunk(&grid, size, &data, number)), &mut NoRows)?;
        }
        let mut whole = kernel.begin(&ctx)?;
        for fold in folds {
            whole.merge(&saved(&*fold), &mut NoRows)?;
        }
        match kernel.advance(&ctx, &saved(&*whole))? {
            Next::Done(value) => break value,
            Next::Again(shared) | Next::Last(shared) => ctx = ctx.next(shared),
        }
    };
    let mut result = serde_json::Map::new();
    if let Value::Map(entries) = &value {
        for (name, value) in entries {
            if let Value::Array(array) = value {
                let bytes: String = array.data.iter().map(|byte| format!("{byte:02x}")).collect();
                let array = json!({"type": array.dtype.name(), "shape": array.shape, "bytes": bytes});
                result.insert((*name).to_owned(), array);
            }
        }
    }
    Ok(json!({"result": result, "numerics": kernel.spec().numerics.to_string()}))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let said = answer(&line?).unwrap_or_else(|error| json!({"error": error.to_string()}));
        writeln!(out, "{said}")?;
        out.flush()?;
    }
    Ok(())
}
