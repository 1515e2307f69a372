//! What one pass of k-means broadcasts to the next.

use std::cmp::Ordering;

use super::NAME;
use super::nearest::Centres;
use crate::KernelError;
use crate::state::{StateReader, StateWriter};

/// What a pass is for. The first one surveys, and nothing is broadcast to it.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// Looks for the largest value and picks the first centres.
    Survey,
    /// Picks one more centre: k-means++.
    Seed,
    /// Assigns each point to its nearest centre and adds up the points of each.
    Assign {
        /// Number of the iteration, from 1.
        iteration: u64,
        /// What the sum of the squared moves of all centres must not exceed for the end; unknown before iteration 1.
        settled: Option<f64>,
        /// The centres before the last move, where points that changed are to be counted.
        before: Option<Vec<f64>>,
    },
    /// Assigns each point once more, to the centres that stay.
    Finish {
        /// Iterations made.
        iterations: u64,
    },
}

/// A phase with what it needs.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub phase: Phase,
    /// Every value is at most 2^exponent.
    pub exponent: i32,
    pub centres: Vec<f64>,
}

impl Plan {
    /// What the first pass begins with.
    pub fn survey() -> Plan {
        Plan { phase: Phase::Survey, exponent: 0, centres: Vec::new() }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match &self.phase {
            Phase::Survey => out.put_u64(0),
            Phase::Seed => out.put_u64(1),
            Phase::Assign { iteration, settled, before } => {
                out.put_u64(2);
                out.put_u64(*iteration);
                out.put_flag(settled.is_some());
                out.put_f64(settled.unwrap_or(0.0));
                out.put_flag(before.is_some());
                put_floats(&mut out, before.as_deref().unwrap_or(&[]));
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

    /// Reads what [`encode`](Plan::encode) wrote; `cells` is k times dims.
    pub fn decode(shared: &[u8], cells: usize) -> Result<Plan, KernelError> {
        let mut read = StateReader::new(NAME, shared);
        let phase = match read.u64()? {
            0 => Phase::Survey,
            1 => Phase::Seed,
            2 => {
                let iteration = read.u64()?;
                let settled = read.flag()?.then_some(read.f64()?);
                let known = read.flag()?;
                let before = floats(&mut read, cells)?;
                if known && before.len() != cells {
                    return Err(read.bad("centres are missing"));
                }
                Phase::Assign { iteration, settled, before: known.then_some(before) }
            }
            3 => Phase::Finish { iterations: read.u64()? },
            other => return Err(read.bad(format!("there is no phase {other}"))),
        };
        let exponent = i32::try_from(read.i128()?).ok().filter(|e| super::cells::EXPONENTS.contains(e));
        let exponent = exponent.ok_or_else(|| read.bad("an impossible exponent"))?;
        let centres = floats(&mut read, cells)?;
        if matches!(phase, Phase::Assign { .. } | Phase::Finish { .. }) && centres.len() != cells {
            return Err(read.bad("centres are missing"));
        }
        read.end()?;
        Ok(Plan { phase, exponent, centres })
    }

    /// The centres, ready for distances.
    pub fn ready(&self, dims: usize) -> Centres {
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

/// A point that was picked as a centre, by its number. Of several candidates for one place the one with the lowest key
/// wins, then the one with the lowest number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pick {
    pub key: f64,
    pub record: u64,
    pub point: Vec<f64>,
}

impl Pick {
    /// Whether this one wins over the other.
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
