//! Tests of the laws of binned sums, and of their distance from exact sums.

use proptest::prelude::*;

use super::*;
use crate::path::Path;
use crate::{ExactNumber, Moments, Sum};

/// Values of all kinds that are difficult to sum.
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

/// Compares the binned sum of at most 2^20 values with the exact sum.
fn check_error(values: &[f64], skip: bool) -> Result<(), TestCaseError> {
    let cells = one(values, skip);
    let mut sum = Sum::new();
    values.iter().for_each(|x| sum.add(*x));
    let expected = if skip { sum.value_skip_nan() } else { sum.value() };
    let got = cells.exactly(0, 1).to_f64();
    let no_infinity = values.iter().all(|x| !x.is_infinite()) && !expected.is_nan() && !got.is_nan();
    if no_infinity && expected.is_finite() != got.is_finite() {
        // Both sums lie on different sides of the largest value plus half an ulp. The bound is far below an ulp there.
        prop_assert!(expected.abs().min(got.abs()) == f64::MAX, "{} {}", expected, got);
        prop_assert!(expected.signum() == got.signum(), "{} {}", expected, got);
        return Ok(());
    }
    if !expected.is_finite() || !got.is_finite() {
        prop_assert!(same(expected, got), "{} {}", expected, got);
        return Ok(());
    }
    // The difference is exact, except for half an ulp of each.
    let largest = values.iter().filter(|x| x.is_finite()).fold(0f64, |m, x| m.max(x.abs()));
    let bound = largest * 2f64.powi(-80) * values.len() as f64;
    let ulp = f64::from_bits(expected.abs().to_bits() + 1) - expected.abs();
    prop_assert!((got / 2.0 - expected / 2.0).abs() <= bound / 2.0 + ulp, "{} {} {}", expected, got, bound);
    Ok(())
}

/// The sum is below the limit of overflow by less than the bound.
#[test]
fn a_sum_at_the_limit_of_overflow_is_within_the_bound() {
    let half_ulp = 2f64.powi(970);
    for sign in [1.0, -1.0] {
        for least in [-1e126, 0.0, 1e126] {
            let values = [f64::MAX, least, half_ulp].map(|x| x * sign);
            check_error(&values, false).unwrap();
        }
        // A difference that the bins hold decides.
        let values = [f64::MAX, half_ulp, -2f64.powi(950)].map(|x| x * sign);
        assert_eq!(one(&values, false).exactly(0, 1).to_f64(), f64::MAX * sign);
    }
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
    fn the_error_is_within_the_bound(values in prop::collection::vec(nasty(), 1..60), skip: bool) {
        check_error(&values, skip)?;
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
fn totals_beyond_64_bits_round_trip() {
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
fn largest_and_smallest_values_are_summed_exactly() {
    let max = f64::MAX;
    let cells = one(&[max, max, -max], false);
    assert_eq!(cells.exactly(0, 1).to_f64(), max);
    assert_eq!(one(&[max, max], false).exactly(0, 1).to_f64(), f64::INFINITY);
    assert_eq!(one(&[max, max], false).exactly(0, 2).to_f64(), max);
    assert_eq!(one(&[5e-324, 5e-324, 5e-324], false).exactly(0, 1).to_f64(), 1.5e-323);
    assert_eq!(one(&[1e-310; 10], false).exactly(0, 10).to_f64(), 1e-310);
    assert!(one(&[f64::INFINITY, f64::NEG_INFINITY], false).exactly(0, 1).to_f64().is_nan());
}

/// The sums of one cell, and the sums of its squares.
fn spread(values: &[f64]) -> (BinnedCells, SquareCells) {
    let (mut high, mut low) = (vec![0.0; values.len()], vec![0.0; values.len()]);
    assert!(squares(values, &mut high, &mut low));
    let (mut sums, mut both) = (BinnedCells::new(1), SquareCells::new(1));
    sums.add_run(0, values, false);
    both.add_run(0, &high, false);
    both.add_run(0, &low, false);
    (sums, both)
}

#[test]
fn variance_of_one_value_is_zero() {
    for x in [0.1, -1e100 / 7.0, 3.3e-150, 0.0] {
        let (sums, both) = spread(&[x]);
        assert_eq!(sums.variance(&both, 0, 1, 0).to_f64(), 0.0);
        assert!(sums.variance(&both, 0, 1, 1).to_f64().is_nan());
    }
}

#[test]
fn variance_of_values_that_differ_little_is_exact() {
    let values: Vec<f64> = (0..5000).map(|i| 250.0 + 0.01 * f64::from(i * 7919 % 5000).sin()).collect();
    let (sums, both) = spread(&values);
    let mut exact = Moments::new();
    values.iter().for_each(|x| exact.add(*x));
    assert_eq!(sums.variance(&both, 0, 5000, 1).to_f64(), exact.variance(5000, 1, false));
    assert_eq!(sums.variance(&both, 0, 5000, 0).sqrt_f64(), exact.std(5000, 0, false));
}

/// Values whose distances are about `2^-step` of themselves, with any factor.
fn near() -> impl Strategy<Value = Vec<f64>> {
    (0i32..53, -400i32..400, 1.0..2.0f64, prop::collection::vec(-8i32..8, 2..40)).prop_map(
        |(step, scale, x, steps)| {
            let by = 2f64.powi(-step);
            steps.into_iter().map(|i| (x + f64::from(i) * by) * 2f64.powi(scale)).collect()
        },
    )
}

proptest! {
    #[test]
    fn variances_are_exact_however_small(values in near(), ddof in 0u64..2) {
        let values: Vec<f64> = values.into_iter().filter(|x| *x != 0.0).collect();
        let largest = values.iter().fold(0f64, |m, x| m.max(x.abs()));
        prop_assume!(values.len() > 1 && values.iter().all(|x| x.abs() >= largest / 128.0));
        let (sums, both) = spread(&values);
        let mut exact = Moments::new();
        values.iter().for_each(|x| exact.add(*x));
        let n = values.len() as u64;
        prop_assert!(same(sums.variance(&both, 0, n, ddof).to_f64(), exact.variance(n, ddof, false)));
    }

    #[test]
    fn variances_beside_a_larger_value_keep_their_digits(
        values in near(), large in 1i32..60, ddof in 0u64..2,
    ) {
        let mut values = values;
        values.push(values[0] * 2f64.powi(large));
        let (sums, both) = spread(&values);
        let mut exact = Moments::new();
        values.iter().for_each(|x| exact.add(*x));
        let n = values.len() as u64;
        let (got, expected) = (sums.variance(&both, 0, n, ddof).to_f64(), exact.variance(n, ddof, false));
        prop_assert!((got - expected).abs() <= expected * 2f64.powi(-52), "{} {}", got, expected);
    }

    #[test]
    fn comoments_are_those_of_fractions(x in near(), y in near(), wide: bool) {
        let n = x.len().min(y.len());
        let (mut x, y) = (x[..n].to_vec(), &y[..n]);
        if wide {
            x[0] *= 1e9;
        }
        let (mut high, mut low) = (vec![0.0; n], vec![0.0; n]);
        assert!(products(&x, y, &mut high, &mut low));
        let [mut sx, mut sy, mut sxy] = [(); 3].map(|()| Cells::<5>::new(1));
        sx.add_run(0, &x, false);
        sy.add_run(0, y, false);
        sxy.add_run(0, &high, false);
        sxy.add_run(0, &low, false);
        let got = sx.comoment(&sy, &sxy, 0, n as u64).to_f64();
        // All numbers are in units of 2^-1000, like the values.
        let whole = |x: f64| {
            let Some((num, exp2)) = parts(x) else { return num_bigint::BigInt::ZERO };
            num << (exp2 + 1000) as u32
        };
        let sum = |values: &mut dyn Iterator<Item = num_bigint::BigInt>| values.fold(num_bigint::BigInt::ZERO, |a, b| a + b);
        let all_x = sum(&mut x.iter().map(|x| whole(*x)));
        let all_y = sum(&mut y.iter().map(|y| whole(*y)));
        let all_xy = sum(&mut x.iter().zip(y).map(|(x, y)| whole(*x) * whole(*y)));
        let fraction = all_xy * n - all_x * all_y;
        let expected = ExactNumber::ratio(fraction, (n as u64).into(), -2000).to_f64();
        prop_assert!(same(got, expected), "{} {}", got, expected);
    }

    #[test]
    fn a_comoment_of_one_pair_is_zero(x in prop::num::f64::NORMAL, y in prop::num::f64::NORMAL) {
        // The product may have bits below the least f64. The sum of products lacks them.
        let (x, y) = (x * 2f64.powi(-530), y * 2f64.powi(-530));
        let (mut high, mut low) = ([0.0], [0.0]);
        assert!(products(&[x], &[y], &mut high, &mut low));
        let [mut sx, mut sy, mut sxy] = [(); 3].map(|()| Cells::<5>::new(1));
        sx.add_run(0, &[x], false);
        sy.add_run(0, &[y], false);
        sxy.add_run(0, &[high[0], low[0]], false);
        prop_assert_eq!(sx.comoment(&sy, &sxy, 0, 1).to_f64(), 0.0);
    }

    #[test]
    fn a_sum_and_its_remainder_are_the_exact_sum(values in near(), more in near()) {
        let all: Vec<f64> = values.into_iter().chain(more).collect();
        let cells = one(&all, false);
        let rounded = cells.exactly(0, 1).to_f64();
        let low = cells.remainder(0, rounded);
        prop_assert!(low.abs() <= rounded.abs() * 2f64.powi(-53));
        // The exact sum minus both leaves nothing that two numbers could hold.
        let mut exact = Sum::new();
        all.iter().for_each(|x| exact.add(*x));
        let left = exact.remainder(rounded);
        let largest = all.iter().fold(0f64, |m, x| m.max(x.abs()));
        let bound = largest * 2f64.powi(-80) * all.len() as f64;
        prop_assert!((left - low).abs() <= left.abs() * 2f64.powi(-50) + rounded.abs() * 2f64.powi(-75) + bound);
    }
}

/// A finite number as `integer * 2^exponent`; `None` for 0.
fn parts(x: f64) -> Option<(num_bigint::BigInt, i32)> {
    let field = ((x.to_bits() >> 52) & 0x7ff) as i32;
    let fraction = (x.to_bits() & ((1 << 52) - 1)) as i64;
    let (num, exp2) = if field == 0 { (fraction, -1074) } else { (fraction | (1 << 52), field - 1075) };
    (num != 0).then(|| (num_bigint::BigInt::from(if x < 0.0 { -num } else { num }), exp2))
}
