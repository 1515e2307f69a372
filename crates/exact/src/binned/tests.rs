//! The laws of binned sums, and their distance from exact ones.

use proptest::prelude::*;

use super::*;
use crate::path::Path;
use crate::{Moments, Sum};

/// Values of all kinds that have gone wrong somewhere.
fn nasty() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -1e3..1e3,
        2 => any::<f64>(),
        1 => prop_oneof![
            Just(0.0), Just(-0.0), Just(5e-324), Just(-5e-324), Just(f64::MIN_POSITIVE), Just(f64::MAX),
            Just(-f64::MAX), Just(1e300), Just(-1e300), Just(f64::INFINITY), Just(f64::NEG_INFINITY),
            Just(f64::NAN), Just(1e16), Just(-1e16), Just(2f64.powi(941)), Just(2f64.powi(940)),
        ],
        1 => (-1074i32..1024, any::<bool>()).prop_map(|(e, sign)| {
            // Powers of two are ties on some grid.
            let x = if e < -1022 { f64::from_bits(1 << (e + 1074)) } else { 2f64.powi(e) };
            if sign { -x } else { x }
        }),
        1 => (-1074i32..0).prop_map(|e| 3.0 * 2f64.powi(e / 2)),
    ]
}

fn bytes(cells: &BinnedCells) -> Vec<u8> {
    let mut out = Vec::new();
    cells.encode(&mut out);
    out
}

fn one(values: &[f64], skip: bool) -> BinnedCells {
    let mut cells = BinnedCells::new(1);
    for x in values {
        cells.add_row(0, &[*x], skip);
    }
    cells
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits()
}

proptest! {
    #[test]
    fn any_order_and_tree_gives_the_same_bytes(
        values in prop::collection::vec(nasty(), 0..60),
        order in any::<u64>(),
        cuts in prop::collection::vec(0usize..60, 0..4),
        skip: bool,
    ) {
        let whole = one(&values, skip);
        let mut mixed = values.clone();
        let mut state = order | 1;
        for i in (1..mixed.len()).rev() {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            mixed.swap(i, (state >> 33) as usize % (i + 1));
        }
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(mixed.len())).collect();
        cuts.extend([0, mixed.len()]);
        cuts.sort_unstable();
        let mut merged = BinnedCells::new(1);
        for (i, pair) in cuts.windows(2).enumerate() {
            let mut part = BinnedCells::new(1);
            part.add_run(0, &mixed[pair[0]..pair[1]], skip);
            if i % 2 == 0 {
                part.merge(&merged);
                merged = part;
            } else {
                let mut saved = bytes(&merged);
                let used = saved.len();
                saved.push(7);
                prop_assert_eq!(part.merge_encoded(&saved).unwrap(), used);
                merged = part;
            }
        }
        prop_assert_eq!(bytes(&whole), bytes(&merged));
        prop_assert_eq!(&whole, &merged);
    }

    #[test]
    fn what_is_dropped_is_below_the_bound(values in prop::collection::vec(nasty(), 1..60), skip: bool) {
        let cells = one(&values, skip);
        let mut sum = Sum::new();
        values.iter().for_each(|x| sum.add(*x));
        let expected = if skip { sum.value_skip_nan() } else { sum.value() };
        let got = cells.exactly(0, 1).to_f64();
        if !expected.is_finite() || !got.is_finite() {
            prop_assert!(same(expected, got), "{} {}", expected, got);
            return Ok(());
        }
        // The difference, exactly, but for half an ulp of each.
        let largest = values.iter().filter(|x| x.is_finite()).fold(0f64, |m, x| m.max(x.abs()));
        let bound = largest * 2f64.powi(-80) * values.len() as f64;
        let ulp = f64::from_bits(expected.abs().to_bits() + 1) - expected.abs();
        prop_assert!((got / 2.0 - expected / 2.0).abs() <= bound / 2.0 + ulp, "{} {} {}", expected, got, bound);
    }

    #[test]
    fn values_near_each_other_are_summed_exactly(
        values in prop::collection::vec((1.0..2.0f64, any::<bool>(), -13i32..13), 1..300),
        scale in -1000i32..990,
    ) {
        let values: Vec<f64> = values
            .into_iter()
            .map(|(x, sign, e)| (if sign { -x } else { x }) * 2f64.powi(e) * 2f64.powi(scale))
            .collect();
        let cells = one(&values, false);
        let mut sum = Sum::new();
        values.iter().for_each(|x| sum.add(*x));
        prop_assert!(same(cells.exactly(0, 1).to_f64(), sum.value()));
        prop_assert!(same(cells.exactly(0, 7).to_f64(), sum.mean(7)));
    }

    #[test]
    fn rows_and_runs_of_every_path_agree(
        rows in prop::collection::vec(prop::collection::vec(nasty(), 150), 1..6),
        skip: bool,
    ) {
        let mut expected: Vec<Vec<f64>> = vec![Vec::new(); 150];
        let mut cells = BinnedCells::new(150);
        for row in &rows {
            cells.add_row(0, row, skip);
            expected.iter_mut().zip(row).for_each(|(cell, x)| cell.push(*x));
        }
        for path in Path::available() {
            let mut others = BinnedCells::new(150);
            for row in &rows {
                others.add_row_on(path, 100, &row[100..], skip);
                others.add_row_on(path, 0, &row[..100], skip);
            }
            prop_assert_eq!(bytes(&cells), bytes(&others));
            let mut runs = BinnedCells::new(150);
            for (at, values) in expected.iter().enumerate() {
                runs.add_run_on(path, at, values, skip);
            }
            prop_assert_eq!(bytes(&cells), bytes(&runs));
        }
    }

    #[test]
    fn damaged_states_are_refused(mut saved in Just(bytes(&one(&[1.5, 2.5, f64::NAN], false))),
                                  at in 0usize..31, bit in 0u8..8, cut in 0usize..40) {
        saved[at] ^= 1 << bit;
        saved.truncate(cut.max(1));
        let mut cells = BinnedCells::new(1);
        let _ = cells.merge_encoded(&saved);
        cells.exactly(0, 3).to_f64();
    }

    #[test]
    fn products_are_exact(x in -1e100..1e100f64, w in -1e100..1e100f64) {
        let (mut high, mut low) = ([0.0], [0.0]);
        prop_assert!(products(&[x], &[w], &mut high, &mut low));
        prop_assert_eq!(high[0], x * w);
        if high[0].abs() > 1e-250 {
            prop_assert_eq!(low[0], x.mul_add(w, -high[0]));
        }
    }
}

#[test]
fn a_long_run_and_many_rows_carry() {
    let values: Vec<f64> = (0..100_000).map(|i| 1e6 + f64::from(i % 977) * 1e-3).collect();
    let (mut runs, mut rows) = (BinnedCells::new(3), BinnedCells::new(3));
    runs.add_run(1, &values, false);
    values.iter().for_each(|x| rows.add_row(1, &[*x], false));
    let mut sum = Sum::new();
    values.iter().for_each(|x| sum.add(*x));
    assert_eq!(runs, rows);
    assert_eq!(runs.exactly(1, 100_000).to_f64(), sum.mean(100_000));
    assert_eq!(runs.exactly(0, 1).to_f64().to_bits(), 0);
}

#[test]
fn many_merges_of_many_values_go_wide() {
    let mut cells = BinnedCells::new(1);
    cells.add_run(0, &vec![-1.7e5f64; 4096], false);
    let mut count = 4096u64;
    for _ in 0..40 {
        let twice = cells.clone();
        cells.merge(&twice);
        count *= 2;
    }
    let mut other = BinnedCells::new(1);
    other.merge_encoded(&bytes(&cells)).unwrap();
    assert_eq!(cells, other);
    assert_eq!(cells.exactly(0, count).to_f64(), -1.7e5);
    assert_eq!(cells.exactly(0, count).to_f32(), -1.7e5);
}

#[test]
fn the_largest_and_the_smallest() {
    let max = f64::MAX;
    let cells = one(&[max, max, -max], false);
    assert_eq!(cells.exactly(0, 1).to_f64(), max);
    assert_eq!(one(&[max, max], false).exactly(0, 1).to_f64(), f64::INFINITY);
    assert_eq!(one(&[max, max], false).exactly(0, 2).to_f64(), max);
    assert_eq!(one(&[5e-324, 5e-324, 5e-324], false).exactly(0, 1).to_f64(), 1.5e-323);
    assert_eq!(one(&[1e-310; 10], false).exactly(0, 10).to_f64(), 1e-310);
    assert!(one(&[f64::INFINITY, f64::NEG_INFINITY], false).exactly(0, 1).to_f64().is_nan());
}

#[test]
fn variance_of_one_value() {
    for x in [0.1, -1e100 / 7.0, 3.3e-150, 0.0] {
        let (mut high, mut low) = ([0.0], [0.0]);
        assert!(squares(&[x], &mut high, &mut low));
        let (mut sums, mut both) = (BinnedCells::new(1), BinnedCells::new(1));
        sums.add_run(0, &[x], false);
        both.add_run(0, &high, false);
        both.add_run(0, &low, false);
        assert_eq!(sums.variance(&both, 0, 1, 0).to_f64(), 0.0);
        assert!(sums.variance(&both, 0, 1, 1).to_f64().is_nan());
    }
}

#[test]
fn variance_of_values_that_differ_little() {
    let values: Vec<f64> = (0..5000).map(|i| 250.0 + 0.01 * f64::from(i * 7919 % 5000).sin()).collect();
    let (mut high, mut low) = (vec![0.0; 5000], vec![0.0; 5000]);
    assert!(squares(&values, &mut high, &mut low));
    let (mut sums, mut both) = (BinnedCells::new(1), BinnedCells::new(1));
    sums.add_run(0, &values, false);
    both.add_run(0, &high, false);
    both.add_run(0, &low, false);
    let mut exact = Moments::new();
    values.iter().for_each(|x| exact.add(*x));
    assert_eq!(sums.variance(&both, 0, 5000, 1).to_f64(), exact.variance(5000, 1, false));
    assert_eq!(sums.variance(&both, 0, 5000, 0).sqrt_f64(), exact.std(5000, 0, false));
}
