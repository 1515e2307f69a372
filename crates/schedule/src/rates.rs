//! Rates of kernels.

use std::collections::HashMap;

use crate::{MeasuredRate, ScheduleError};

/// Most kernels whose rates are kept.
pub const MAX_KERNELS: usize = 256;

/// Measured rates by the name of the kernel, in bytes a second of one core. At most [`MAX_KERNELS`] are kept. The
/// kernel that was measured the longest ago is removed first.
#[derive(Clone, Debug)]
pub struct Rates {
    /// Rate of kernels that are not known.
    unknown: MeasuredRate,
    known: HashMap<String, (MeasuredRate, u64)>,
    /// Number of observations, to find the kernel that was measured the longest ago.
    count: u64,
}

impl Rates {
    /// Creates rates without measurements. Each kernel has the rate `prior`, in bytes a second.
    ///
    /// # Errors
    /// A rate that is not possible.
    pub fn new(prior: f64) -> Result<Rates, ScheduleError> {
        Ok(Rates { unknown: MeasuredRate::from_guess(prior)?, known: HashMap::new(), count: 0 })
    }

    /// Sets the rate of a kernel until it is measured, in bytes a second.
    ///
    /// # Errors
    /// A rate that is not possible.
    pub fn expect(&mut self, kernel: &str, prior: f64) -> Result<(), ScheduleError> {
        let rate = MeasuredRate::from_guess(prior)?;
        self.make_room();
        self.known.entry(kernel.to_owned()).or_insert((rate, self.count));
        Ok(())
    }

    /// Adds a measurement: one core folded so many bytes with this kernel in so many seconds.
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

    /// Rate of a kernel. The prior if it was never measured.
    pub fn get(&self, kernel: &str) -> &MeasuredRate {
        self.known.get(kernel).map_or(&self.unknown, |(rate, _)| rate)
    }

    /// Number of known kernels.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether no kernel is known.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}
