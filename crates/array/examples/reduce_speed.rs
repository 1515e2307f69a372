//! Speed of reductions of one core over chunks in memory, in GB/s of stored bytes: without statistics, and while making
//! the statistics of each chunk.
//!
//! `cargo run --release -p gristmill-array --example reduce_speed`

use std::error::Error;
use std::time::Instant;

use gristmill_array::{ArrayReduce, EdgeChunks, Exact, Grid, Meaning, Op, Reduction, Request, Selection};
use gristmill_kernel::{Block, Ctx, DType, Kernel, NoRows, Summary};

/// Number of passes, of which the fastest counts.
const REPEATS: usize = 7;

fn main() -> Result<(), Box<dyn Error>> {
    let (shape, chunk) = (vec![256u64, 256, 512], vec![32u64, 128, 512]);
    for (dtype, missing) in [(DType::F32, false), (DType::F32, true), (DType::F64, false), (DType::I16, true)]
    {
        let mut rng = fastrand::Rng::with_seed(1);
        let elements: u64 = chunk.iter().product();
        let mut data = Vec::new();
        for _ in 0..elements {
            let x = if rng.u8(0..8) == 0 { 1e20 } else { 250.0 + rng.f64() };
            match dtype {
                DType::F32 => data.extend((x as f32).to_le_bytes()),
                DType::F64 => data.extend(x.to_le_bytes()),
                _ => data.extend((x as i16).to_le_bytes()),
            }
        }
        for (op, axes, expr) in [
            (Op::Mean, vec![0], None),
            (Op::Mean, vec![1, 2], None),
            (Op::Mean, vec![0, 1, 2], None),
            (Op::Max, vec![0], None),
            (Op::Max, vec![0, 1, 2], None),
            (Op::Count, vec![0, 1, 2], None),
            (Op::Any, vec![0, 1, 2], Some("x > 300")),
            (Op::Std, vec![0], None),
            (Op::Mean, vec![0], Some("x - 273.15")),
        ] {
            let grid = Grid::new(shape.clone(), chunk.clone(), EdgeChunks::Whole)?;
            let mut meaning = Meaning::plain(dtype);
            if missing {
                meaning.missing =
                    vec![if dtype == DType::I16 { Exact::Int(32767) } else { Exact::Float(1e20) }];
            }
            let request = Request {
                grid: grid.clone(),
                meaning,
                others: Vec::new(),
                constants: Vec::new(),
                selection: Selection::default(),
                expr: expr.map(str::parse).transpose()?,
                reduction: Reduction::new(op.clone()).over(&axes),
            };
            let kernel = ArrayReduce::bind(request)?;
            let ctx = Ctx::first(0..grid.chunks());
            let welcome = |thorough| Summary::Requested { known: None, thorough };
            let mut best = [f64::INFINITY; 3];
            for _ in 0..REPEATS {
                for (best, summary) in best.iter_mut().zip([Summary::None, welcome(false), welcome(true)]) {
                    let start = Instant::now();
                    let mut fold = kernel.begin(&ctx)?;
                    for number in 0..grid.chunks() {
                        let block = Block::new(number, 1, &data).with_summary(summary);
                        fold.update(&block, &mut NoRows)?;
                    }
                    *best = best.min(start.elapsed().as_secs_f64());
                }
            }
            let bytes = grid.chunks() as f64 * data.len() as f64;
            let what = if missing { "with missing" } else { "" };
            println!(
                "{:8} over {axes:?} of {dtype} {what} {}: {:.2} GB/s; {:.2} with statistics ({:+.0} %), {:.2} thorough",
                op.name(),
                expr.unwrap_or(""),
                bytes / best[0] / 1e9,
                bytes / best[1] / 1e9,
                (best[1] / best[0] - 1.0) * 100.0,
                bytes / best[2] / 1e9,
            );
        }
    }
    Ok(())
}
