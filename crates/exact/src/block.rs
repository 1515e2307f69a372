//! From bytes to blocks: how many levels a block needs, and what to do with a block no level count fits.

use crate::deposit::{AnyBelow, BLOCK_VALUES, Clean, Deposit, Element, Extent, Largest, square_has_error};
use crate::path::Path;
use crate::wide::Wide;

/// Blocks shorter than this are added value by value.
const SHORTEST_BLOCK: usize = 64;

/// Blocks after which fewer levels are tried again.
const BLOCKS_BETWEEN_TRIES: u8 = 16;

/// The numbers of levels that are compiled; one past the last entry means value by value.
const LEVELS: [usize; 6] = [1, 2, 3, 4, 6, 8];

/// Lanes of a block of many levels, and of one of few. More lanes hide the latency of the additions; many
/// levels leave no registers for them.
const FEW_LANES: usize = 8;
const MANY_LANES: usize = 16;

/// The square of a value from here up has no bit below 2^-1074.
const SMALLEST_SQUARABLE: f64 = f64::from_bits((1023 - 485) << 52);

/// Values, or squares, of a block on levels are at most 2 to this: then `2^(k+1)`, where a lane of the first
/// level may end, is at most 2^1023 and finite.
const LARGEST_BOUND: i32 = 1022 - 1 - (BLOCK_VALUES / FEW_LANES).ilog2() as i32;

/// The number of levels that was enough for the last block. It changes the speed, never the sum.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LevelChoice {
    /// Steps above the number of levels that suits most data of the type.
    above: u8,
    blocks: u8,
}

/// One exact total of values, or of squares.
#[derive(Clone, Debug)]
pub(crate) struct Total<const LIMBS: usize, const LOWEST: i32, const SQUARE: bool> {
    pub(crate) wide: Wide<LIMBS, LOWEST>,
    choice: LevelChoice,
}

impl<const LIMBS: usize, const LOWEST: i32, const SQUARE: bool> Total<LIMBS, LOWEST, SQUARE> {
    pub(crate) const fn new(wide: Wide<LIMBS, LOWEST>) -> Self {
        Total { wide, choice: LevelChoice { above: 0, blocks: 0 } }
    }

    /// Adds one finite value.
    #[inline]
    pub(crate) fn add(&mut self, x: f64) {
        if SQUARE { self.wide.add_square(x) } else { self.wide.add_f64(x) }
    }

    /// Adds a block of finite values.
    fn add_block<E: Element>(&mut self, path: Path, block: &[E], bound: i32) {
        let (most, rest) = block.split_at(block.len() - block.len() % MANY_LANES);
        self.add_each(rest);
        let bound = if SQUARE { 2 * bound } else { bound };
        if most.len() < SHORTEST_BLOCK || bound > LARGEST_BOUND {
            return self.add_each(most);
        }
        // What suits most data: a level holds about 45 bits.
        let first = usize::from(E::PRECISION > 24) + usize::from(SQUARE);
        loop {
            let exact = match LEVELS.get(first + usize::from(self.choice.above)) {
                Some(1) => self.deposit::<E, 1, MANY_LANES>(path, most, bound),
                Some(2) => self.deposit::<E, 2, MANY_LANES>(path, most, bound),
                Some(3) => self.deposit::<E, 3, FEW_LANES>(path, most, bound),
                Some(4) => self.deposit::<E, 4, FEW_LANES>(path, most, bound),
                Some(6) => self.deposit::<E, 6, FEW_LANES>(path, most, bound),
                Some(8) => self.deposit::<E, 8, FEW_LANES>(path, most, bound),
                _ => {
                    self.add_each(most);
                    true
                }
            };
            if exact {
                break;
            }
            self.choice.above += 1;
        }
        self.choice.blocks += 1;
        if self.choice.blocks >= BLOCKS_BETWEEN_TRIES {
            self.choice = LevelChoice { above: self.choice.above.saturating_sub(1), blocks: 0 };
        }
    }

    fn add_each<E: Element>(&mut self, values: &[E]) {
        for raw in values {
            self.add(raw.widen());
        }
    }

    /// Adds a block whose values, or squares, are at most `2^bound`, on `L` levels; where that is not exact it
    /// changes nothing and answers `false`.
    fn deposit<E: Element, const L: usize, const LANES: usize>(
        &mut self,
        path: Path,
        values: &[E],
        bound: i32,
    ) -> bool {
        let lane_bits = const { (BLOCK_VALUES / LANES).ilog2() as i32 };
        // After the first level a lane also takes the errors of the squares.
        let later_bits = lane_bits + i32::from(SQUARE && square_has_error::<E>());
        // n numbers of at most 2^b stay within 2^(k-1) of the start if k = b + log2(n) + 1, and leave at most
        // half a unit of the grid, 2^(k-53). A grid of 2^-1074 leaves nothing.
        let mut exponents = [0i32; L];
        let mut next = bound + lane_bits + 1;
        for exponent in &mut exponents {
            *exponent = next.max(-1022);
            next = *exponent - 53 + later_bits + 1;
        }
        let starts = exponents.map(|k| f64::from_bits((((k + 1023) as u64) << 52) | (1 << 51)));
        let (groups, _) = values.as_chunks::<LANES>();
        let Some(sums) = path.run(Deposit::<E, SQUARE, L, LANES> { groups, starts }) else {
            return false;
        };
        for (sum, exponent) in sums.into_iter().zip(exponents) {
            self.wide.add_scaled(sum, exponent - 52);
        }
        true
    }
}

impl<const LIMBS: usize, const LOWEST: i32> Total<LIMBS, LOWEST, true> {
    /// Adds the squares of a block whose values are below `2^bound`, one by one where the error of a rounded
    /// square would itself be rounded.
    fn add_squares<E: BlockElement>(&mut self, path: Path, block: &[E], bound: i32) {
        if E::squarable(path, block) {
            self.add_block(path, block, bound);
        } else {
            self.add_each(block);
        }
    }
}

/// The total of values: 2^-1074 to 2^1024, and 142 bits for sign and number of values.
pub(crate) type ValueTotal = Total<70, -1074, false>;
/// The total of squares: 2^-2148 to 2^2048, and 156 bits for sign and number of values.
pub(crate) type SquareTotal = Total<136, -2148, true>;

/// An element with the passes over blocks that depend on its type.
pub(crate) trait BlockElement: Element {
    fn largest(path: Path, values: &[Self]) -> Extent;
    /// Whether no value is so small that its square loses bits.
    fn squarable(path: Path, values: &[Self]) -> bool;
}

impl BlockElement for [u8; 8] {
    fn largest(path: Path, values: &[Self]) -> Extent {
        path.run(Largest { values })
    }

    fn squarable(path: Path, values: &[Self]) -> bool {
        !path.run(AnyBelow { values, limit: SMALLEST_SQUARABLE })
    }
}

impl BlockElement for [u8; 4] {
    fn largest(path: Path, values: &[Self]) -> Extent {
        path.run(Largest { values })
    }

    /// The smallest `f32` is 2^-149.
    fn squarable(_: Path, _: &[Self]) -> bool {
        true
    }
}

/// How many values were not finite. Counts stop at the largest `u64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NonFinite {
    pub(crate) nans: u64,
    pub(crate) positive: u64,
    pub(crate) negative: u64,
}

impl NonFinite {
    pub(crate) fn merge(&mut self, other: &NonFinite) {
        self.nans = self.nans.saturating_add(other.nans);
        self.positive = self.positive.saturating_add(other.positive);
        self.negative = self.negative.saturating_add(other.negative);
    }

    /// Counts `x` if it is not finite, and says whether it was.
    #[inline]
    pub(crate) fn take(&mut self, x: f64) -> bool {
        if x.is_finite() {
            return false;
        }
        let count = match (x.is_nan(), x > 0.0) {
            (true, _) => &mut self.nans,
            (false, true) => &mut self.positive,
            (false, false) => &mut self.negative,
        };
        *count = count.saturating_add(1);
        true
    }
}

/// Adds values to a total and, where one is given, their squares to another.
pub(crate) fn add_values<E: BlockElement>(
    path: Path,
    values: &[E],
    non_finite: &mut NonFinite,
    total: &mut ValueTotal,
    mut squares: Option<&mut SquareTotal>,
) {
    if values.len() < SHORTEST_BLOCK {
        for raw in values {
            let x = raw.widen();
            if !non_finite.take(x) {
                total.add(x);
                if let Some(squares) = &mut squares {
                    squares.add(x);
                }
            }
        }
        return;
    }
    // Holds one block, and only once a block has values that are not finite.
    let mut buffer = Vec::new();
    for block in values.chunks(BLOCK_VALUES) {
        let extent = E::largest(path, block);
        if extent.finite {
            total.add_block(path, block, extent.bound);
            if let Some(squares) = &mut squares {
                squares.add_squares(path, block, extent.bound);
            }
            continue;
        }
        buffer.resize(block.len(), [0; 8]);
        let [nans, positive, negative] = path.run(Clean { values: block, out: &mut buffer });
        non_finite.merge(&NonFinite { nans, positive, negative });
        let bound = BlockElement::largest(path, &buffer).bound;
        total.add_block(path, &buffer, bound);
        if let Some(squares) = &mut squares {
            squares.add_squares(path, &buffer, bound);
        }
    }
}
