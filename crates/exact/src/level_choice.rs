//! The choice of levels and bound for the next block, from the blocks before it.

/// Blocks after which new guesses are made.
const PERIOD: u8 = 16;

/// Most periods between two trials of fewer levels.
const LONGEST_PATIENCE: u8 = 8;

/// Binades by which the guess of a bound is above the bounds seen. A guess that is too small costs a second
/// pass over the block. Each binade costs a bit on the levels.
const SLACK: i32 = 2;

/// Guesses of the bound of the next block and of the number of levels that it needs. They change the speed, never
/// the sum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LevelChoice {
    /// Steps above the number of levels that suits most data of the type.
    extra_levels: u8,
    /// Blocks in this period; `periods` counts the periods since fewer levels were tried.
    blocks: u8,
    periods: u8,
    /// Periods until fewer levels are tried: one after a success, twice as many after each failure.
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
            extra_levels: 0,
            blocks: 0,
            periods: 0,
            patience: 1,
            failed: false,
            bound: None,
            seen: i32::MIN,
        }
    }

    pub(crate) fn extra_levels(&self) -> usize {
        usize::from(self.extra_levels)
    }

    /// The bound to try first; `None` before the first block.
    pub(crate) fn bound(&self) -> Option<i32> {
        self.bound
    }

    /// Whether a trial with `bound` that left a rest should be repeated with `known`.
    pub(crate) fn is_loose(bound: i32, known: i32) -> bool {
        bound - known > SLACK
    }

    /// Notes that too few levels were tried.
    pub(crate) fn more_levels(&mut self) {
        self.extra_levels += 1;
        self.failed = true;
    }

    /// Notes that a block of this bound was added.
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
        self.extra_levels = self.extra_levels.saturating_sub(1);
    }
}
