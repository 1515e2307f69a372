//! The passes before the first iteration: the largest value, and the first centres.

use super::NAME;
use super::draw::uniform;
use super::nearest::Centres;
use super::phase::Pick;
use super::points::Points;
use crate::state::{StateReader, StateWriter};
use crate::{Block, Fold, KernelError, Sink, Step};

/// Folds of the first pass: the largest absolute value, and the points with given numbers.
pub(crate) struct Survey {
    points: Points,
    /// Numbers of the points to pick, ascending.
    wanted: std::sync::Arc<[u64]>,
    largest: f64,
    picks: Vec<Pick>,
}

impl Survey {
    pub fn new(points: Points, wanted: std::sync::Arc<[u64]>) -> Survey {
        Survey { points, wanted, largest: 0.0, picks: Vec::new() }
    }

    /// Largest absolute value, and the picks in the order of their numbers.
    pub fn decode(state: &[u8], dims: usize, most: usize) -> Result<(f64, Vec<Pick>), KernelError> {
        let mut read = StateReader::new(NAME, state);
        let largest = read.f64()?;
        let count = read.u64()?;
        if count > most as u64 || !(largest >= 0.0 && largest.is_finite()) {
            return Err(read.bad("an impossible survey"));
        }
        let picks = (0..count).map(|_| Pick::decode(&mut read, dims)).collect::<Result<_, _>>()?;
        read.end()?;
        Ok((largest, picks))
    }
}

impl Fold for Survey {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        let dims = self.points.dims;
        self.points.each_tile(block, |first, tile| {
            let (mut largest, mut finite) = (self.largest, true);
            for x in tile {
                largest = largest.max(x.abs());
                finite &= x.is_finite();
            }
            if !finite {
                let at = tile.iter().position(|x| !x.is_finite()).unwrap_or(0);
                let point = first + (at / dims) as u64;
                return Err(KernelError::Domain {
                    kernel: NAME,
                    why: format!(
                        "coordinate {} of point {point} is {}; every coordinate must be a finite number",
                        at % dims,
                        tile[at]
                    ),
                });
            }
            self.largest = largest;
            let end = first + (tile.len() / dims) as u64;
            let from = self.wanted.partition_point(|record| *record < first);
            let to = self.wanted.partition_point(|record| *record < end);
            for record in &self.wanted[from..to] {
                let point = tile[(record - first) as usize * dims..][..dims].to_vec();
                self.picks.push(Pick { key: 0.0, record: *record, point });
            }
            Ok(())
        })?;
        Ok(Step::Took(block.count()))
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.put_f64(self.largest);
        out.put_u64(self.picks.len() as u64);
        let mut picks: Vec<&Pick> = self.picks.iter().collect();
        picks.sort_by_key(|pick| pick.record);
        picks.iter().for_each(|pick| pick.save(out));
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        let (largest, picks) = Survey::decode(later, self.points.dims, self.wanted.len())?;
        self.largest = self.largest.max(largest);
        self.picks.extend(picks);
        if self.picks.len() > self.wanted.len() {
            return Err(StateReader::new(NAME, later).bad("points were picked twice"));
        }
        Ok(())
    }
}

/// Folds of a pass that picks one more centre, each point with a chance in proportion to its squared distance from
/// the centres so far (Arthur, Vassilvitskii: k-means++, 2007). The point with the lowest -ln(u) / weight is picked, u
/// uniform: a weighted draw that merges (Efraimidis, Spirakis: Weighted random sampling with a reservoir, 2006).
pub(crate) struct Seed {
    points: Points,
    centres: Centres,
    seed: u64,
    best: Option<Pick>,
    number: Vec<u32>,
    distance: Vec<f64>,
}

impl Seed {
    pub fn new(points: Points, centres: Centres, seed: u64) -> Seed {
        Seed { points, centres, seed, best: None, number: Vec::new(), distance: Vec::new() }
    }

    /// The point that was picked, if there was any.
    pub fn decode(state: &[u8], dims: usize) -> Result<Option<Pick>, KernelError> {
        let mut read = StateReader::new(NAME, state);
        let pick = if read.flag()? { Some(Pick::decode(&mut read, dims)?) } else { None };
        read.end()?;
        Ok(pick)
    }
}

fn offer(best: &mut Option<Pick>, pick: Pick) {
    if best.as_ref().is_none_or(|best| pick.beats(best)) {
        *best = Some(pick);
    }
}

impl Fold for Seed {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        let dims = self.points.dims;
        let round = self.centres.len() as u64;
        self.points.each_tile(block, |first, tile| {
            self.centres.nearest(tile, &mut self.number, &mut self.distance);
            for n in 0..self.distance.len() {
                let record = first + n as u64;
                // The logarithm of musl, the same on every machine. A weight of nothing makes an infinite key.
                let key = -libm::log(uniform(self.seed, round, record)) / self.distance[n];
                let key = if key.is_nan() { f64::INFINITY } else { key };
                if self.best.as_ref().is_none_or(|best| key <= best.key) {
                    offer(&mut self.best, Pick { key, record, point: tile[n * dims..][..dims].to_vec() });
                }
            }
            Ok(())
        })?;
        Ok(Step::Took(block.count()))
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.put_flag(self.best.is_some());
        if let Some(best) = &self.best {
            best.save(out);
        }
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        if let Some(pick) = Seed::decode(later, self.points.dims)? {
            offer(&mut self.best, pick);
        }
        Ok(())
    }
}
