//! A suite that cannot fail proves nothing: kernels that break a law are caught, and the law is named.
#![allow(clippy::expect_used)] // in a function that tests share

use std::sync::Arc;

use gristmill_conformance::proofs::*;
use gristmill_conformance::{Case, Law, check};
use gristmill_kernel::{DType, Input, Kernel};

fn law_broken_by(kernel: impl Kernel + 'static) -> Law {
    let data = (0..40).flat_map(|i| (f64::from(i) * 0.1).to_le_bytes()).collect();
    let case = Case::new(Arc::new(kernel), Input::elements(DType::F64), data);
    check(&case, 7, 200).expect_err("a broken kernel passed").law
}

#[test]
fn a_kernel_that_counts_blocks() {
    assert_eq!(law_broken_by(BlockCounter), Law::Blocks);
}

#[test]
fn a_kernel_that_forgets_when_saved() {
    assert_eq!(law_broken_by(Forgetful), Law::Save);
}

#[test]
fn a_kernel_whose_merge_loses_a_side() {
    assert_eq!(law_broken_by(LeftHeavy), Law::Merge);
}

#[test]
fn a_kernel_that_depends_on_the_order_it_denies() {
    assert_eq!(law_broken_by(FirstWins), Law::Order);
}

#[test]
fn a_kernel_that_panics_on_a_short_state() {
    assert_eq!(law_broken_by(Panicky), Law::State);
}

#[test]
fn a_kernel_that_takes_nothing() {
    assert_eq!(law_broken_by(Idler), Law::Contract);
}

#[test]
fn floats_merged_without_a_tree() {
    assert_eq!(law_broken_by(Welford), Law::Merge);
}
