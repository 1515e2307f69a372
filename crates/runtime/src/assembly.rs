//! Assembles records of several variables from their chunks.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

use gristmill_format::{Decoder, Extent};
use lru::LruCache;

use crate::RunError;
use crate::buffer::Buffer;
use crate::chunk_reader::{ChunkDecoder, MAX_READ};
use crate::chunks::{Chunks, StoredBytes};
use crate::fetch::OwnerView;
use crate::gather::gather;
use crate::other_variables::OtherVariable;

/// Most bytes of decoded chunks of other variables that a lane caches for later records.
pub(crate) const MAX_CACHED_BYTES: usize = 64 << 20;

/// Most decoded chunks that a lane caches.
const MAX_CACHED_CHUNKS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(65_535);

/// A chunk of another variable: the index of the variable, and the number of the chunk.
type ChunkKey = (usize, u64);

/// The buffers and decoders with which a lane assembles records.
pub(crate) struct Assembly {
    decoders: Vec<ChunkDecoder>,
    /// Decoded chunks; the last used is first.
    cache: LruCache<ChunkKey, Arc<Vec<u8>>>,
    cached_bytes: usize,
    record: Vec<u8>,
    /// Stored bytes that were read together. `places` tells where each chunk lies in them.
    ahead: Buffer,
    places: HashMap<ChunkKey, Range<usize>>,
    /// Stored bytes of a single chunk.
    single: Buffer,
    scratch: Buffer,
}

impl Assembly {
    /// Most bytes of memory that an assembly takes: decoders, cached chunks, and a record.
    pub fn memory(chunks: &Chunks) -> u64 {
        let decoders = chunks.other_tables().map(|table| Decoder::memory(&table.array));
        let records = chunks.other_tables().map(|table| table.array.chunk_bytes());
        let stored = chunks.other_tables().map(|table| Decoder::stored(&table.array)).max();
        let own = chunks.table().array.chunk_bytes().saturating_add(stored.unwrap_or(0).max(MAX_READ));
        decoders.chain(records).fold(own.saturating_add(MAX_CACHED_BYTES as u64), u64::saturating_add)
    }

    pub fn new(others: &[OtherVariable]) -> Result<Assembly, RunError> {
        let decoders = others.iter().map(|other| ChunkDecoder::new(&other.located.table.array));
        Ok(Assembly {
            decoders: decoders.collect::<Result<_, _>>()?,
            cache: LruCache::new(MAX_CACHED_CHUNKS),
            cached_bytes: 0,
            record: Vec::new(),
            ahead: Buffer::default(),
            places: HashMap::new(),
            single: Buffer::default(),
            scratch: Buffer::default(),
        })
    }

    /// Stored bytes of other variables that must be read for the record of a chunk.
    pub fn missing_bytes(&self, chunks: &Chunks, number: u64) -> u64 {
        let each = chunks.overlapping(number).filter(|(key, _)| !self.cache.contains(key));
        each.fold(0, |all, (_, stored)| all.saturating_add(length(&stored)))
    }

    /// Reads the bytes of other variables that the records of these chunks need. Reads nothing if they are more than
    /// [`MAX_READ`].
    pub fn read(
        &mut self,
        chunks: &Chunks,
        numbers: &[u64],
        view: &mut OwnerView<'_>,
    ) -> Result<(), RunError> {
        self.places.clear();
        let (mut ranges, mut total) = (Vec::new(), 0u64);
        for number in numbers {
            for (key, stored) in chunks.overlapping(*number) {
                let StoredBytes::At(range, _) = stored else { continue };
                if self.cache.contains(&key) || self.places.contains_key(&key) {
                    continue;
                }
                total = total.saturating_add(range.end - range.start);
                if total > MAX_READ {
                    // `decoded` reads them one by one.
                    self.places.clear();
                    return Ok(());
                }
                let from = (total - (range.end - range.start)) as usize;
                self.places.insert(key, from..total as usize);
                ranges.push(range);
            }
        }
        gather(view, ranges.into_iter(), self.ahead.get(total as usize), &mut self.scratch)
    }

    /// The record of a chunk; `elements` are the elements of the chunk.
    pub fn record(
        &mut self,
        chunks: &Chunks,
        number: u64,
        elements: &[u8],
        view: &mut OwnerView<'_>,
    ) -> Result<&[u8], RunError> {
        let lead = &chunks.table().array;
        let Some(extent) = lead.extent(number) else { return Ok(&[]) };
        let count = elements.len() / lead.dtype.size();
        self.record.clear();
        self.record.extend_from_slice(elements);
        for (variable, other) in chunks.others().iter().enumerate() {
            let array = &other.located.table.array;
            let (size, at) = (array.dtype.size(), self.record.len());
            self.record.resize(at + count * size, 0);
            for overlap in other.overlapping(&extent) {
                let Some(held) = array.extent(overlap) else { continue };
                // A chunk that lies wholly in this box overlaps no other box.
                let reused = !within(&held, &extent);
                let decoded = self.decoded(chunks, (variable, overlap), reused, view)?;
                let from = match &decoded {
                    Some(cached) => &cached[..],
                    None => self.decoders[variable].held(),
                };
                let to = &mut self.record[at..];
                if other.same_chunks && from.len() == to.len() {
                    to.copy_from_slice(from);
                } else {
                    copy_common((from, &held), (to, &extent), size);
                }
            }
        }
        Ok(&self.record)
    }

    /// The elements of a chunk of another variable from the cache; `None` if they are the last elements of its decoder.
    fn decoded(
        &mut self,
        chunks: &Chunks,
        key: ChunkKey,
        reused: bool,
        view: &mut OwnerView<'_>,
    ) -> Result<Option<Arc<Vec<u8>>>, RunError> {
        if let Some(cached) = self.cache.get(&key) {
            return Ok(Some(cached.clone()));
        }
        let (variable, number) = key;
        let none = || RunError::SideBySide { why: format!("another variable has no chunk {number}") };
        let stored =
            chunks.others().get(variable).and_then(|other| other.located.stored(number)).ok_or_else(none)?;
        let place = self.places.get(&key).cloned();
        let bytes: &mut [u8] = match (&stored, place) {
            (StoredBytes::At(..), Some(place)) => &mut self.ahead.get(place.end)[place],
            (StoredBytes::At(range, _), None) => {
                let single = self.single.get((range.end - range.start) as usize);
                gather(view, [range.clone()].into_iter(), single, &mut self.scratch)?;
                single
            }
            _ => &mut [],
        };
        let decoder = self.decoders.get_mut(variable).ok_or_else(none)?;
        decoder.decode_and_hold(number, &stored, bytes)?;
        let elements = decoder.held();
        if !reused || elements.len() > MAX_CACHED_BYTES {
            return Ok(None);
        }
        let cached = Arc::new(elements.to_vec());
        self.cached_bytes += cached.len();
        if let Some((_, old)) = self.cache.push(key, cached.clone()) {
            self.cached_bytes -= old.len();
        }
        while self.cached_bytes > MAX_CACHED_BYTES {
            let Some((_, old)) = self.cache.pop_lru() else { break };
            self.cached_bytes -= old.len();
        }
        Ok(Some(cached))
    }
}

fn length(stored: &StoredBytes<'_>) -> u64 {
    match stored {
        StoredBytes::At(range, _) => range.end - range.start,
        _ => 0,
    }
}

/// Whether the part of a chunk that is inside the array lies wholly in a box.
fn within(chunk: &Extent, lead: &Extent) -> bool {
    let axes = chunk.origin.iter().zip(&chunk.clipped).zip(lead.origin.iter().zip(&lead.clipped));
    axes.into_iter().all(|((origin, length), (first, all))| origin >= first && origin + length <= first + all)
}

/// Copies the elements that two boxes of an array have in common. Each box holds its elements in C order, from its origin on.
fn copy_common(from: (&[u8], &Extent), to: (&mut [u8], &Extent), size: usize) {
    let ((from, source), (to, target)) = (from, to);
    let axes = source.origin.len();
    let begin: Vec<u64> = source.origin.iter().zip(&target.origin).map(|(a, b)| *a.max(b)).collect();
    let end = |of: &Extent, axis: usize| of.origin[axis] + of.clipped[axis];
    let lengths: Vec<u64> =
        (0..axes).map(|axis| end(source, axis).min(end(target, axis)).saturating_sub(begin[axis])).collect();
    if lengths.contains(&0) {
        return;
    }
    let row = lengths.last().map_or(1, |length| *length as usize) * size;
    let first = |of: &Extent, at: &[u64]| {
        let place = |all: u64, axis: usize| {
            all * of.held[axis] + (begin[axis] - of.origin[axis]) + at.get(axis).copied().unwrap_or(0)
        };
        (0..axes).fold(0, place) as usize * size
    };
    let mut at = vec![0u64; axes.saturating_sub(1)];
    loop {
        let (source, target) = (first(source, &at), first(target, &at));
        if let (Some(from), Some(to)) = (from.get(source..source + row), to.get_mut(target..target + row)) {
            to.copy_from_slice(from);
        }
        let Some(axis) = (0..at.len()).rev().find(|axis| at[*axis] + 1 < lengths[*axis]) else { return };
        at[axis] += 1;
        at[axis + 1..].fill(0);
    }
}
