//! Products as a rounded product and its error. A cell can take both.

/// Factors of this magnitude or more are refused, because their products, or the numbers that split them, could
/// overflow.
pub const LARGEST_FACTOR: f64 = f64::from_bits((500 + 1023) << 52);

/// Writes `x * w` of each pair as `high + low`, which is exact except for bits below 2^-1074 (Dekker 1971, without
/// fused multiplication, which not every machine has). Returns whether every finite factor was below
/// [`LARGEST_FACTOR`]. If not, the results are wrong. NaN and infinite products have a `low` of 0. The number of
/// results is the length of the shortest slice.
pub fn products(x: &[f64], w: &[f64], high: &mut [f64], low: &mut [f64]) -> bool {
    let mut fine = true;
    for (((x, w), high), low) in x.iter().zip(w).zip(high).zip(low) {
        let product = x * w;
        let finite = product.is_finite();
        let inside = x.abs() < LARGEST_FACTOR && w.abs() < LARGEST_FACTOR;
        fine &= inside || !(x.is_finite() && w.is_finite());
        let ((a, b), (c, d)) = (halves(*x), halves(*w));
        let rest = ((a * c - product) + (a * d + b * c)) + b * d;
        *high = product;
        *low = if finite { rest } else { 0.0 };
    }
    fine
}

/// Writes `x * x` of each value, like [`products`].
pub fn squares(x: &[f64], high: &mut [f64], low: &mut [f64]) -> bool {
    products(x, x, high, low)
}

#[inline(always)]
fn halves(x: f64) -> (f64, f64) {
    const SPLITTER: f64 = 134_217_729.0; // 2^27 + 1
    let scaled = SPLITTER * x;
    let high = scaled - (scaled - x);
    (high, x - high)
}
