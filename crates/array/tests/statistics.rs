//! Statistics of chunks: states and answers are the same with statistics of any origin as without.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use gristmill_array::*;
use gristmill_kernel::{Block, Ctx, DType, Kernel, Next, NoRows, Step, Summary, saved};
use proptest::prelude::*;

/// Summaries of chunks, as a node keeps them.
type Kept = BTreeMap<u64, Vec<u8>>;

/// An array of chunks that are all stored whole.
#[derive(Clone, Debug)]
struct World {
    grid: Grid,
    meaning: Meaning,
    chunks: Vec<Vec<u8>>,
}

impl World {
    fn kernel(&self, selection: &str, expr: Option<&str>, reduction: Reduction) -> Option<ArrayReduce> {
        let request = Request {
            grid: self.grid.clone(),
            meaning: self.meaning.clone(),
            others: Vec::new(),
            constants: Vec::new(),
            selection: selection.parse().unwrap(),
            expr: expr.map(|expr| expr.parse().unwrap()),
            reduction,
        };
        ArrayReduce::bind(request).ok()
    }

    /// Folds with the summaries of some chunks, and keeps new summaries. Returns the state and the number of chunks
    /// that were not read.
    fn fold(
        &self,
        kernel: &ArrayReduce,
        kept: &mut Kept,
        asked: impl Fn(u64) -> Option<bool>,
    ) -> Option<(Vec<u8>, usize)> {
        let ctx = Ctx::first(0..self.grid.chunks());
        let mut fold = kernel.begin(&ctx).unwrap();
        let mut settled = 0;
        for number in kernel.chunks() {
            let known = asked(number).and_then(|_| kept.get(&number).cloned());
            let instead = known.as_deref().filter(|bytes| kernel.summary_suffices(number, bytes));
            let block = match (instead, asked(number)) {
                (Some(bytes), _) => {
                    settled += 1;
                    Block::new(number, 1, &[]).with_summary(Summary::Substitute(bytes))
                }
                (None, Some(thorough)) => Block::new(number, 1, &self.chunks[number as usize])
                    .with_summary(Summary::Requested { known: known.as_deref(), thorough }),
                (None, None) => Block::new(number, 1, &self.chunks[number as usize]),
            };
            // Some variances take no huge values.
            assert_eq!(fold.update(&block, &mut NoRows).ok()?, Step::Took(1));
            if let Some(summary) = fold.summary() {
                assert!(asked(number).is_some() && instead.is_none());
                kept.insert(number, summary);
            }
        }
        Some((saved(&*fold), settled))
    }
}

fn answer(kernel: &ArrayReduce, world: &World, state: &[u8]) -> String {
    match kernel.advance(&Ctx::first(0..world.grid.chunks()), state) {
        Ok(Next::Done(value)) => format!("{value:?}"),
        Ok(_) => "again".into(),
        Err(error) => error.to_string(),
    }
}

/// Chunks of very different ranges, so that some are decided and some are not.
fn chunk(dtype: DType, elements: u64, rng: &mut fastrand::Rng) -> Vec<u8> {
    let kind = rng.u8(0..7);
    let middle = f64::from(rng.i32(-60..60));
    let mut out = Vec::new();
    for _ in 0..elements {
        let x = match (kind, rng.u8(0..12)) {
            (0, _) => middle,
            (1, _) => f64::NAN,
            (2, 0) => f64::NAN,
            (2, 1) => f64::INFINITY,
            (3, n) => [0.0, -0.0, 1.0][usize::from(n % 3)],
            (4, n) => [0.0, -0.0][usize::from(n % 2)],
            (5, _) => (rng.f64() - 0.5) * 10f64.powi(rng.i32(-300..300)),
            _ => middle + rng.f64() * 8.0,
        };
        match dtype {
            DType::F32 => out.extend((x as f32).to_le_bytes()),
            DType::F64 => out.extend(x.to_le_bytes()),
            DType::I16 => out.extend((x as i16).to_le_bytes()),
            DType::I8 => out.extend((x as i8).to_le_bytes()),
            DType::U8 => out.extend((x.abs() as u8).to_le_bytes()),
            DType::U32 => out.extend((x.abs() as u32).to_le_bytes()),
            _ if kind == 6 => out.extend((i64::MAX - rng.i64(0..9)).to_le_bytes()),
            _ => out.extend((x as i64).to_le_bytes()),
        }
    }
    out
}

fn meaning(dtype: DType, kind: u8) -> Meaning {
    let mut meaning = Meaning::plain(dtype);
    match kind {
        0 => meaning.missing = vec![Exact::Int(0), Exact::Int(7)],
        1 => meaning.scale = Some(Factor { value: 0.25, dtype: FactorType::F32 }),
        2 => {
            meaning.scale = Some(Factor { value: -0.1, dtype: FactorType::F64 });
            meaning.offset = Some(Factor { value: 3.0, dtype: FactorType::F64 });
            meaning.missing = vec![Exact::Float(f64::NAN)];
        }
        3 => meaning.valid = (Some(Exact::Int(-20)), Some(Exact::Int(50))),
        4 if !dtype.is_float() => meaning.unsigned = Some(kind.is_multiple_of(2)),
        _ => {}
    }
    meaning
}

fn worlds() -> impl Strategy<Value = World> {
    let dtypes = [DType::F32, DType::F64, DType::I8, DType::I16, DType::I64, DType::U8, DType::U32];
    let axis = || (1u64..7, 1u64..5);
    (axis(), axis(), axis(), 0usize..7, 0u8..8, any::<bool>(), any::<u64>()).prop_map(
        move |(a, b, c, dtype, kind, whole, seed)| {
            let dtype = dtypes[dtype];
            let mut rng = fastrand::Rng::with_seed(seed);
            let edges = if whole { EdgeChunks::Whole } else { EdgeChunks::Clipped };
            let grid = Grid::new(vec![a.0, b.0, c.0], vec![a.1, b.1, c.1], edges).unwrap();
            let chunks = (0..grid.chunks())
                .map(|number| chunk(dtype, grid.stored(number).iter().product(), &mut rng))
                .collect();
            World { meaning: meaning(dtype, kind), grid, chunks }
        },
    )
}

fn ops() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Sum),
        3 => Just(Op::Mean),
        2 => Just(Op::Totals),
        2 => Just(Op::Min),
        2 => Just(Op::Max),
        1 => Just(Op::Count),
        2 => Just(Op::Any),
        2 => Just(Op::All),
        1 => Just(Op::Histogram(vec![-50.0, -10.0, 0.0, 0.0, 10.0, 50.0])),
        1 => Just(Op::Var),
        1 => Just(Op::Moments),
        1 => Just(Op::ArgMax),
        1 => Just(Op::Quantile(vec![0.5])),
    ]
}

/// Expressions of every kind. Expressions that do not fit the type are left out.
const EXPRESSIONS: [&str; 44] = [
    "x > 3",
    "x >= 0 & x < 40",
    "~(x == 0) | x != x",
    "x != 0",
    "x <= -0.0",
    "isnan(x)",
    "~isnan(x) & isfinite(x)",
    "isfinite(x)",
    "where(x > 50, x, 0)",
    "where(x < 50, x, -1)",
    "where(isnan(x), 0, 1)",
    "where(isnan(x), nan, x)",
    "x - 273.15",
    "0.1 - x",
    "x * 0",
    "x * -2.5",
    "x / 3",
    "3 / x",
    "x + 1",
    "1 - x",
    "x * 3 > 20",
    "-x",
    "abs(x)",
    "abs(x) > 30",
    "sqrt(x)",
    "sqrt(abs(x)) > 2",
    "floor(x)",
    "ceil(x / 10)",
    "round(x)",
    "exp(x) > 1",
    "x ** 2 > 9",
    "x % 7 == 0",
    "x // 10",
    "clip(x, -5, 5)",
    "min(x, 0.0)",
    "max(x, -0.0)",
    "max(x, nan)",
    "i8(x)",
    "u8(x) > 3",
    "f32(x) == 1",
    "i16(x) + 1",
    "bool(x)",
    "i64(x) < u64(4)",
    "x * inf",
];

fn reductions() -> impl Strategy<Value = Reduction> {
    let axes = prop_oneof![
        3 => Just(None),
        1 => Just(Some(vec![0])),
        1 => Just(Some(vec![1])),
        1 => Just(Some(vec![-1])),
        1 => Just(Some(vec![1, 2])),
        1 => Just(Some(vec![0, 1]))
    ];
    let skipna = prop_oneof![Just(None), Just(Some(false))];
    (ops(), axes, skipna, any::<bool>(), 0u64..4).prop_map(|(op, axes, skipna, windows, min_count)| {
        let mut reduction = Reduction { axes, skipna, min_count, ..Reduction::new(op) };
        if windows && reduction.axes.as_ref().is_some_and(|axes| axes == &[1, 2]) {
            reduction.windows = vec![Windows { axis: 0, length: 2, boundary: Boundary::Pad }];
        }
        reduction
    })
}

fn selections() -> impl Strategy<Value = &'static str> {
    let parts = ["1:", "::2", ":,0", "0", ":2,:,1:5", ":,::3"];
    prop_oneof![4 => Just(""), 6 => (0..parts.len()).prop_map(move |at| parts[at])]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn they_change_no_bit(
        world in worlds(),
        reduction in reductions(),
        learner in reductions(),
        selection in selections(),
        expr in prop_oneof![1 => Just(None), 2 => (0..EXPRESSIONS.len()).prop_map(Some)],
        thorough: bool,
        some: u64,
    ) {
        let expr = expr.map(|at| EXPRESSIONS[at]);
        let Some(kernel) = world.kernel(selection, expr, reduction) else { return Ok(()) };
        let mut kept = Kept::new();
        let Some((state, none)) = world.fold(&kernel, &mut kept, |_| None) else { return Ok(()) };
        prop_assert!(kept.is_empty() && none == 0);
        let expected = answer(&kernel, &world, &state);
        // Any and all make only statistics that cost little compared with reading.
        let learns = thorough || !matches!(learner.op, Op::Any | Op::All);
        // Statistics of all chunks that another request made.
        if let Some(learner) = world.kernel("", None, learner)
            && let Some((alone, _)) = world.fold(&learner, &mut Kept::new(), |_| None)
        {
            let (learning, _) = world.fold(&learner, &mut kept, |_| Some(thorough)).unwrap();
            prop_assert_eq!(alone, learning, "learning changed a state");
            prop_assert_eq!(kept.len() as u64, if learns { world.grid.chunks() } else { 0 });
        }
        let sometimes = |number: u64| (some >> (number % 64) & 1 == 1).then_some(thorough);
        for asked in [&sometimes as &dyn Fn(u64) -> Option<bool>, &|_| Some(thorough), &|_| Some(true)] {
            let (with, _) = world.fold(&kernel, &mut kept, asked).unwrap();
            prop_assert_eq!(&with, &state, "statistics changed a state");
            prop_assert_eq!(&answer(&kernel, &world, &with), &expected);
        }
    }

    #[test]
    fn damaged_ones_are_no_statistics_or_harmless(world in worlds(), at in 0usize..200, byte: u8) {
        let Some(kernel) = world.kernel("", None, Reduction::new(Op::Sum)) else { return Ok(()) };
        let mut kept = Kept::new();
        world.fold(&kernel, &mut kept, |_| Some(true)).unwrap();
        for (number, summary) in &mut kept {
            let at = at % summary.len();
            summary[at] = byte;
            let mut fold = kernel.begin(&Ctx::first(0..world.grid.chunks())).unwrap();
            if kernel.summary_suffices(*number, summary) {
                let block = Block::new(*number, 1, &[]).with_summary(Summary::Substitute(summary));
                fold.update(&block, &mut NoRows).unwrap();
            }
        }
    }
}

/// 40 days of 10 by 10 numbers, one chunk for each day: the temperature of the day in all places and a little more in
/// one.
fn days(dtype: DType) -> World {
    let grid = Grid::new(vec![40, 10, 10], vec![1, 10, 10], EdgeChunks::Whole).unwrap();
    let chunks = (0..40)
        .map(|day| {
            let value = move |at: i32| f64::from(day) + if at == 17 { 0.25 } else { 0.0 };
            (0..100).flat_map(move |at| match dtype {
                DType::F32 => (value(at) as f32).to_le_bytes().to_vec(),
                _ => value(at).to_le_bytes().to_vec(),
            })
        })
        .map(Iterator::collect)
        .collect();
    World { grid, meaning: Meaning::plain(dtype), chunks }
}

/// Returns how many of the 40 chunks the second of two requests does not read.
fn settled(before: Reduction, selection: &str, expr: Option<&str>, reduction: Reduction) -> usize {
    let world = days(DType::F32);
    let mut kept = Kept::new();
    world.fold(&world.kernel("", None, before).unwrap(), &mut kept, |_| Some(false)).unwrap();
    let kernel = world.kernel(selection, expr, reduction).unwrap();
    world.fold(&kernel, &mut kept, |_| Some(false)).unwrap().1
}

#[test]
fn a_second_request_reads_nothing_that_is_known() {
    let new = Reduction::new;
    for op in [Op::Count, Op::Min, Op::Max, Op::Sum, Op::Mean, Op::Any] {
        assert_eq!(settled(new(Op::Sum), "", None, new(op)), 40);
    }
    // Statistics that the first request did not need are unknown, except the range.
    assert_eq!(settled(new(Op::Max), "", None, new(Op::Min)), 40);
    assert_eq!(settled(new(Op::Std), "", None, new(Op::Max)), 40);
    assert_eq!(settled(new(Op::Max), "", None, new(Op::Sum)), 0);
    // A mean for each day is binned.
    assert_eq!(settled(new(Op::Mean).over(&[1, 2]), "", None, new(Op::Sum).over(&[1, 2])), 40);
    assert_eq!(settled(new(Op::Mean), "", None, new(Op::Sum).over(&[1, 2])), 0);
    // Nothing is known of half of a chunk.
    assert_eq!(settled(new(Op::Sum), ":,:5", None, new(Op::Max)), 0);
    assert_eq!(settled(new(Op::Sum), "10:20", None, new(Op::Max)), 10);
}

#[test]
fn what_a_range_decides_is_not_read() {
    let new = Reduction::new;
    // Days 0 to 29 are below 30 everywhere, those from 31 above; day 30 has both.
    for (expr, expected) in [
        ("x > 30", 39),
        ("x > 30 & x < 35", 39),
        ("x > 29.9 | isnan(x)", 40),
        ("isnan(x)", 40),
        ("where(x > 100, x, 0)", 40),
        ("x * x > 30", 0),
        ("clip(x, 10, 20) == 20", 40),
        ("sqrt(x - 4) > 2", 35),
    ] {
        for op in [Op::Any, Op::All, Op::Sum, Op::Mean] {
            assert_eq!(settled(new(Op::Max), "", Some(expr), new(op)), expected, "{expr}");
        }
    }
    // A part of a chunk is known too if all elements are the same.
    assert_eq!(settled(new(Op::Max), ":,:3,::2", Some("x > 30"), new(Op::Sum)), 39);
    // A monotone expression maps the ends of the range to the ends of the results.
    assert_eq!(settled(new(Op::Max), "", Some("x - 273.15"), new(Op::Max)), 40);
    assert_eq!(settled(new(Op::Max), "", Some("x - 273.15"), new(Op::Sum)), 0);
}

#[test]
fn signs_of_zeros_are_those_of_the_elements() {
    let grid = Grid::new(vec![4], vec![4], EdgeChunks::Whole).unwrap();
    for (zero, op, expr) in [(-0.0f64, Op::Min, "max(0, x)"), (0.0, Op::Max, "min(-0.0, x)")] {
        let chunk = [-5.0, zero, 3.0, 3.0].iter().flat_map(|x: &f64| x.to_le_bytes()).collect();
        let world = World { grid: grid.clone(), meaning: Meaning::plain(DType::F64), chunks: vec![chunk] };
        let kernel = world.kernel("", Some(expr), Reduction::new(op)).unwrap();
        let read = world.fold(&kernel, &mut Kept::new(), |_| None).unwrap().0;
        let mut kept = Kept::new();
        let count = world.kernel("", None, Reduction::new(Op::Count)).unwrap();
        world.fold(&count, &mut kept, |_| Some(true)).unwrap();
        assert_eq!(world.fold(&kernel, &mut kept, |_| Some(true)).unwrap().0, read, "{expr}");
    }
}

#[test]
fn answers_are_those_of_numbers_that_are_known() {
    let world = days(DType::F64);
    let mut kept = Kept::new();
    let sum = world.kernel("", None, Reduction::new(Op::Sum)).unwrap();
    world.fold(&sum, &mut kept, |_| Some(false)).unwrap();
    let (state, settled) = world.fold(&sum, &mut kept, |_| Some(false)).unwrap();
    assert_eq!(settled, 40);
    let Next::Done(value) = sum.advance(&Ctx::first(0..40), &state).unwrap() else { unreachable!() };
    let Some(gristmill_kernel::Value::Array(sum)) = value.get("sum") else { unreachable!() };
    // 100 times 0 + 1 + ... + 39, and a quarter for each day.
    assert_eq!(sum.values().next(), Some(gristmill_kernel::Value::Float(78_010.0)));
    let statistics = ChunkStatistics::decode(&kept[&3]).unwrap();
    assert_eq!((statistics.elements(), statistics.missing()), (100, 0));
    assert_eq!(statistics.range(), Some(Values::F64(vec![3.0, 3.25])));
}

#[test]
fn another_meaning_has_another_key() {
    let world = days(DType::F32);
    let key = |meaning: &dyn Fn(&mut Meaning), reduction: Reduction, expr: Option<&str>| {
        let mut world = world.clone();
        meaning(&mut world.meaning);
        world.kernel("", expr, reduction).unwrap().summary_key().unwrap()
    };
    let plain = key(&|_| {}, Reduction::new(Op::Sum), None);
    assert_eq!(plain, key(&|_| {}, Reduction::new(Op::Max).over(&[0]), Some("x > 1")));
    let others: [&dyn Fn(&mut Meaning); 6] = [
        &|meaning| meaning.valid.0 = Some(Exact::Int(0)),
        &|meaning| meaning.valid.1 = Some(Exact::Int(0)),
        &|meaning| meaning.missing = vec![Exact::Int(0)],
        &|meaning| meaning.missing = vec![Exact::Float(0.0)],
        &|meaning| meaning.scale = Some(Factor { value: 1.0, dtype: FactorType::F32 }),
        &|meaning| meaning.offset = Some(Factor { value: 1.0, dtype: FactorType::F32 }),
    ];
    let mut keys: Vec<Vec<u8>> =
        others.iter().map(|other| key(*other, Reduction::new(Op::Sum), None)).collect();
    keys.push(plain);
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 7);
}
