//! Round numbers along an axis, and their labels.

use gristmill_client::Labels;

use super::Dimension;

/// A position on an axis and its label.
pub type Tick = (f64, String);

/// At most `most` round numbers from `low` to `high`.
pub fn numbers(low: f64, high: f64, most: usize) -> Vec<Tick> {
    let rough = (high - low) / most.max(1) as f64;
    if !(rough.is_finite() && rough > 0.0) {
        return Vec::new();
    }
    let power = rough.log10().floor();
    for step in [1.0, 2.0, 2.5, 5.0, 10.0, 20.0, 25.0, 50.0] {
        let step = step * 10f64.powi(power as i32);
        let (first, last) = ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor());
        if last - first < most as f64 {
            let count = (last - first).max(-1.0) as i64 + 1;
            let all = (0..count).map(|i| (first + i as f64) * step);
            return all.map(|x| (x, label(x, step, low.abs().max(high.abs())))).collect();
        }
    }
    Vec::new()
}

/// The label of a tick: as many digits as distinguish it from its neighbours, a step away.
fn label(x: f64, step: f64, largest: f64) -> String {
    let digits = (-step.log10()).ceil().max(0.0) as usize;
    let even = |digits: usize| {
        let scaled = step * 10f64.powi(digits as i32);
        (scaled - scaled.round()).abs() < 1e-6 * scaled
    };
    let digits = if even(digits) { digits } else { digits + 1 };
    if x == 0.0 || x.abs() < step * 1e-6 {
        return "0".to_owned();
    }
    if largest >= 1e6 || digits > 5 {
        let power = x.abs().log10().floor() as i32;
        let mantissa = x / 10f64.powi(power);
        let decimals = (f64::from(power) - step.log10()).ceil().clamp(0.0, 6.0) as usize;
        return format!("{mantissa:.decimals$}e{power}");
    }
    format!("{x:.digits$}")
}

/// Ticks of a dimension whose elements lie from `low` to `high`: dates, round numbers or the names of groups.
/// `by_coordinate`: the positions are coordinates, not indices.
pub fn along(dimension: &Dimension, by_coordinate: bool, low: f64, high: f64, most: usize) -> Vec<Tick> {
    let few = |all: &[String]| {
        let every = all.len().div_ceil(most.max(1)).max(1);
        let all = all.iter().enumerate().step_by(every);
        all.map(|(i, text)| (i as f64, text.clone())).collect()
    };
    match (&dimension.labels, dimension.time) {
        (Some(Labels::Texts(all)), _) => few(all),
        (Some(Labels::Floats(_)), Some(time)) if by_coordinate => time.round_dates(low, high, most),
        (Some(Labels::Whole(all)), _) if by_coordinate && all.len() <= most => {
            all.iter().map(|n| (f64::from(*n), n.to_string())).collect()
        }
        (Some(Labels::Whole(_)), _) if by_coordinate => {
            let whole = |tick: &Tick| tick.0.fract() == 0.0;
            numbers(low, high, most).into_iter().filter(whole).collect()
        }
        (Some(Labels::Floats(all)), _) if !by_coordinate && dimension.time.is_none() => {
            few(&all.iter().map(f64::to_string).collect::<Vec<_>>())
        }
        (None, _) => numbers(low, high, most).into_iter().filter(|tick| tick.0.fract() == 0.0).collect(),
        _ => numbers(low, high, most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(low: f64, high: f64, most: usize) -> Vec<String> {
        numbers(low, high, most).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn numbers_are_round() {
        assert_eq!(texts(-79.5, 89.5, 8), ["-60", "-40", "-20", "0", "20", "40", "60", "80"]);
        assert_eq!(texts(0.0, 1.0, 5), ["0", "0.25", "0.50", "0.75", "1.00"]);
        assert_eq!(texts(0.0, 3e9, 4), ["0", "1e9", "2e9", "3e9"]);
        assert_eq!(texts(1e-9, 3e-9, 4), ["1e-9", "2e-9", "3e-9"]);
        assert!(texts(1.0, 1.0, 5).is_empty() && texts(0.0, f64::INFINITY, 5).is_empty());
        for most in 2..12 {
            assert!((1..=most).contains(&texts(-3.7, 1234.5, most).len()));
        }
    }
}
