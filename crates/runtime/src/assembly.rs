//! Records of several variables, put together from their chunks.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

use gristmill_format::{Decoder, Extent};
use lru::LruCache;

use crate::RunError;
use crate::beside::Other;
use crate::buffer::Buffer;
use crate::chunk_reader::{Decoding, MAX_READ};
use crate::chunks::{Chunks, Stored};
use crate::fetch::Sight;
use crate::gather::gather;

/// Most bytes of decoded chunks of other variables that a lane keeps for the records to come.
pub(crate) const MAX_KEPT: usize = 64 << 20;

/// Chunks that it keeps.
const MAX_KEPT_CHUNKS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(65_535);

/// A chunk of one of the other variables.
type Key = (usize, u64);

/// What a lane puts records together with.
pub(crate) struct Assembly {
    decoders: Vec<Decoding>,
    /// Chunks that were decoded, the last used first.
    kept: LruCache<Key, Arc<Vec<u8>>>,
    kept_bytes: usize,
    record: Vec<u8>,
    /// Stored bytes that were read together, and where each chunk lies in them.
    ahead: Buffer,
    places: HashMap<Key, Range<usize>>,
    /// Those of a single chunk.
    single: Buffer,
    scratch: Buffer,
}

impl Assembly {
    /// Most bytes of memory that putting records together takes: decoders, chunks that are kept, and a record.
    pub fn memory(chunks: &Chunks) -> u64 {
        let decoders = chunks.other_tables().map(|table| Decoder::memory(&table.array));
        let records = chunks.other_tables().map(|table| table.array.chunk_bytes());
        let stored = chunks.other_tables().map(|table| Decoder::stored(&table.array)).max();
        let own = chunks.table().array.chunk_bytes().saturating_add(stored.unwrap_or(0).max(MAX_READ));
        decoders.chain(records).fold(own.saturating_add(MAX_KEPT as u64), u64::saturating_add)
    }

    pub fn new(others: &[Other]) -> Result<Assembly, RunError> {
        let decoders = others.iter().map(|other| Decoding::new(&other.located.table.array));
        Ok(Assembly {
            decoders: decoders.collect::<Result<_, _>>()?,
            kept: LruCache::new(MAX_KEPT_CHUNKS),
            kept_bytes: 0,
            record: Vec::new(),
            ahead: Buffer::default(),
            places: HashMap::new(),
            single: Buffer::default(),
            scratch: Buffer::default(),
        })
    }

    /// Stored bytes that the record of a chunk needs beside it.
    pub fn lacks(&self, chunks: &Chunks, number: u64) -> u64 {
        let each = chunks.beside(number).filter(|(key, _)| !self.kept.contains(key));
        each.fold(0, |all, (_, stored)| all.saturating_add(length(&stored)))
    }

    /// Reads what the records of these chunks need, at once unless that is too much.
    pub fn read(&mut self, chunks: &Chunks, numbers: &[u64], sight: &mut Sight<'_>) -> Result<(), RunError> {
        self.places.clear();
        let (mut ranges, mut total) = (Vec::new(), 0u64);
        for number in numbers {
            for (key, stored) in chunks.beside(*number) {
                let Stored::At(range, _) = stored else { continue };
                if self.kept.contains(&key) || self.places.contains_key(&key) {
                    continue;
                }
                total = total.saturating_add(range.end - range.start);
                if total > MAX_READ {
                    // One by one, as they are needed.
                    self.places.clear();
                    return Ok(());
                }
                let from = (total - (range.end - range.start)) as usize;
                self.places.insert(key, from..total as usize);
                ranges.push(range);
            }
        }
        gather(sight, ranges.into_iter(), self.ahead.get(total as usize), &mut self.scratch)
    }

    /// The record of a chunk whose elements these are.
    pub fn record(
        &mut self,
        chunks: &Chunks,
        number: u64,
        elements: &[u8],
        sight: &mut Sight<'_>,
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
            for met in other.meets(&extent) {
                let Some(held) = array.extent(met) else { continue };
                // One that lies in this box as a whole is not met again.
                let again = !within(&held, &extent);
                let decoded = self.decoded(chunks, (variable, met), again, sight)?;
                let from = match &decoded {
                    Some(kept) => &kept[..],
                    None => self.decoders[variable].last(),
                };
                let to = &mut self.record[at..];
                if other.alike && from.len() == to.len() {
                    to.copy_from_slice(from);
                } else {
                    copy_common((from, &held), (to, &extent), size);
                }
            }
        }
        Ok(&self.record)
    }

    /// The elements of a chunk of another variable: kept, or the last of its decoder.
    fn decoded(
        &mut self,
        chunks: &Chunks,
        key: Key,
        again: bool,
        sight: &mut Sight<'_>,
    ) -> Result<Option<Arc<Vec<u8>>>, RunError> {
        if let Some(kept) = self.kept.get(&key) {
            return Ok(Some(kept.clone()));
        }
        let (variable, number) = key;
        let none = || RunError::Beside { why: format!("there is no chunk {number} beside") };
        let stored =
            chunks.others().get(variable).and_then(|other| other.located.stored(number)).ok_or_else(none)?;
        let place = self.places.get(&key).cloned();
        let bytes: &mut [u8] = match (&stored, place) {
            (Stored::At(..), Some(place)) => &mut self.ahead.get(place.end)[place],
            (Stored::At(range, _), None) => {
                let single = self.single.get((range.end - range.start) as usize);
                gather(sight, [range.clone()].into_iter(), single, &mut self.scratch)?;
                single
            }
            _ => &mut [],
        };
        let decoding = self.decoders.get_mut(variable).ok_or_else(none)?;
        decoding.keep(number, &stored, bytes)?;
        let elements = decoding.last();
        if !again || elements.len() > MAX_KEPT {
            return Ok(None);
        }
        let kept = Arc::new(elements.to_vec());
        self.kept_bytes += kept.len();
        if let Some((_, old)) = self.kept.push(key, kept.clone()) {
            self.kept_bytes -= old.len();
        }
        while self.kept_bytes > MAX_KEPT {
            let Some((_, old)) = self.kept.pop_lru() else { break };
            self.kept_bytes -= old.len();
        }
        Ok(Some(kept))
    }
}

fn length(stored: &Stored<'_>) -> u64 {
    match stored {
        Stored::At(range, _) => range.end - range.start,
        _ => 0,
    }
}

/// Whether all of a chunk that is inside the array lies in a box.
fn within(chunk: &Extent, lead: &Extent) -> bool {
    let axes = chunk.origin.iter().zip(&chunk.clipped).zip(lead.origin.iter().zip(&lead.clipped));
    axes.into_iter().all(|((origin, length), (first, all))| origin >= first && origin + length <= first + all)
}

/// Copies the elements that two boxes of an array have in common. Each holds its elements in C order, from its origin on.
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
