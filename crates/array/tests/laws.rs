//! The laws of folds, over chunks: any order, split, tree of merges and place gives the same bits.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use gristmill_array::*;
use gristmill_conformance::{Case, check};
use gristmill_kernel::{Ctx, DType, Input, Kernel};

/// Elements that include missing values, zeros, infinities and values of all sizes.
fn bytes(dtype: DType, elements: usize, seed: u64) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut out = Vec::new();
    for _ in 0..elements {
        let x = match rng.u8(0..20) {
            0 => f64::NAN,
            1 => 0.0,
            2 => 1e30 * rng.f64(),
            3 => -1e-30,
            _ => (rng.f64() - 0.5) * 100.0,
        };
        match dtype {
            DType::F32 => out.extend((x as f32).to_le_bytes()),
            DType::F64 => out.extend(if rng.u8(0..30) == 0 { x * 1e290 } else { x }.to_le_bytes()),
            DType::I16 => out.extend((x as i16).to_le_bytes()),
            _ => out.extend((x as i64).to_le_bytes()),
        }
    }
    out
}

/// Shape (5, 7, 6) in chunks of (2, 3, 6) and others: edge chunks are stored whole, so that a file of chunks is one of
/// records.
fn holds(dtype: DType, meaning: Meaning, selection: &str, expr: Option<&str>, reduction: Reduction) {
    for chunk in [vec![2, 3, 6], vec![1, 7, 2], vec![5, 7, 6]] {
        let grid = Grid::new(vec![5, 7, 6], chunk, EdgeChunks::Whole).unwrap();
        let data = bytes(dtype, (grid.chunks() * grid.chunk_elements()) as usize, 3);
        let record = grid.chunk_elements() * dtype.size() as u64;
        let request = Request {
            grid,
            meaning: meaning.clone(),
            others: Vec::new(),
            constants: Vec::new(),
            selection: selection.parse().unwrap(),
            expr: expr.map(|text| text.parse().unwrap()),
            reduction: reduction.clone(),
        };
        let kernel = Arc::new(ArrayReduce::bind(request).unwrap());
        let input = Input::typed_records(dtype, record).unwrap();
        if let Err(broken) = check(&Case::new(kernel, input, data), 11, 3) {
            panic!("{broken}");
        }
    }
}

fn ops() -> Vec<Op> {
    vec![
        Op::Count,
        Op::Sum,
        Op::Mean,
        Op::Totals,
        Op::Min,
        Op::Max,
        Op::ArgMin,
        Op::Any,
        Op::All,
        Op::Histogram(vec![-50.0, -10.0, 0.0, 10.0, 50.0]),
    ]
}

#[test]
fn of_every_operation_for_one_number_and_for_grids() {
    for op in ops().into_iter().chain([Op::Std, Op::Moments, Op::Quantile(vec![0.0, 0.3, 0.5])]) {
        for axes in [vec![0, 1, 2], vec![0], vec![2], vec![0, 2]] {
            holds(DType::F32, Meaning::plain(DType::F32), "", None, Reduction::new(op.clone()).over(&axes));
        }
    }
}

#[test]
fn of_pairs() {
    for axes in [vec![0, 1, 2], vec![0], vec![2], vec![0, 2]] {
        let over = Reduction::new(Op::Comoments).over(&axes);
        holds(DType::F32, Meaning::plain(DType::F32), "", Some("x * (x + 1)"), over.clone());
        holds(
            DType::I16,
            Meaning::plain(DType::I16),
            "1:, ::2",
            Some("(x - 3) * sqrt(abs(x))"),
            over.clone(),
        );
        let skipna = Some(false);
        holds(DType::F32, Meaning::plain(DType::F32), "", Some("x * 2"), Reduction { skipna, ..over });
    }
}

#[test]
fn pairs_are_the_factors_of_a_product() {
    for expr in [None, Some("x + 1"), Some("-(x * x)")] {
        let request = Request {
            grid: Grid::whole(vec![4]).unwrap(),
            meaning: Meaning::plain(DType::F64),
            others: Vec::new(),
            constants: Vec::new(),
            selection: Selection::default(),
            expr: expr.map(|text| text.parse().unwrap()),
            reduction: Reduction::new(Op::Comoments),
        };
        let error = ArrayReduce::bind(request).unwrap_err();
        assert!(error.to_string().contains("as in x * y"), "{error}");
    }
}

#[test]
fn of_huge_values_and_of_integers() {
    for op in ops() {
        holds(DType::F64, Meaning::plain(DType::F64), "", None, Reduction::new(op.clone()).over(&[1]));
        holds(DType::I64, Meaning::plain(DType::I64), "::2,1:", None, Reduction::new(op).over(&[-1]));
    }
    for op in [Op::Var, Op::Moments, Op::Quantile(vec![0.25, 0.9])] {
        holds(DType::I64, Meaning::plain(DType::I64), "", None, Reduction::new(op).over(&[0]));
    }
}

#[test]
fn of_missing_values_selections_and_expressions() {
    let mut meaning = Meaning::plain(DType::I16);
    meaning.missing = vec![Exact::Int(0), Exact::Int(7)];
    meaning.scale = Some(Factor { value: 0.25, dtype: FactorType::F32 });
    for op in [Op::Sum, Op::Var, Op::Max] {
        let expr = Some("where(x > 3, sqrt(abs(x)), x * 2)");
        holds(DType::I16, meaning.clone(), "1:4,-1,::2", expr, Reduction::new(op.clone()).over(&[0]));
        holds(
            DType::I16,
            meaning.clone(),
            ":,1::3",
            None,
            Reduction { skipna: Some(false), ..Reduction::new(op) },
        );
    }
}

#[test]
fn of_groups_windows_and_weights() {
    for op in
        [Op::Sum, Op::Mean, Op::Totals, Op::Std, Op::Quantile(vec![0.5]), Op::Histogram(vec![-1.0, 0.0, 1.0])]
    {
        let groups = |axis| Groups { axis, labels: vec![1, 0, -1, 1, 3], count: 4 };
        let windows = |axis, boundary| Windows { axis, length: 4, boundary };
        let new = || Reduction::new(op.clone());
        holds(
            DType::F64,
            Meaning::plain(DType::F64),
            "",
            None,
            Reduction { groups: vec![groups(0)], ..new() },
        );
        holds(
            DType::F32,
            Meaning::plain(DType::F32),
            ":,1:6",
            None,
            Reduction {
                groups: vec![groups(1)],
                windows: vec![windows(2, Boundary::Pad)],
                axes: Some(vec![0]),
                ..new()
            },
        );
        holds(
            DType::F32,
            Meaning::plain(DType::F32),
            "",
            None,
            Reduction { windows: vec![windows(-1, Boundary::Trim)], ..new() },
        );
    }
    let weights = vec![
        Weights { axis: 1, values: vec![0.1, 0.2, 0.0, -0.3, 1.0, 2.0, 3.0] },
        Weights { axis: 2, values: vec![1.0, 1e-3, 7.0, 0.3, 0.0, 1.5] },
    ];
    for axes in [vec![1], vec![0, 1, 2], vec![2]] {
        for op in [Op::Mean, Op::Totals] {
            let reduction = Reduction { weights: weights.clone(), ..Reduction::new(op) };
            holds(DType::F32, Meaning::plain(DType::F32), "", None, reduction.over(&axes));
        }
    }
}

#[test]
fn what_is_done_in_one_pass_has_no_second() {
    let bind = |op| {
        ArrayReduce::bind(Request {
            grid: Grid::new(vec![7], vec![3], EdgeChunks::Whole).unwrap(),
            meaning: Meaning::plain(DType::F32),
            others: Vec::new(),
            constants: Vec::new(),
            selection: "".parse().unwrap(),
            expr: None,
            reduction: Reduction::new(op),
        })
        .unwrap()
    };
    // A message without tiles, which quantiles may get.
    let later = Ctx { round: 1, shared: vec![0; 8].into(), ..Ctx::first(0..3) };
    for op in ops() {
        assert!(bind(op.clone()).begin(&later).is_err(), "{op:?} was begun a second time");
    }
    assert!(bind(Op::Quantile(vec![0.5])).begin(&later).is_ok());
}
