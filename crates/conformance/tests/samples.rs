//! The sample kernels keep the laws.

use std::sync::Arc;

use gristmill_conformance::samples::*;
use gristmill_conformance::{Case, check};
use gristmill_kernel::{DType, Input, Kernel, Tree};

const TRIALS: u32 = 150;

fn floats(n: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(n as u64);
    let value = |_| (rng.f64() - 0.5) * 10f64.powi(rng.i32(-30..30));
    (0..n).map(value).flat_map(f64::to_le_bytes).collect()
}

fn bytes(n: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(n as u64);
    (0..n).map(|_| rng.u8(..)).collect()
}

fn check_laws(case: Case) {
    for seed in 0..3 {
        check(&case, seed, TRIALS).unwrap_or_else(|broken| panic!("{broken}"));
    }
}

fn over_floats(kernel: impl Kernel + 'static, n: usize) {
    check_laws(Case::new(Arc::new(kernel), Input::elements(DType::F64), floats(n)));
}

fn over_bytes(kernel: impl Kernel + 'static, n: usize) -> Case {
    Case::new(Arc::new(kernel), Input::elements(DType::U8), bytes(n))
}

#[test]
fn exact_sum() {
    over_floats(Total, 60);
    over_floats(Total, 0);
}

#[test]
fn first_and_last_line() {
    for text in ["", "\n", "one", "one\ntwo", "one\ntwo\n\nfour\n", "a\nbb\nccc\ndddd\neeeee\nffffff\n"] {
        check_laws(Case::new(Arc::new(Ends), Input::lines(), text.into()));
    }
}

#[test]
fn three_point_stencil() {
    over_floats(Stencil, 1);
    over_floats(Stencil, 37);
}

#[test]
fn value_with_a_wide_halo() {
    check_laws(over_bytes(Echo(1), 100));
    check_laws(over_bytes(Echo(23), 100));
}

#[test]
fn two_pass_variance() {
    over_floats(CentredVariance, 45);
}

#[test]
fn generator_with_a_cursor() {
    check_laws(Case::new(Arc::new(Triangle(17)), Input::elements(DType::U8), Vec::new()));
}

#[test]
fn filter_with_rows() {
    check_laws(over_bytes(Multiples(3), 300));
}

#[test]
fn rows_until_there_are_enough() {
    let mut data = bytes(200);
    data.retain(|byte| *byte != 0);
    check_laws(Case::new(Arc::new(Prefix), Input::elements(DType::U8), data.clone()));
    data[60] = 0;
    data[130] = 0;
    check_laws(Case::new(Arc::new(Prefix), Input::elements(DType::U8), data));
}

#[test]
fn side_input() {
    check_laws(over_bytes(Table, 300).with_side(bytes(200)));
}

#[test]
fn second_input() {
    check_laws(over_bytes(Dot, 100).with_second(bytes(100).into_iter().rev().collect()));
}

#[test]
fn floats_in_a_canonical_tree() {
    for grain in [1, 3, 8] {
        for n in [0, 1, 8, 50] {
            over_floats(Tree::new(Welford, grain), n);
        }
    }
}
