//! Turns units of chunks into blocks. The stored bytes of several chunks are read together; then one chunk after the other is
//! decoded.

use gristmill_format::{Array, Decoder, Edges, Filter, FormatError};
use gristmill_kernel::{Block, Summary};

use crate::RunError;
use crate::assembly::Assembly;
use crate::chunks::{ChunkRead, Chunks, OwnedChunks, StoredBytes};
use crate::fetch::OwnerView;
use crate::gather::gather;
use crate::pulls::PulledBytes;
use crate::reader::{Flow, Reader, TakeBlock};
use crate::units::Unit;

/// Most stored bytes that are read together, unless one chunk has more.
pub(crate) const MAX_READ: u64 = 1 << 20;

/// Why a chunk is refused that would take more memory than a lane reserved.
const TOO_LARGE: &str = "it has more stored bytes than any writer makes from its elements";

/// Most bytes of memory that a lane uses for these chunks.
pub(crate) fn memory(chunks: &Chunks) -> u64 {
    let array = &chunks.table().array;
    let stored = Decoder::stored(array).max(MAX_READ);
    let others = if chunks.others().is_empty() { 0 } else { Assembly::memory(chunks) };
    Decoder::memory(array).saturating_add(stored).saturating_add(others)
}

fn too_large(chunks: &Chunks, read: &ChunkRead<'_>) -> bool {
    let range = read.range();
    range.end - range.start > Decoder::stored(&chunks.table().array).max(MAX_READ)
}

/// A decoder of the chunks of one variable, with the elements of one chunk.
pub(crate) struct ChunkDecoder {
    decoder: Decoder,
    elements: Vec<u8>,
    /// Whether stored bytes are the elements, apart from the byte order.
    plain: bool,
    /// Whether decoding takes much longer than a sum of the elements.
    slow: bool,
}

impl ChunkDecoder {
    pub fn new(array: &Array) -> Result<ChunkDecoder, RunError> {
        let whole = array.stored == array.shape;
        Ok(ChunkDecoder {
            decoder: Decoder::new(array)?,
            elements: Vec::new(),
            plain: array.filters.is_empty() && whole,
            slow: array.filters.iter().any(|one| matches!(one, Filter::Zlib | Filter::Gzip | Filter::Zstd)),
        })
    }

    /// Bytes of the decoded chunk, if the stored bytes are its elements.
    fn plain_bytes(&self, number: u64) -> Option<u64> {
        let array = self.decoder.array();
        let lengths = || match array.edges {
            Edges::Whole => Some(array.chunk.clone()),
            Edges::Clipped => array.extent(number).map(|extent| extent.clipped),
        };
        let bytes = |lengths: Vec<u64>| lengths.iter().product::<u64>() * array.dtype.size() as u64;
        if self.plain { lengths().map(bytes) } else { None }
    }

    /// The elements that the decoder holds: those of the last chunk of [`decode_and_hold`](Self::decode_and_hold).
    pub fn held(&self) -> &[u8] {
        &self.elements
    }

    /// Decodes a chunk and holds its elements.
    pub fn decode_and_hold(
        &mut self,
        number: u64,
        location: &StoredBytes<'_>,
        stored: &mut [u8],
    ) -> Result<(), RunError> {
        let plain = std::mem::replace(&mut self.plain, false);
        let decoded = self.decode(number, location, stored).map(drop);
        self.plain = plain;
        decoded
    }

    /// Decodes a chunk. Its elements are little-endian.
    fn decode<'a>(
        &'a mut self,
        number: u64,
        location: &StoredBytes<'_>,
        stored: &'a mut [u8],
    ) -> Result<&'a [u8], RunError> {
        let failed = |source| RunError::Chunk { number, source };
        let (bytes, mask): (&[u8], u32) = match location {
            StoredBytes::Settled(_) => return Ok(&[]),
            StoredBytes::Missing => {
                self.decoder.fill(number, &mut self.elements).map_err(failed)?;
                return Ok(&self.elements);
            }
            StoredBytes::At(..) if self.plain_bytes(number) == Some(stored.len() as u64) => {
                let array = self.decoder.array();
                array.order.to_little(array.dtype.size(), stored);
                return Ok(stored);
            }
            StoredBytes::At(_, mask) => (stored, *mask),
            StoredBytes::Inline(bytes) => (bytes, 0),
        };
        self.decoder.decode(number, bytes, mask, &mut self.elements).map_err(failed)?;
        Ok(&self.elements)
    }
}

impl Reader<'_> {
    /// Gives the chunks of a unit to `each`.
    pub(crate) fn chunks(
        &mut self,
        owned: &OwnedChunks,
        unit: &Unit,
        each: &mut TakeBlock<'_>,
    ) -> Result<Flow, RunError> {
        let mut decoder = match self.decoder.take() {
            Some(decoder) => decoder,
            None => ChunkDecoder::new(&owned.chunks.table().array)?,
        };
        let mut assembly = match self.assembly.take() {
            None if !owned.chunks.others().is_empty() => Some(Assembly::new(owned.chunks.others())?),
            known => known,
        };
        let flow = self.decoded(owned, unit, &mut decoder, assembly.as_mut(), each);
        (self.decoder, self.assembly) = (Some(decoder), assembly);
        flow
    }

    fn decoded(
        &mut self,
        owned: &OwnedChunks,
        unit: &Unit,
        decoder: &mut ChunkDecoder,
        mut assembly: Option<&mut Assembly>,
        each: &mut TakeBlock<'_>,
    ) -> Result<Flow, RunError> {
        let nothing = PulledBytes::default();
        let mut positions = unit.window.clone();
        let (kernel, statistics) = (&*self.job.kernel, self.job.statistics.as_deref());
        let settled = |position, number| {
            let summary = statistics?.known(number)?;
            kernel.summary_suffices(position, &summary).then_some(summary)
        };
        while !positions.is_empty() {
            self.at = positions.start;
            let missing = |number| {
                assembly.as_deref().map_or(0, |assembly| assembly.missing_bytes(&owned.chunks, number))
            };
            let taken = owned.take(unit.target, &mut positions, MAX_READ, &settled, &missing)?;
            let ranges: Vec<_> = taken.iter().map(ChunkRead::range).collect();
            let total: u64 = ranges.iter().map(|range| range.end - range.start).sum();
            if let Some(large) = taken.iter().find(|read| too_large(&owned.chunks, read)) {
                return Err(RunError::Chunk { number: large.number, source: FormatError::chunk(TOO_LARGE) });
            }
            let data = self.records.get(total as usize);
            let (file, tally) = (&self.job.file, &mut self.tally);
            let mut view =
                OwnerView { file, owner: unit.target, pulled: &nothing, searched: (0, &[]), tally };
            gather(&mut view, ranges.iter().cloned(), data, &mut self.own)?;
            if let Some(assembly) = &mut assembly {
                let numbers: Vec<u64> = taken.iter().map(|read| read.number).collect();
                assembly.read(&owned.chunks, &numbers, &mut view)?;
            }
            let mut rest = data;
            for (read, range) in taken.iter().zip(ranges) {
                let (stored, behind) = rest.split_at_mut((range.end - range.start) as usize);
                rest = behind;
                self.at = read.position;
                let thorough = decoder.slow;
                let mut elements = decoder.decode(read.number, &read.bytes, stored)?;
                if let Some(assembly) = &mut assembly {
                    let (pulled, tally) = (&nothing, &mut self.tally);
                    let mut view = OwnerView { file, owner: unit.target, pulled, searched: (0, &[]), tally };
                    elements = assembly.record(&owned.chunks, read.number, elements, &mut view)?;
                }
                if let Some(records) = self.tally.records.get_mut(unit.target as usize) {
                    *records += 1;
                }
                let known = match &read.bytes {
                    StoredBytes::Settled(_) => None,
                    _ => statistics.map(|statistics| statistics.known(read.number)),
                };
                let summary = match (&read.bytes, &known) {
                    (StoredBytes::Settled(summary), _) => {
                        self.tally.settled += 1;
                        Summary::Substitute(summary)
                    }
                    (_, Some(known)) => Summary::Requested { known: known.as_deref(), thorough },
                    (_, None) => Summary::None,
                };
                if each(&Block::new(read.position, 1, elements).with_summary(summary))? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
        }
        Ok(Flow::Go)
    }
}
