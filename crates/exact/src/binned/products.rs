//! Products as a rounded product and its error, both of which a cell can take.

/// Factors of this magnitude or more are refused: their products, or what takes them apart, could overflow.
pub const LARGEST_FACTOR: f64 = f64::from_bits((500 + 1023) << 52);

/// `x * w` of each pair as `high + low`, exactly but for bits below 2^-1074 (Dekker 1971; no fused multiplication,
/// which not every machine has). Says whether every finite factor was below [`LARGEST_FACTOR`]: where not, what is
/// written is of no use. NaN and infinite products have a `low` of 0. As many are written as the shortest slice has.
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

/// `x * x` of each value, as [`products`] has it.
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
