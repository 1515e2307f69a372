//! The passes before the first iteration, which find the largest value and the first centres.

use super::NAME;
use super::draw::uniform;
use super::nearest::Centres;
use super::phase::Pick;
use super::point_reader::PointReader;
use crate::state::{StateReader, StateWriter};
use crate::{Block, Fold, KernelError, Sink, Step};

/// The fold of the first pass. It finds the largest absolute value and the points with given numbers.
pub(crate) struct SurveyFold {
    points: PointReader,
    /// Numbers of the points to pick, ascending.
    to_pick: std::sync::Arc<[u64]>,
    largest: f64,
    picks: Vec<Pick>,
}

impl SurveyFold {
    pub fn new(points: PointReader, to_pick: std::sync::Arc<[u64]>) -> SurveyFold {
        SurveyFold { points, to_pick, largest: 0.0, picks: Vec::new() }
    }

    /// Reads the largest absolute value, and the picks in the order of their numbers.
    pub fn decode(state: &[u8], dims: usize, most: usize) -> Result<(f64, Vec<Pick>), KernelError> {
        let mut read = StateReader::new(NAME, state);
        let largest = read.f64()?;
        let count = read.u64()?;
        if count > most as u64 || !(largest >= 0.0 && largest.is_finite()) {
            return Err(read.bad("it has too many points, or a largest value that is negative or not finite"));
        }
        let picks = (0..count).map(|_| Pick::decode(&mut read, dims)).collect::<Result<_, _>>()?;
        read.end()?;
        Ok((largest, picks))
    }
}

impl Fold for SurveyFold {
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
            let from = self.to_pick.partition_point(|record| *record < first);
            let to = self.to_pick.partition_point(|record| *record < end);
            for record in &self.to_pick[from..to] {
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
        let (largest, picks) = SurveyFold::decode(later, self.points.dims, self.to_pick.len())?;
        self.largest = self.largest.max(largest);
        self.picks.extend(picks);
        if self.picks.len() > self.to_pick.len() {
            return Err(StateReader::new(NAME, later).bad("points were picked twice"));
        }
        Ok(())
    }
}

/// The fold of a pass that picks one more centre. The probability of a point is proportional to its squared distance
/// from the nearest centre so far (Arthur, Vassilvitskii: k-means++, 2007). The point with the lowest -ln(u) / weight
/// is picked, with u uniform. Such a weighted draw can be merged (Efraimidis, Spirakis: Weighted random sampling with a
/// reservoir, 2006).
pub(crate) struct SeedFold {
    points: PointReader,
    centres: Centres,
    seed: u64,
    best: Option<Pick>,
    number: Vec<u32>,
    distance: Vec<f64>,
}

impl SeedFold {
    pub fn new(points: PointReader, centres: Centres, seed: u64) -> SeedFold {
        SeedFold { points, centres, seed, best: None, number: Vec::new(), distance: Vec::new() }
    }

    /// Reads the point that was picked, if there is one.
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

impl Fold for SeedFold {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        let dims = self.points.dims;
        let round = self.centres.len() as u64;
        self.points.each_tile(block, |first, tile| {
            self.centres.nearest(tile, &mut self.number, &mut self.distance);
            for n in 0..self.distance.len() {
                let record = first + n as u64;
                // The logarithm is that of musl, so it is the same on every machine. A weight of 0 gives an infinite
                // key.
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
        if let Some(pick) = SeedFold::decode(later, self.points.dims)? {
            offer(&mut self.best, pick);
        }
        Ok(())
    }
}
