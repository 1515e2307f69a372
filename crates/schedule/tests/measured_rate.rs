//! Measured rates with right and with impossible samples.

use gristmill_schedule::{
    HALF_LIFE, LEAST_SAMPLE, MAX_FACTOR, MAX_KERNELS, MAX_RATE, MIN_RATE, MeasuredRate, Rates,
};
use proptest::prelude::*;

/// Any sample that a broken clock or a false figure of a node could give.
fn absurd() -> impl Strategy<Value = (u64, f64)> {
    let seconds = prop_oneof![
        Just(0.0),
        Just(-1.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::MAX),
        Just(5e-324),
        1e-9..1e9
    ];
    (prop_oneof![Just(0), Just(1), Just(u64::MAX), any::<u64>()], seconds)
}

proptest! {
    #[test]
    fn the_estimate_reaches_a_constant_rate_from_any_prior(
        prior in -9.0..18.0, rate in 0.0..12.0, each in LEAST_SAMPLE / 4.0..2.0,
    ) {
        let (prior, rate): (f64, f64) = (10_f64.powf(prior), 10_f64.powf(rate));
        let mut learned = MeasuredRate::new(prior).unwrap();
        let mut worked = 0.0;
        // Rates may differ by a factor of 10^27. Each half-life brings the estimate closer by a factor above 1.8.
        while worked < 120.0 * HALF_LIFE {
            // The number of bytes is whole, and the time fits it exactly.
            let bytes = (rate * each).ceil();
            learned.observe(bytes as u64, bytes / rate);
            worked += bytes / rate;
        }
        prop_assert!((learned.rate() / rate - 1.0).abs() < 0.01, "{} for {rate}", learned.rate());
        prop_assert!(learned.confidence() > 0.99);
    }

    #[test]
    fn no_sample_changes_the_rate_by_more_than_the_factor(
        prior in MIN_RATE..MAX_RATE, samples in prop::collection::vec(absurd(), 1..200),
    ) {
        let mut learned = MeasuredRate::new(prior).unwrap();
        for (bytes, seconds) in samples {
            let before = learned.rate();
            learned.observe(bytes, seconds);
            let factor = learned.rate() / before;
            let most = MAX_FACTOR * (1.0 + 1e-9);
            prop_assert!((1.0 / most..=most).contains(&factor), "{factor}");
            prop_assert!((MIN_RATE..=MAX_RATE).contains(&learned.rate()));
            prop_assert!((0.0..=1.0).contains(&learned.confidence()));
        }
    }
}

#[test]
fn empty_samples_are_ignored_and_short_samples_add_up() {
    let new = MeasuredRate::new(1e9).unwrap();
    let mut learned = new;
    for (bytes, seconds) in [(0, 1.0), (1, 0.0), (1, -1.0), (1, f64::NAN), (1, f64::INFINITY)] {
        learned.observe(bytes, seconds);
        assert_eq!(learned, new);
    }
    let (mut pieces, mut whole) = (new, new);
    for _ in 0..8 {
        assert_eq!(pieces.rate(), 1e9);
        pieces.observe(1000, LEAST_SAMPLE / 8.0);
    }
    whole.observe(8000, LEAST_SAMPLE);
    assert_eq!(pieces, whole);
    assert!(pieces.rate() < 1e9);
    for prior in [0.0, f64::NAN, f64::INFINITY, -5.0] {
        assert!(MeasuredRate::new(prior).unwrap_err().to_string().contains("the prior"));
    }
}

#[test]
fn an_old_rate_counts_half_after_a_half_life() {
    let mut learned = MeasuredRate::new(1e9).unwrap();
    (0..1000).for_each(|_| learned.observe(1_000_000_000, 1.0));
    // The samples differ by less than the factor, so they are not clamped.
    (0..HALF_LIFE as usize).for_each(|_| learned.observe(500_000_000, 1.0));
    assert!((learned.rate() / 0.75e9 - 1.0).abs() < 1e-6, "{}", learned.rate());
}

#[test]
fn the_kernel_that_was_measured_the_longest_ago_is_removed() {
    let mut rates = Rates::new(1e9).unwrap();
    assert!(rates.is_empty());
    rates.observe("first", 50_000_000, 1.0);
    let first = rates.get("first").rate();
    assert!(first < 1e9);
    for i in 1..MAX_KERNELS {
        rates.observe(&format!("kernel {i}"), 1, 1.0);
    }
    rates.observe("first", 50_000_000, 1.0);
    rates.observe("one more", 1, 1.0);
    assert_eq!(rates.len(), MAX_KERNELS);
    assert!(rates.get("first").rate() < first);
    assert_eq!(rates.get("kernel 1").rate(), 1e9); // it was removed, so this is the prior
    assert_eq!(rates.get("kernel 1").confidence(), 0.0);
    assert!(rates.get("kernel 2").confidence() > 0.0);
}

#[test]
fn the_prior_of_a_kernel_counts_until_the_kernel_is_measured() {
    let mut rates = Rates::new(1e9).unwrap();
    rates.expect("fast", 5e9).unwrap();
    assert_eq!((rates.get("fast").rate(), rates.get("fast").confidence()), (5e9, 0.0));
    // A tenth of a second of work counts more than the prior.
    rates.observe("fast", 100_000_000, 0.1);
    assert!(rates.get("fast").rate() < 3e9);
    // A measured rate does not change.
    let measured = rates.get("fast").rate();
    rates.expect("fast", 5e9).unwrap();
    assert_eq!(rates.get("fast").rate(), measured);
    assert!(rates.expect("broken", f64::NAN).is_err());
}

#[test]
fn an_earlier_measurement_counts_by_its_seconds_of_work() {
    let mut rate = MeasuredRate::new(1e9).unwrap();
    (0..20).for_each(|_| rate.observe(50_000_000, 0.5));
    let again = MeasuredRate::from_measurement(rate.rate(), rate.seconds()).unwrap();
    assert_eq!(again.rate(), rate.rate());
    assert!((again.seconds() / rate.seconds() - 1.0).abs() < 0.01, "{rate:?} {again:?}");
    assert!(again.confidence() > 0.99);
    for (rate, seconds) in [(f64::NAN, 1.0), (0.0, 1.0), (1e9, -1.0), (1e9, f64::INFINITY)] {
        assert!(MeasuredRate::from_measurement(rate, seconds).is_err(), "{rate} {seconds}");
    }
}

#[test]
fn the_first_sample_outweighs_a_guess() {
    let mut rates = Rates::new(1e9).unwrap();
    rates.expect("slow", 3e8).unwrap();
    assert_eq!(rates.get("slow").confidence(), 0.0);
    for kernel in ["slow", "unknown"] {
        rates.observe(kernel, 7_000_000, 0.01);
        let rate = rates.get(kernel).rate();
        assert!((5e8..=8.5e8).contains(&rate), "{kernel} {rate}");
    }
}
