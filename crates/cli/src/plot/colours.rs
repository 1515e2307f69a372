//! Colours for numbers: from a dark violet over blue and green to yellow, in steps that look equally large. They differ
//! in grey, too.

use super::canvas::Colour;

/// The colour of missing values.
pub const MISSING: Colour = [200, 200, 200];

/// Equally far from each other in Oklab (Björn Ottosson, 2020): lightness from 0.27 to 0.92 in equal steps of the
/// path, hues from 308 to 105 degrees, as much chroma as sRGB has for them up to 0.165.
const PATH: [[f64; 3]; 13] = [
    [0.270, 0.082, -0.105],
    [0.320, 0.051, -0.137],
    [0.373, 0.007, -0.148],
    [0.424, -0.033, -0.137],
    [0.473, -0.051, -0.091],
    [0.534, -0.070, -0.062],
    [0.596, -0.089, -0.037],
    [0.656, -0.110, -0.008],
    [0.711, -0.134, 0.029],
    [0.760, -0.142, 0.073],
    [0.813, -0.118, 0.111],
    [0.867, -0.084, 0.140],
    [0.920, -0.043, 0.159],
];

/// 256 colours, the darkest first.
pub fn table() -> [Colour; 256] {
    std::array::from_fn(|i| {
        let along = i as f64 / 255.0 * (PATH.len() - 1) as f64;
        let at = (along as usize).min(PATH.len() - 2);
        let part = along - at as f64;
        let [l, a, b]: [f64; 3] =
            std::array::from_fn(|n| PATH[at][n] + part * (PATH[at + 1][n] - PATH[at][n]));
        srgb(l, a, b)
    })
}

/// Converts from Oklab, with the matrices of its description.
fn srgb(l: f64, a: f64, b: f64) -> Colour {
    let cube = |x: f64| x * x * x;
    let long = cube(l + 0.396_337_777_4 * a + 0.215_803_757_3 * b);
    let middle = cube(l - 0.105_561_345_8 * a - 0.063_854_172_8 * b);
    let short = cube(l - 0.089_484_177_5 * a - 1.291_485_548_0 * b);
    let linear = [
        4.076_741_662_1 * long - 3.307_711_591_3 * middle + 0.230_969_929_2 * short,
        -1.268_438_004_6 * long + 2.609_757_401_1 * middle - 0.341_319_396_5 * short,
        -0.004_196_086_3 * long - 0.703_418_614_7 * middle + 1.707_614_701_0 * short,
    ];
    linear.map(|x| {
        let x = x.clamp(0.0, 1.0);
        let shown = if x <= 0.003_130_8 { 12.92 * x } else { 1.055 * x.powf(1.0 / 2.4) - 0.055 };
        (255.0 * shown).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_lighter_and_never_jump() {
        let all = table();
        let light =
            |c: &Colour| 0.2126 * f64::from(c[0]) + 0.7152 * f64::from(c[1]) + 0.0722 * f64::from(c[2]);
        for pair in all.windows(2) {
            assert!(light(&pair[1]) > light(&pair[0]) - 0.6, "{pair:?}");
            assert!(pair[0].iter().zip(pair[1]).all(|(a, b)| a.abs_diff(b) <= 6), "{pair:?}");
        }
        assert!(light(&all[255]) > 2.0 * light(&all[128]) * 0.7 && light(&all[128]) > 3.0 * light(&all[0]));
        assert!(!all.contains(&MISSING));
    }
}
