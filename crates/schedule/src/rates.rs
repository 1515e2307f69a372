//! Rates of kernels.

use std::collections::HashMap;

use crate::{Learned, ScheduleError};

/// Kernels whose rates are kept.
pub const MAX_KERNELS: usize = 256;

/// Measured rates by the name of the kernel, in bytes a second of one core, for at most [`MAX_KERNELS`]: the
/// one measured longest ago makes room.
#[derive(Clone, Debug)]
pub struct Rates {
    /// What is said of kernels that are not known.
    unknown: Learned,
    known: HashMap<String, (Learned, u64)>,
    /// Counts observations, to know who came last.
    count: u64,
}

impl Rates {
    /// Nothing known: every kernel is said to do `prior` bytes a second.
    ///
    /// # Errors
    /// A rate that no machine has.
    pub fn new(prior: f64) -> Result<Rates, ScheduleError> {
        Ok(Rates { unknown: Learned::guessed(prior)?, known: HashMap::new(), count: 0 })
    }

    /// Until it is measured this kernel is said to do `prior` bytes a second.
    ///
    /// # Errors
    /// A rate that no machine has.
    pub fn expect(&mut self, kernel: &str, prior: f64) -> Result<(), ScheduleError> {
        let rate = Learned::guessed(prior)?;
        self.make_room();
        self.known.entry(kernel.to_owned()).or_insert((rate, self.count));
        Ok(())
    }

    /// A core did so many bytes with this kernel in so many seconds.
    pub fn observe(&mut self, kernel: &str, bytes: u64, seconds: f64) {
        self.count += 1;
        if let Some((rate, last)) = self.known.get_mut(kernel) {
            *last = self.count;
            return rate.observe(bytes, seconds);
        }
        self.make_room();
        let mut rate = self.unknown;
        rate.observe(bytes, seconds);
        self.known.insert(kernel.to_owned(), (rate, self.count));
    }

    fn make_room(&mut self) {
        if self.known.len() >= MAX_KERNELS {
            let oldest = self.known.iter().min_by_key(|(_, (_, last))| *last);
            if let Some(name) = oldest.map(|(name, _)| name.clone()) {
                self.known.remove(&name);
            }
        }
    }

    /// What is known of a kernel; of one that was never measured, the prior.
    pub fn get(&self, kernel: &str) -> &Learned {
        self.known.get(kernel).map_or(&self.unknown, |(rate, _)| rate)
    }

    /// How many kernels are known.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}
