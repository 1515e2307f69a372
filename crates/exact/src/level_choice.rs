//! How the next block is tried, from what the last ones were like.

/// Blocks after which the guesses are made anew.
const PERIOD: u8 = 16;

/// Most periods between two trials of fewer levels.
const LONGEST_PATIENCE: u8 = 8;

/// Binades that the guess of a bound has above the bounds seen. A guess that is too small costs a second
/// pass over the block; each binade costs a bit on the levels.
const SLACK: i32 = 2;

/// Guesses at the bound of the next block and at the number of levels it needs. They change the speed, never
/// the sum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LevelChoice {
    /// Steps above the number of levels that suits most data of the type.
    above: u8,
    /// Blocks in this period, and periods since fewer levels were tried.
    blocks: u8,
    periods: u8,
    /// Periods until fewer levels are tried: one where that went well, twice as many each time it did not.
    patience: u8,
    failed: bool,
    /// `None` before the first block.
    bound: Option<i32>,
    /// The largest bound of this period.
    seen: i32,
}

impl LevelChoice {
    pub(crate) const fn new() -> Self {
        LevelChoice {
            above: 0,
            blocks: 0,
            periods: 0,
            patience: 1,
            failed: false,
            bound: None,
            seen: i32::MIN,
        }
    }

    pub(crate) fn above(&self) -> usize {
        usize::from(self.above)
    }

    /// The bound to try first, if there is reason for any.
    pub(crate) fn bound(&self) -> Option<i32> {
        self.bound
    }

    /// Whether a trial with `bound` that left something over deserves another with `known`.
    pub(crate) fn is_loose(bound: i32, known: i32) -> bool {
        bound - known > SLACK
    }

    /// Fewer levels than needed were tried.
    pub(crate) fn more_levels(&mut self) {
        self.above += 1;
        self.failed = true;
    }

    /// A block of this bound has been added.
    pub(crate) fn note(&mut self, bound: i32) {
        self.seen = self.seen.max(bound);
        if self.bound.is_none_or(|guess| guess < bound) {
            self.bound = Some(bound + SLACK);
        }
        self.blocks += 1;
        if self.blocks < PERIOD {
            return;
        }
        self.bound = Some(self.seen + SLACK);
        (self.blocks, self.seen) = (0, i32::MIN);
        self.periods += 1;
        if self.periods < self.patience {
            return;
        }
        self.patience = if self.failed { (2 * self.patience).min(LONGEST_PATIENCE) } else { 1 };
        (self.periods, self.failed) = (0, false);
        self.above = self.above.saturating_sub(1);
    }
}
