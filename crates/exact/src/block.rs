//! Blocks of values: the trials of a number of levels for each block, and the addition of blocks that no number fits.

use crate::deposit::{
    AnyBelow, BLOCK_VALUES, CleanCopy, Deposit, Element, Extent, LargestExponent, square_has_error,
};
use crate::level_choice::LevelChoice;
use crate::non_finite::NonFinite;
use crate::path::Path;
use crate::wide::Wide;

/// Blocks shorter than this are added value by value.
const SHORTEST_BLOCK: usize = 64;

/// Values are deposited in groups of this number, or of a fraction of it.
const GROUP_VALUES: usize = 32;

/// Exponent of the smallest magnitude whose square has no bit below 2^-1074.
const SMALLEST_SQUARABLE: i32 = -485;

/// Exponent of the largest bound of values, or squares, of a block on levels. With it `2^(k+1)`, at which a lane of
/// the first level may end, is at most 2^1023 and finite.
const LARGEST_BOUND: i32 = 1022 - 1 - (BLOCK_VALUES / 8).ilog2() as i32;

/// One exact total of values, or of squares.
#[derive(Clone, Debug)]
pub(crate) struct Total<const LIMBS: usize, const LOWEST: i32, const SQUARE: bool> {
    pub(crate) wide: Wide<LIMBS, LOWEST>,
    choice: LevelChoice,
}

/// The total of values: 2^-1074 to 2^1024, and 142 bits for the sign and the number of values.
pub(crate) type ValueTotal = Total<70, -1074, false>;
/// The total of squares: 2^-2148 to 2^2048, and 156 bits for the sign and the number of values.
pub(crate) type SquareTotal = Total<136, -2148, true>;

/// The result of one trial with a block.
struct Trial {
    extent: Extent,
    /// The exponent of a power of two of which all values are multiples; `None` if the block was not added.
    grid: Option<i32>,
}

/// A block that was added.
struct AddedBlock {
    /// All its values are below `2^bound`.
    bound: i32,
    /// All its values are multiples of `2^grid`.
    grid: i32,
}

impl<const LIMBS: usize, const LOWEST: i32, const SQUARE: bool> Total<LIMBS, LOWEST, SQUARE> {
    pub(crate) const fn new(wide: Wide<LIMBS, LOWEST>) -> Self {
        Total { wide, choice: LevelChoice::new() }
    }

    /// Adds one finite value.
    #[inline]
    pub(crate) fn add(&mut self, x: f64) {
        if SQUARE { self.wide.add_square(x) } else { self.wide.add_f64(x) }
    }

    fn add_each<E: Element>(&mut self, values: &[E]) {
        for raw in values {
            self.add(raw.widen());
        }
    }

    /// Adds whole groups. Their values, or squares, are below `2^known` if that is known. Returns `None` and changes
    /// nothing if a value is not finite.
    fn add_groups<E: Element>(
        &mut self,
        path: Path,
        block: &[E],
        mut known: Option<i32>,
    ) -> Option<AddedBlock> {
        // If there is no known bound and no guess, this value prevents a trial.
        let mut bound = known.or(self.choice.bound()).unwrap_or(i32::MAX);
        let grid = loop {
            let Some(trial) = self.try_levels(path, block, bound) else {
                if known.is_some() {
                    self.add_each(block);
                    break LOWEST;
                }
                let extent = path.run(LargestExponent { groups: block.as_chunks().0 });
                if !extent.finite {
                    return None;
                }
                (known, bound) = (Some(extent.bound), extent.bound);
                continue;
            };
            if !trial.extent.finite {
                return None;
            }
            let tight = trial.extent.bound;
            known = Some(tight);
            if let Some(grid) = trial.grid {
                break grid;
            }
            if bound < tight || LevelChoice::is_loose(bound, tight) {
                bound = tight;
            } else {
                self.choice.more_levels();
            }
        };
        let bound = known?;
        self.choice.note(bound);
        Some(AddedBlock { bound, grid })
    }

    /// Tries the chosen number of levels. `None` if the values must be added one by one, because of the choice or the
    /// bound.
    fn try_levels<E: Element>(&mut self, path: Path, block: &[E], bound: i32) -> Option<Trial> {
        if bound > LARGEST_BOUND {
            return None;
        }
        // This number suits most data, because a level holds about 45 bits.
        let first = usize::from(E::PRECISION > 24) + usize::from(SQUARE);
        // More registers for each level hide the latency of the additions. More levels leave fewer registers for each.
        match first + self.choice.extra_levels() {
            0 => Some(self.deposit::<E, 1, 4>(path, block, bound)),
            1 if SQUARE => Some(self.deposit::<E, 2, 2>(path, block, bound)),
            1 => Some(self.deposit::<E, 2, 4>(path, block, bound)),
            2 if SQUARE => Some(self.deposit::<E, 3, 1>(path, block, bound)),
            2 => Some(self.deposit::<E, 3, 2>(path, block, bound)),
            3 => Some(self.deposit::<E, 4, 2>(path, block, bound)),
            4 => Some(self.deposit::<E, 6, 2>(path, block, bound)),
            5 => Some(self.deposit::<E, 8, 2>(path, block, bound)),
            _ => None,
        }
    }

    /// Adds a block if its values or squares are below `2^bound` and `L` levels are enough.
    fn deposit<E: Element, const L: usize, const R: usize>(
        &mut self,
        path: Path,
        values: &[E],
        bound: i32,
    ) -> Trial {
        let lane_bits = const { (BLOCK_VALUES / (8 * R)).ilog2() as i32 };
        // After the first level, a lane also takes the errors of the squares.
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
        let (groups, _) = values.as_chunks::<8>();
        let (groups, _) = groups.as_chunks::<R>();
        let (extent, sums) = path.run(Deposit::<E, SQUARE, L, R> { groups, bound, starts });
        let Some(sums) = sums else {
            return Trial { extent, grid: None };
        };
        for (sum, exponent) in sums.into_iter().zip(exponents) {
            self.wide.add_scaled(sum, exponent - 52);
        }
        Trial { extent, grid: Some(exponents[L - 1] - 52) }
    }
}

/// Adds a block of at least `SHORTEST_BLOCK` values to a total, and their squares to `squares` if it is given. Returns
/// `false` and changes nothing if a value is not finite.
fn add_finite<E: Element>(
    path: Path,
    block: &[E],
    total: &mut ValueTotal,
    squares: Option<&mut SquareTotal>,
) -> bool {
    let (most, rest) = block.split_at(block.len() - block.len() % GROUP_VALUES);
    if !Extent::of_values(rest).finite {
        return false;
    }
    let Some(added) = total.add_groups(path, most, None) else {
        return false;
    };
    total.add_each(rest);
    if let Some(squares) = squares {
        // Multiples of a coarse grid are large or zero. For a fine grid each value must be checked.
        let squarable = !square_has_error::<E>()
            || added.grid >= SMALLEST_SQUARABLE
            || !path.run(AnyBelow { values: most, limit: 2f64.powi(SMALLEST_SQUARABLE) });
        if squarable {
            // It adds every block, because all values are finite.
            squares.add_groups(path, most, Some(2 * added.bound));
        } else {
            squares.add_each(most);
        }
        squares.add_each(rest);
    }
    true
}

/// Adds values to a total, and their squares to `squares` if it is given.
pub(crate) fn add_values<E: Element>(
    path: Path,
    values: &[E],
    non_finite: &mut NonFinite,
    total: &mut ValueTotal,
    mut squares: Option<&mut SquareTotal>,
) {
    // The buffer holds one block. It stays empty until a block has values that are not finite.
    let mut buffer = Vec::new();
    // Whether the last block had such values. Then the next block is cleaned without a trial.
    let mut cleaning = false;
    for block in values.chunks(BLOCK_VALUES) {
        if block.len() < SHORTEST_BLOCK {
            for raw in block {
                let x = raw.widen();
                if !non_finite.count(x) {
                    total.add(x);
                    if let Some(squares) = &mut squares {
                        squares.add(x);
                    }
                }
            }
            continue;
        }
        if !cleaning && add_finite(path, block, total, squares.as_deref_mut()) {
            continue;
        }
        buffer.resize(block.len(), [0; 8]);
        let [nans, positive, negative] = path.run(CleanCopy { values: block, out: &mut buffer });
        cleaning = [nans, positive, negative] != [0; 3];
        non_finite.merge(&NonFinite { nans, positive, negative });
        let added = add_finite(path, &buffer, total, squares.as_deref_mut());
        debug_assert!(added, "a cleaned block is finite");
    }
}
