//! The broadcast of one pass of k-means to the next.

use std::cmp::Ordering;

use super::NAME;
use super::nearest::Centres;
use crate::KernelError;
use crate::state::{StateReader, StateWriter};

/// The purpose of a pass. The first pass surveys and gets no broadcast.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// Finds the largest value and picks the first centres.
    Survey,
    /// Picks one more centre by k-means++.
    Seed,
    /// Assigns each point to its nearest centre and adds up the points of each.
    Assign {
        /// Number of the iteration, from 1.
        iteration: u64,
        /// Iterations end if the sum of the squared moves of all centres is at most this. Unknown in iteration 1.
        max_shift: Option<f64>,
        /// The centres before the last move, if points that changed are counted.
        previous: Option<Vec<f64>>,
    },
    /// Assigns each point once more, to the final centres.
    Finish {
        /// Iterations made.
        iterations: u64,
    },
}

/// A phase with its data.
#[derive(Clone, Debug)]
pub(crate) struct PassPlan {
    pub phase: Phase,
    /// Every value is at most 2^exponent.
    pub exponent: i32,
    pub centres: Vec<f64>,
}

impl PassPlan {
    /// The plan of the first pass.
    pub fn survey() -> PassPlan {
        PassPlan { phase: Phase::Survey, exponent: 0, centres: Vec::new() }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match &self.phase {
            Phase::Survey => out.put_u64(0),
            Phase::Seed => out.put_u64(1),
            Phase::Assign { iteration, max_shift, previous } => {
                out.put_u64(2);
                out.put_u64(*iteration);
                out.put_flag(max_shift.is_some());
                out.put_f64(max_shift.unwrap_or(0.0));
                out.put_flag(previous.is_some());
                put_floats(&mut out, previous.as_deref().unwrap_or(&[]));
            }
            Phase::Finish { iterations } => {
                out.put_u64(3);
                out.put_u64(*iterations);
            }
        }
        out.put_i128(i128::from(self.exponent));
        put_floats(&mut out, &self.centres);
        out
    }

    /// Reads a plan that [`encode`](PassPlan::encode) wrote. `cells` is k times dims.
    pub fn decode(shared: &[u8], cells: usize) -> Result<PassPlan, KernelError> {
        let mut read = StateReader::new(NAME, shared);
        let phase = match read.u64()? {
            0 => Phase::Survey,
            1 => Phase::Seed,
            2 => {
                let iteration = read.u64()?;
                let max_shift = read.flag()?.then_some(read.f64()?);
                let has_previous = read.flag()?;
                let previous = floats(&mut read, cells)?;
                if has_previous && previous.len() != cells {
                    return Err(read.bad("centres are missing"));
                }
                Phase::Assign { iteration, max_shift, previous: has_previous.then_some(previous) }
            }
            3 => Phase::Finish { iterations: read.u64()? },
            other => return Err(read.bad(format!("there is no phase {other}"))),
        };
        let exponent = i32::try_from(read.i128()?).ok().filter(|e| super::cells::EXPONENTS.contains(e));
        let exponent = exponent.ok_or_else(|| read.bad("its exponent is out of range"))?;
        let centres = floats(&mut read, cells)?;
        if matches!(phase, Phase::Assign { .. } | Phase::Finish { .. }) && centres.len() != cells {
            return Err(read.bad("centres are missing"));
        }
        read.end()?;
        Ok(PassPlan { phase, exponent, centres })
    }

    /// The centres, for the computation of distances.
    pub fn centre_set(&self, dims: usize) -> Centres {
        Centres::new(dims, self.centres.clone())
    }
}

fn put_floats(out: &mut Vec<u8>, values: &[f64]) {
    out.put_u64(values.len() as u64);
    values.iter().for_each(|x| out.put_f64(*x));
}

fn floats(read: &mut StateReader<'_>, most: usize) -> Result<Vec<f64>, KernelError> {
    let count = read.u64()?;
    if count > most as u64 {
        return Err(read.bad(format!("{count} coordinates instead of at most {most}")));
    }
    (0..count).map(|_| read.f64()).collect()
}

/// A point that was picked as a centre. Of several candidates the one with the lowest key wins. If keys are equal, the
/// one with the lowest number wins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pick {
    pub key: f64,
    pub record: u64,
    pub point: Vec<f64>,
}

impl Pick {
    /// Whether this candidate wins over `other`.
    pub fn beats(&self, other: &Pick) -> bool {
        match self.key.total_cmp(&other.key) {
            Ordering::Less => true,
            Ordering::Equal => self.record < other.record,
            Ordering::Greater => false,
        }
    }

    pub fn save(&self, out: &mut Vec<u8>) {
        out.put_f64(self.key);
        out.put_u64(self.record);
        self.point.iter().for_each(|x| out.put_f64(*x));
    }

    pub fn decode(read: &mut StateReader<'_>, dims: usize) -> Result<Pick, KernelError> {
        let (key, record) = (read.f64()?, read.u64()?);
        let point = (0..dims).map(|_| read.f64()).collect::<Result<_, _>>()?;
        Ok(Pick { key, record, point })
    }
}
