//! Grids, selections and the bound of memory, compared with plain programs.
#![allow(clippy::unwrap_used)]

use gristmill_array::*;
use gristmill_kernel::{Ctx, DType, Kernel};
use proptest::prelude::*;

fn slice() -> impl Strategy<Value = Take> {
    let end = || prop::option::of(-15i64..15);
    (end(), end(), 1u64..6).prop_map(|(start, stop, step)| Take::Slice { start, stop, step })
}

/// The elements that a Python slice takes.
fn taken(length: i64, start: Option<i64>, stop: Option<i64>, step: u64) -> Vec<u64> {
    let at = |end: i64| if end < 0 { (end + length).max(0) } else { end.min(length) };
    (at(start.unwrap_or(0))..at(stop.unwrap_or(length))).step_by(step as usize).map(|i| i as u64).collect()
}

proptest! {
    #[test]
    fn numbers_and_places_are_inverse(shape in prop::collection::vec(0u64..9, 0..4), chunk in prop::collection::vec(1u64..5, 4)) {
        let chunk = chunk[..shape.len()].to_vec();
        let grid = Grid::new(shape.clone(), chunk, EdgeChunks::Clipped).unwrap();
        let mut elements = 0;
        for number in 0..grid.chunks() {
            prop_assert_eq!(grid.number(&grid.place(number)), number);
            elements += grid.clipped(number).iter().product::<u64>();
            prop_assert!(grid.origin(number).iter().zip(&shape).all(|(origin, n)| origin < n));
        }
        prop_assert_eq!(elements, shape.iter().product::<u64>());
    }

    #[test]
    fn a_selection_is_what_python_takes(length in 0u64..14, chunk in 1u64..6, take in slice()) {
        let grid = Grid::new(vec![length], vec![chunk], EdgeChunks::Whole).unwrap();
        let selected = Selection(vec![take]).resolve(&grid).unwrap();
        let Take::Slice { start, stop, step } = take else { unreachable!() };
        let expected = taken(length as i64, start, stop, step);
        prop_assert_eq!(selected.shape(), vec![expected.len() as u64]);
        let mut found = Vec::new();
        let mut chunks = Vec::new();
        for number in 0..grid.chunks() {
            let origin = number * chunk;
            let (first, begin, count) = selected.axes[0].within(origin, chunk);
            if count > 0 {
                prop_assert_eq!(first, found.len() as u64);
                chunks.push(number);
            }
            found.extend((0..count).map(|i| origin + begin + i * step));
        }
        prop_assert_eq!(found, expected);
        prop_assert_eq!(selected.chunks(&grid).collect::<Vec<_>>(), chunks);
    }

    #[test]
    fn no_selection_panics(text in "[-0-9:, a]{0,24}", shape in prop::collection::vec(0u64..9, 0..4)) {
        let grid = Grid::whole(shape).unwrap();
        if let Ok(selection) = text.parse::<Selection>() {
            let _ = selection.resolve(&grid);
        }
    }
}

#[test]
fn a_fold_sends_only_the_tiles_that_it_touched() {
    let grid = Grid::new(vec![4, 1000, 1000], vec![4, 100, 100], EdgeChunks::Whole).unwrap();
    let request = Request {
        grid: grid.clone(),
        meaning: Meaning::plain(DType::F32),
        others: Vec::new(),
        constants: Vec::new(),
        selection: Selection::default(),
        expr: None,
        reduction: Reduction::new(Op::Mean).over(&[0]),
    };
    let kernel = ArrayReduce::bind(request).unwrap();
    let memory = kernel.memory();
    assert_eq!((memory.cells, memory.passes), (1_000_000, 1));
    assert!(memory.state_bytes < 36 << 20, "{memory:?}");
    let ctx = Ctx::first(0..grid.chunks());
    let mut fold = kernel.begin(&ctx).unwrap();
    let data = vec![0u8; 4 * 4 * 100 * 100];
    for number in [7, 93] {
        let block = gristmill_kernel::Block::new(number, 1, &data);
        fold.update(&block, &mut gristmill_kernel::NoRows).unwrap();
    }
    let state = gristmill_kernel::saved(&*fold);
    assert!(state.len() < 2 * 10_000 * 36, "{}", state.len());
}

#[test]
fn chunks_of_the_wrong_length_are_errors() {
    let kernel = |edges| {
        ArrayReduce::bind(Request {
            grid: Grid::new(vec![5], vec![4], edges).unwrap(),
            meaning: Meaning::plain(DType::I32),
            others: Vec::new(),
            constants: Vec::new(),
            selection: Selection::default(),
            expr: None,
            reduction: Reduction::new(Op::Sum),
        })
        .unwrap()
    };
    let take = |edges, number, bytes| {
        let mut fold = kernel(edges).begin(&Ctx::first(0..2)).unwrap();
        let data = vec![0; bytes];
        fold.update(&gristmill_kernel::Block::new(number, 1, &data), &mut gristmill_kernel::NoRows).is_ok()
    };
    assert!(take(EdgeChunks::Whole, 1, 16) && !take(EdgeChunks::Whole, 1, 4));
    assert!(take(EdgeChunks::Clipped, 1, 4) && !take(EdgeChunks::Clipped, 1, 16));
    assert!(!take(EdgeChunks::Whole, 2, 16) && !take(EdgeChunks::Whole, 0, 15));
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let bind = |meaning: Meaning, reduction: Reduction| {
        let grid = Grid::new(vec![6, 4], vec![2, 4], EdgeChunks::Whole).unwrap();
        let request = Request {
            grid,
            meaning,
            others: Vec::new(),
            constants: Vec::new(),
            selection: Selection::default(),
            expr: None,
            reduction,
        };
        ArrayReduce::bind(request).map(drop).map_err(|error| error.to_string())
    };
    let plain = || Meaning::plain(DType::F64);
    let new = Reduction::new;
    let groups = |labels: Vec<i64>, count| vec![Groups { axis: 0, labels, count }];
    let refused = [
        bind(plain(), new(Op::Sum).over(&[2])),
        bind(plain(), new(Op::Sum).over(&[0, -2])),
        bind(plain(), new(Op::Quantile(vec![1.5]))),
        bind(plain(), new(Op::Quantile(vec![]))),
        bind(plain(), new(Op::Histogram(vec![2.0, 1.0]))),
        bind(plain(), Reduction { groups: groups(vec![0; 5], 1), ..new(Op::Sum) }),
        bind(plain(), Reduction { groups: groups(vec![3; 6], 3), ..new(Op::Sum) }),
        bind(plain(), Reduction { groups: groups(vec![0; 6], 1), ..new(Op::ArgMin) }),
        bind(
            plain(),
            Reduction {
                windows: vec![Windows { axis: 0, length: 0, boundary: Boundary::Pad }],
                ..new(Op::Sum)
            },
        ),
        bind(plain(), Reduction { weights: vec![Weights { axis: 0, values: vec![1.0] }], ..new(Op::Mean) }),
        bind(
            plain(),
            Reduction { weights: vec![Weights { axis: 1, values: vec![f64::NAN; 4] }], ..new(Op::Mean) },
        ),
        bind(plain(), Reduction { weights: vec![Weights { axis: 1, values: vec![1.0; 4] }], ..new(Op::Max) }),
        bind(Meaning { valid: (Some(Exact::Int(2)), Some(Exact::Int(1))), ..plain() }, new(Op::Sum)),
        bind(Meaning { missing: vec![Exact::Int(1); 1000], ..plain() }, new(Op::Sum)),
    ];
    for (at, refused) in refused.iter().enumerate() {
        assert!(refused.is_err(), "request {at} was taken");
    }
    assert!(Grid::new(vec![1], vec![0], EdgeChunks::Whole).is_err());
    assert!(Grid::new(vec![1 << 40; 3], vec![1; 3], EdgeChunks::Whole).is_err());
    assert!(Grid::new(vec![1; 40], vec![1; 40], EdgeChunks::Whole).is_err());
}
