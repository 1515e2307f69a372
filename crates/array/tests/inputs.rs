//! Expressions over several variables and constants: the laws, and the answers for one variable that holds the results.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use gristmill_array::*;
use gristmill_conformance::{Case, check};
use gristmill_kernel::{ArrayType, Block, Ctx, DType, Input, Kernel, Next, NoRows, Value, saved};
use proptest::prelude::*;

const F64: ArrayType = ArrayType::Number(DType::F64);

fn constant(lengths: &[u64], values: &[f64]) -> Constant {
    let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    Constant { dtype: F64, lengths: lengths.to_vec(), bytes }
}

/// Attributes of a variable in tenths, where 0 means missing.
fn packed() -> Meaning {
    let mut meaning = Meaning::plain(DType::I16);
    meaning.missing = vec![Exact::Int(0)];
    meaning.scale = Some(Factor { value: 0.5, dtype: FactorType::F32 });
    meaning
}

/// Elements of an `f32` variable with missing values, and of an `i16` variable.
fn pair(rng: &mut fastrand::Rng) -> (f32, i16) {
    let x = if rng.u8(0..9) == 0 { f32::NAN } else { rng.f32() * 50.0 - 20.0 };
    (x, if rng.u8(0..9) == 0 { 0 } else { rng.i16(-99..99) })
}

fn request(
    grid: Grid,
    selection: &str,
    expr: &str,
    constants: Vec<Constant>,
    reduction: Reduction,
) -> Request {
    Request {
        grid,
        meaning: Meaning::plain(DType::F32),
        others: vec![packed()],
        constants,
        selection: selection.parse().unwrap(),
        expr: Some(Expr::parse(expr, &["x", "y", "c", "mask"]).unwrap()),
        reduction,
    }
}

fn mask(lengths: &[u64], rng: &mut fastrand::Rng) -> Constant {
    let count = lengths.iter().product::<u64>();
    let bytes = (0..count).map(|_| u8::from(rng.bool())).collect();
    Constant { dtype: ArrayType::Bool, lengths: lengths.to_vec(), bytes }
}

#[test]
fn the_laws_hold_for_several_inputs() {
    let mut rng = fastrand::Rng::with_seed(5);
    for chunk in [vec![2, 3, 6], vec![1, 7, 2]] {
        for op in [Op::Sum, Op::ArgMin, Op::Moments, Op::Quantile(vec![0.3])] {
            let grid = Grid::new(vec![5, 7, 6], chunk.clone(), EdgeChunks::Whole).unwrap();
            let elements = grid.chunk_elements();
            let mut data = Vec::new();
            for _ in 0..grid.chunks() {
                let both: Vec<(f32, i16)> = (0..elements).map(|_| pair(&mut rng)).collect();
                both.iter().for_each(|(x, _)| data.extend(x.to_le_bytes()));
                both.iter().for_each(|(_, y)| data.extend(y.to_le_bytes()));
            }
            let values: Vec<f64> = (0..42).map(f64::from).collect();
            let constants = vec![constant(&[1, 7, 6], &values), mask(&[5, 1, 1], &mut rng)];
            let reduction = Reduction::new(op).over(&[0]);
            let kernel = request(grid, "", "where(mask, x * y, x) - c", constants, reduction);
            let kernel = Arc::new(ArrayReduce::bind(kernel).unwrap());
            let input = Input::typed_records(DType::F32, elements * 6).unwrap();
            if let Err(broken) = check(&Case::new(kernel, input, data), 11, 3) {
                panic!("{broken}");
            }
        }
    }
}

/// Cuts whole arrays into chunks and folds them. The arrays are given by the element at each place.
fn folded(kernel: &ArrayReduce, grid: &Grid, columns: &[&dyn Fn(usize) -> Vec<u8>]) -> Value {
    let ctx = Ctx::first(0..grid.chunks());
    let mut fold = kernel.begin(&ctx).unwrap();
    for number in kernel.chunks() {
        let (origin, inside, held) = (grid.origin(number), grid.clipped(number), grid.stored(number));
        let mut record = Vec::new();
        for column in columns {
            for i in 0..held.iter().product::<u64>() {
                let (mut rest, mut place, mut scale, mut out) = (i, 0, 1, false);
                for axis in (0..held.len()).rev() {
                    let at = rest % held[axis];
                    rest /= held[axis];
                    out |= at >= inside[axis];
                    place += (origin[axis] + at) * scale;
                    scale *= grid.shape()[axis];
                }
                // Elements outside the array have no meaning.
                let bytes = column(if out { 0 } else { place as usize });
                record.extend(bytes.iter().map(|byte| if out { 0x55 } else { *byte }));
            }
        }
        fold.update(&Block::new(number, 1, &record), &mut NoRows).unwrap();
    }
    match kernel.advance(&ctx, &saved(&*fold)).unwrap() {
        Next::Done(value) => value,
        _ => panic!("one pass"),
    }
}

fn lengths(shape: &[u64], which: u8) -> Vec<u64> {
    shape.iter().enumerate().map(|(axis, n)| if which >> axis & 1 == 1 { *n } else { 1 }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// An expression over several inputs gives the answer of one variable that holds its results.
    #[test]
    fn several_inputs_are_as_their_result(
        shape in prop::collection::vec(1u64..9, 1..4),
        chunk in prop::collection::vec(1u64..6, 3),
        (clipped, first, step) in (any::<bool>(), 0u64..4, 1u64..4),
        (c_axes, mask_axes, axes, seed) in (any::<u8>(), any::<u8>(), 0u8..8, any::<u64>()),
        op in prop::sample::select(vec![Op::Sum, Op::Mean, Op::Count, Op::Max, Op::ArgMax, Op::Moments]),
        windowed in any::<bool>(),
    ) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let edges = if clipped { EdgeChunks::Clipped } else { EdgeChunks::Whole };
        let grid = Grid::new(shape.clone(), chunk[..shape.len()].to_vec(), edges).unwrap();
        let elements = shape.iter().product::<u64>() as usize;
        let both: Vec<(f32, i16)> = (0..elements).map(|_| pair(&mut rng)).collect();
        let selection = format!("{}::{step}", first.min(shape[0] - 1));
        let selected = selection.parse::<Selection>().unwrap().resolve(&grid).unwrap();
        let taken = selected.shape();
        let c_lengths = lengths(&taken, c_axes);
        let values: Vec<f64> = (0..c_lengths.iter().product::<u64>()).map(|_| rng.f64() * 9.0).collect();
        let truth = mask(&lengths(&taken, mask_axes), &mut rng);
        let reduced: Vec<i64> =
            (0..shape.len() as i64).filter(|axis| axes >> axis & 1 == 1 && !(windowed && *axis == 0)).collect();
        let mut reduction = Reduction { min_count: 1, ..Reduction::new(op.clone()) }.over(&reduced);
        if windowed && op != Op::ArgMax {
            reduction.windows = vec![Windows { axis: 0, length: 2, boundary: Boundary::Pad }];
        }
        // If all are missing there is no position.
        if op == Op::ArgMax {
            reduction.skipna = Some(false);
        }
        // Compares the answers element by element.
        let at = |lengths: &[u64], place: usize| {
            let (mut rest, mut at, mut scale) = (place as u64, 0, 1);
            for axis in (0..shape.len()).rev() {
                let mut index = rest % shape[axis];
                rest /= shape[axis];
                if axis == 0 {
                    // Elements that are not selected are not compared.
                    index = index.saturating_sub(selected.axes[0].first) / step;
                }
                if lengths[axis] > 1 {
                    at += index.min(lengths[axis] - 1) * scale;
                    scale *= lengths[axis];
                }
            }
            at as usize
        };
        let result = |place: usize| {
            let (x, y) = both[place];
            let y = if y == 0 { f32::NAN } else { f32::from(y) * 0.5 };
            let picked = if truth.bytes[at(&truth.lengths, place)] == 1 { x * y } else { x };
            f64::from(picked) - values[at(&c_lengths, place)]
        };
        let plain = ArrayReduce::bind(Request {
            grid: Grid::whole(shape.clone()).unwrap(),
            meaning: Meaning::plain(DType::F64),
            others: Vec::new(),
            constants: Vec::new(),
            selection: selection.parse().unwrap(),
            expr: None,
            reduction: reduction.clone(),
        });
        let plain = plain.unwrap();
        let expected = folded(&plain, &Grid::whole(shape.clone()).unwrap(), &[&|i| result(i).to_le_bytes().into()]);
        let constants = vec![constant(&c_lengths, &values), truth.clone()];
        let asked = request(grid.clone(), &selection, "where(mask, x * y, x) - c", constants, reduction);
        let kernel = ArrayReduce::bind(asked).unwrap();
        let lead = |i: usize| both[i].0.to_le_bytes().to_vec();
        let other = |i: usize| both[i].1.to_le_bytes().to_vec();
        prop_assert_eq!(format!("{:?}", folded(&kernel, &grid, &[&lead, &other])), format!("{expected:?}"));
    }
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let grid = || Grid::whole(vec![4, 6]).unwrap();
    let new = || Reduction::new(Op::Sum);
    let sound = || {
        let truth = Constant { dtype: ArrayType::Bool, lengths: vec![1, 1], bytes: vec![1] };
        request(grid(), "1:", "where(mask, x * y, c)", vec![constant(&[3, 1], &[0.0; 3]), truth], new())
    };
    assert!(ArrayReduce::bind(sound()).is_ok());
    let refused = |change: &dyn Fn(&mut Request)| {
        let mut request = sound();
        change(&mut request);
        ArrayReduce::bind(request).unwrap_err().to_string()
    };
    let longer = refused(&|request| request.constants[0] = constant(&[4, 1], &[0.0; 4]));
    assert!(longer.contains("input 2") && longer.contains("an axis of 3"), "{longer}");
    let bytes = refused(&|request| request.constants[0].bytes.truncate(23));
    assert!(bytes.contains("23 bytes"), "{bytes}");
    let axes = refused(&|request| request.constants[1].lengths = vec![1]);
    assert!(axes.contains("1 axes"), "{axes}");
    let fewer = refused(&|request| request.others.clear());
    assert!(fewer.contains("4 inputs and 3 are given"), "{fewer}");
    let unread = refused(&|request| request.expr = None);
    assert!(unread.contains("no expression"), "{unread}");
    let many = refused(&|request| request.others = vec![packed(); MAX_INPUTS]);
    assert!(many.contains(&format!("at most {MAX_INPUTS}")), "{many}");
    let large = refused(&|request| request.constants[0].bytes = vec![0; MAX_CONSTANT_BYTES + 1]);
    assert!(large.contains(&format!("at most {MAX_CONSTANT_BYTES}")), "{large}");
    // A record has the bytes of all its inputs.
    let kernel = ArrayReduce::bind(sound()).unwrap();
    let mut fold = kernel.begin(&Ctx::first(0..1)).unwrap();
    let error = fold.update(&Block::new(0, 1, &[0; 24 * 4]), &mut NoRows).unwrap_err().to_string();
    assert!(error.contains("96 bytes instead of 144"), "{error}");
    assert_eq!(kernel.summary_key(), None);
}

/// The fuzz target would refuse seeds of another form at once.
#[test]
fn the_seeds_of_the_fuzz_target_are_requests() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/array_request");
    let mut several = 0;
    for seed in std::fs::read_dir(folder).unwrap() {
        let path = seed.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let length = usize::from(u16::from_le_bytes([bytes[2], bytes[3]]));
        let encoded = EncodedRequest::decode(&bytes[4..4 + length]);
        let encoded = encoded.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let types = vec![DType::F32; encoded.variables()];
        let request = encoded.request(Grid::whole(vec![6, 5]).unwrap(), &types).unwrap();
        several += usize::from(!request.others.is_empty() && ArrayReduce::bind(request).is_ok());
    }
    assert!(several > 1, "{several} seeds with several inputs");
}
