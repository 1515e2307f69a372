//! Steps of equal length around a circle: the first that lands in an interval, found without taking them all.

use std::ops::Range;

/// The smallest `k` with `(from + k * step) % circle` in `wanted`; none if no `k` has it.
///
/// `from` and `step` lie below `circle`, `wanted` is a part of `0..circle` that is not empty, and `circle` is
/// at most 2^63. Takes O(log circle) divisions.
pub(crate) fn first_step_into(from: u64, step: u64, circle: u64, wanted: Range<u64>) -> Option<u64> {
    if wanted.contains(&from) {
        return Some(0);
    }
    // Turned so that `from` becomes 0, the interval does not pass 0, for it does not hold it.
    let low = (wanted.start + circle - from) % circle;
    let high = (wanted.end - 1 + circle - from) % circle;
    first_multiple(step, circle, low, high)
}

/// The smallest `k` with `low <= k * step % circle <= high`, where `step < circle` and `low <= high < circle`.
///
/// If a multiple of `step` lies in the interval, that is it. If not, `k` goes around `turns` times, and
/// `turns * circle` must fall, modulo `step`, into the mirrored interval: the same question on a circle of
/// `step`. The pair shrinks as in Euclid's algorithm, so the depth is at most 92.
fn first_multiple(step: u64, circle: u64, low: u64, high: u64) -> Option<u64> {
    if low == 0 {
        return Some(0);
    }
    if step == 0 {
        return None;
    }
    let k = low.div_ceil(step);
    if k * step <= high {
        return Some(k);
    }
    let mirrored = |x: u64| (step - x % step) % step;
    let turns = first_multiple(circle % step, step, mirrored(high), mirrored(low))?;
    // Below 2^63 * 2^63, and the quotient below `circle`.
    Some((u128::from(low) + u128::from(circle) * u128::from(turns)).div_ceil(u128::from(step)) as u64)
}

/// Greatest common divisor; `gcd(a, 0)` is `a`.
fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Least common multiple, if it fits a `u64`. Neither may be 0.
pub(crate) fn lcm(a: u64, b: u64) -> Option<u64> {
    let (a, b) = (u128::from(a), u128::from(b));
    u64::try_from(a / gcd(a, b) * b).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_small_circle_agrees_with_taking_the_steps() {
        for circle in 1..=24u64 {
            for (from, step) in (0..circle).flat_map(|from| (0..circle).map(move |step| (from, step))) {
                for (low, high) in (0..circle).flat_map(|low| (low + 1..=circle).map(move |high| (low, high)))
                {
                    let taken = (0..circle).find(|k| (low..high).contains(&((from + k * step) % circle)));
                    let found = first_step_into(from, step, circle, low..high);
                    assert_eq!(found, taken, "{from} + k {step} mod {circle} in {low}..{high}");
                }
            }
        }
    }

    #[test]
    fn the_largest_circle_does_not_overflow() {
        let circle = 1u64 << 63;
        for step in [1, 3, (1 << 62) - 1, (1 << 62) + 1, circle - 1, 0x5DEE_CE66_D123_4567] {
            let at = circle - 12_345;
            let k = first_step_into(7, step, circle, at..at + 1).unwrap();
            assert_eq!((7 + u128::from(k) * u128::from(step)) % u128::from(circle), u128::from(at));
        }
        // An even step from an even place never reaches an odd one.
        assert_eq!(first_step_into(0, 6, circle, 5..6), None);
    }

    #[test]
    fn least_common_multiples() {
        assert_eq!(lcm(4096 * 5, 80), Some(20_480));
        assert_eq!(lcm(7, 9), Some(63));
        assert_eq!(lcm(u64::MAX, u64::MAX - 1), None);
    }
}
