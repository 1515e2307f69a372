//! Turns units of chunks into blocks: reads the stored bytes of several together, decodes one after the other.

use gristmill_format::{Array, Decoder, Edges, Filter, FormatError};
use gristmill_kernel::{Block, Summary};

use crate::RunError;
use crate::assembly::Assembly;
use crate::chunks::{Chunks, Owned, Stored, Wanted};
use crate::fetch::Sight;
use crate::gather::gather;
use crate::pulls::Pulled;
use crate::reader::{Each, Flow, Reader};
use crate::units::Unit;

/// Stored bytes that are read together, unless one chunk has more.
pub(crate) const MAX_READ: u64 = 1 << 20;

/// Why a chunk is not read that would take more memory than was reckoned with.
const TOO_LARGE: &str = "more bytes are stored of it than any writer makes of its elements";

/// Most bytes of memory that a lane takes for these chunks.
pub(crate) fn memory(chunks: &Chunks) -> u64 {
    let array = &chunks.table().array;
    let stored = Decoder::stored(array).max(MAX_READ);
    let others = if chunks.others().is_empty() { 0 } else { Assembly::memory(chunks) };
    Decoder::memory(array).saturating_add(stored).saturating_add(others)
}

fn too_large(chunks: &Chunks, wanted: &Wanted<'_>) -> bool {
    let range = wanted.range();
    range.end - range.start > Decoder::stored(&chunks.table().array).max(MAX_READ)
}

/// What a lane decodes with.
pub(crate) struct Decoding {
    decoder: Decoder,
    elements: Vec<u8>,
    /// Whether stored bytes are the elements but for their order.
    plain: bool,
    /// Whether decoding takes much longer than any sum of the elements.
    slow: bool,
}

impl Decoding {
    pub fn new(array: &Array) -> Result<Decoding, RunError> {
        let whole = array.stored == array.shape;
        Ok(Decoding {
            decoder: Decoder::new(array)?,
            elements: Vec::new(),
            plain: array.filters.is_empty() && whole,
            slow: array.filters.iter().any(|one| matches!(one, Filter::Zlib | Filter::Gzip | Filter::Zstd)),
        })
    }

    /// Bytes of the decoded chunk, where that is what is stored.
    fn plain(&self, number: u64) -> Option<u64> {
        let array = self.decoder.array();
        let lengths = || match array.edges {
            Edges::Whole => Some(array.chunk.clone()),
            Edges::Clipped => array.extent(number).map(|extent| extent.clipped),
        };
        let bytes = |lengths: Vec<u64>| lengths.iter().product::<u64>() * array.dtype.size() as u64;
        if self.plain { lengths().map(bytes) } else { None }
    }

    /// The elements of a chunk that were made last; of one that is missing, or decoded in place, too.
    pub fn last(&self) -> &[u8] {
        &self.elements
    }

    /// Makes the elements of a chunk.
    pub fn keep(&mut self, number: u64, wanted: &Stored<'_>, stored: &mut [u8]) -> Result<(), RunError> {
        let plain = std::mem::replace(&mut self.plain, false);
        let made = self.elements(number, wanted, stored).map(drop);
        self.plain = plain;
        made
    }

    /// The elements of a chunk: little-endian.
    fn elements<'a>(
        &'a mut self,
        number: u64,
        wanted: &Stored<'_>,
        stored: &'a mut [u8],
    ) -> Result<&'a [u8], RunError> {
        let failed = |source| RunError::Chunk { number, source };
        let (bytes, mask): (&[u8], u32) = match wanted {
            Stored::Settled(_) => return Ok(&[]),
            Stored::Missing => {
                self.decoder.fill(number, &mut self.elements).map_err(failed)?;
                return Ok(&self.elements);
            }
            Stored::At(..) if self.plain(number) == Some(stored.len() as u64) => {
                let array = self.decoder.array();
                array.order.to_little(array.dtype.size(), stored);
                return Ok(stored);
            }
            Stored::At(_, mask) => (stored, *mask),
            Stored::Inline(bytes) => (bytes, 0),
        };
        self.decoder.decode(number, bytes, mask, &mut self.elements).map_err(failed)?;
        Ok(&self.elements)
    }
}

impl Reader<'_> {
    /// Hands out the chunks of a unit.
    pub(crate) fn chunks(
        &mut self,
        owned: &Owned,
        unit: &Unit,
        each: &mut Each<'_>,
    ) -> Result<Flow, RunError> {
        let mut decoding = match self.decoding.take() {
            Some(decoding) => decoding,
            None => Decoding::new(&owned.chunks.table().array)?,
        };
        let mut assembly = match self.assembly.take() {
            None if !owned.chunks.others().is_empty() => Some(Assembly::new(owned.chunks.others())?),
            known => known,
        };
        let flow = self.decoded(owned, unit, &mut decoding, assembly.as_mut(), each);
        (self.decoding, self.assembly) = (Some(decoding), assembly);
        flow
    }

    fn decoded(
        &mut self,
        owned: &Owned,
        unit: &Unit,
        decoding: &mut Decoding,
        mut assembly: Option<&mut Assembly>,
        each: &mut Each<'_>,
    ) -> Result<Flow, RunError> {
        let nothing = Pulled::default();
        let mut positions = unit.window.clone();
        let (kernel, statistics) = (&*self.job.kernel, self.job.statistics.as_deref());
        let settled = |position, number| {
            let summary = statistics?.known(number)?;
            kernel.settled(position, &summary).then_some(summary)
        };
        while !positions.is_empty() {
            self.at = positions.start;
            let beside =
                |number| assembly.as_deref().map_or(0, |assembly| assembly.lacks(&owned.chunks, number));
            let taken = owned.take(unit.target, &mut positions, MAX_READ, &settled, &beside)?;
            let ranges: Vec<_> = taken.iter().map(Wanted::range).collect();
            let total: u64 = ranges.iter().map(|range| range.end - range.start).sum();
            if let Some(large) = taken.iter().find(|wanted| too_large(&owned.chunks, wanted)) {
                return Err(RunError::Chunk { number: large.number, source: FormatError::chunk(TOO_LARGE) });
            }
            let data = self.records.get(total as usize);
            let (file, tally) = (&self.job.file, &mut self.tally);
            let mut sight = Sight { file, owner: unit.target, pulled: &nothing, look: (0, &[]), tally };
            gather(&mut sight, ranges.iter().cloned(), data, &mut self.own)?;
            if let Some(assembly) = &mut assembly {
                let numbers: Vec<u64> = taken.iter().map(|wanted| wanted.number).collect();
                assembly.read(&owned.chunks, &numbers, &mut sight)?;
            }
            let mut rest = data;
            for (wanted, range) in taken.iter().zip(ranges) {
                let (stored, behind) = rest.split_at_mut((range.end - range.start) as usize);
                rest = behind;
                self.at = wanted.position;
                let thorough = decoding.slow;
                let mut elements = decoding.elements(wanted.number, &wanted.bytes, stored)?;
                if let Some(assembly) = &mut assembly {
                    let (pulled, tally) = (&nothing, &mut self.tally);
                    let mut sight = Sight { file, owner: unit.target, pulled, look: (0, &[]), tally };
                    elements = assembly.record(&owned.chunks, wanted.number, elements, &mut sight)?;
                }
                if let Some(records) = self.tally.records.get_mut(unit.target as usize) {
                    *records += 1;
                }
                let known = match &wanted.bytes {
                    Stored::Settled(_) => None,
                    _ => statistics.map(|statistics| statistics.known(wanted.number)),
                };
                let summary = match (&wanted.bytes, &known) {
                    (Stored::Settled(summary), _) => {
                        self.tally.settled += 1;
                        Summary::Instead(summary)
                    }
                    (_, Some(known)) => Summary::Welcome { known: known.as_deref(), thorough },
                    (_, None) => Summary::None,
                };
                if each(&Block::new(wanted.position, 1, elements).with_summary(summary))? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
        }
        Ok(Flow::Go)
    }
}
