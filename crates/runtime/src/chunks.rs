//! Records that are the chunks of an array: where each lies, which target owns it, and its elements.
//!
//! A chunk belongs to the target that holds most of its stored bytes, of several the first in the file; those that are
//! not stored are dealt out by their numbers. The owner reads what it has, pulls the rest, and decodes. Chunks
//! that nothing is asked of are not read: positions number those that are, in ascending order.

use std::ops::Range;
use std::sync::Arc;

use gristmill_format::{ChunkLocation, ChunkTable, FileRef, FormatError, FoundChunk, MAX_CHUNKS, wire};
use gristmill_kernel::{Block, Ctx, Fold, Kernel, KernelError, Next, Sink, Spec, Step};
use gristmill_layout::{Layout, TargetIndex};

use crate::beside::{Located, Other, bounded, located, record_bytes};
use crate::{FileParts, RunError};

/// The chunks of an array that are folded. Record `i` of the request is chunk `numbers[i]` of the table; the kernel is given
/// blocks of one chunk each, at that number. Where further variables are read, what they have in the chunk's box follows its
/// elements.
#[derive(Clone, Debug)]
pub struct Chunks {
    lead: Located,
    others: Arc<[Other]>,
    numbers: Arc<[u64]>,
    /// The files of all tables.
    files: Arc<[FileRef]>,
}

/// What a target has of the chunks that are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Chunks that belong to it.
    pub chunks: u64,
    /// Stored bytes that are read for them, those of other variables too.
    pub bytes: u64,
    /// Those of them that lie on other targets.
    pub pulled: u64,
    /// Stretches that these are.
    pub pulls: u64,
}

impl Chunks {
    /// These chunks of the table, by their numbers in ascending order. Its files lie one behind the other in the file that is
    /// read, in the table's order and without gaps.
    ///
    /// # Errors
    /// More than [`MAX_CHUNKS`] numbers, or ones that are not in order or past the last.
    pub fn new(table: Arc<ChunkTable>, numbers: Vec<u64>) -> Result<Chunks, RunError> {
        Chunks::beside_others(table, Vec::new(), numbers)
    }

    /// The same with other variables of the same shape beside them, by their tables. The files of all lie one behind the other:
    /// the table's, then those of each other that are not there yet ([`files`](Chunks::files)).
    ///
    /// # Errors
    /// As [`new`](Chunks::new); [`RunError::Beside`] for other shapes, and for chunks that are too large together or meet
    /// too often.
    pub fn beside_others(
        table: Arc<ChunkTable>,
        others: Vec<Arc<ChunkTable>>,
        numbers: Vec<u64>,
    ) -> Result<Chunks, RunError> {
        let refuse = |why: String| Err(FormatError::Table { why }.into());
        if numbers.len() > MAX_CHUNKS {
            let what = "chunks that are asked for".to_owned();
            return Err(
                FormatError::Limit { what, found: numbers.len() as u64, max: MAX_CHUNKS as u64 }.into()
            );
        }
        let ascending = numbers.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascending || numbers.last().is_some_and(|last| *last >= table.array.chunks()) {
            return refuse("the chunks that are asked for are not in order, or past the last".into());
        }
        let Some((all, files)) = located([table].into_iter().chain(others).collect()) else {
            return refuse("its files have more bytes than there can be".into());
        };
        let mut all = all.into_iter();
        let Some(lead) = all.next() else { return refuse("there is none".into()) };
        let array = &lead.table.array;
        let others = all.map(|located| Other::new(array, located)).collect::<Result<Vec<Other>, _>>()?;
        bounded(array, &others, &numbers)?;
        Ok(Chunks { lead, others: others.into(), numbers: numbers.into(), files: files.into() })
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.numbers.len() as u64
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The table.
    pub fn table(&self) -> &Arc<ChunkTable> {
        &self.lead.table
    }

    /// The tables of the other variables.
    pub fn other_tables(&self) -> impl Iterator<Item = &Arc<ChunkTable>> {
        self.others.iter().map(|other| &other.located.table)
    }

    /// The files that chunks lie in, in the order in which they are read as one.
    pub fn files(&self) -> &[FileRef] {
        &self.files
    }

    pub(crate) fn others(&self) -> &[Other] {
        &self.others
    }

    /// The chunks of other variables that a chunk needs: which variable, which chunk, and where it is.
    pub(crate) fn beside(&self, number: u64) -> impl Iterator<Item = ((usize, u64), Stored<'_>)> {
        let extent = if self.others.is_empty() { None } else { self.table().array.extent(number) };
        self.others.iter().enumerate().flat_map(move |(variable, other)| {
            let met = extent.as_ref().map(|extent| other.meets(extent)).unwrap_or_default();
            let found = move |met| Some(((variable, met), other.located.stored(met)?));
            met.into_iter().filter_map(found)
        })
    }

    /// What the decoded elements of all chunks depend on beside their stored bytes: the array, as bytes.
    pub fn array_identity(&self) -> Vec<u8> {
        wire::array(&self.table().array)
    }

    /// What the decoded elements of a chunk of such an array depend on as long as the file that is read is the same: its
    /// number, and where its stored bytes are. Of a table that lies about that it is that of other bytes, never of these.
    pub fn identity(&self, number: u64) -> Option<Vec<u8>> {
        let mut out = number.to_le_bytes().to_vec();
        match self.lead.find(number)? {
            FoundChunk::Missing => {}
            FoundChunk::At(ChunkLocation { chunk: _, file: _, offset, bytes, mask }) => {
                out.push(1);
                out.extend(offset.to_le_bytes());
                out.extend(bytes.to_le_bytes());
                out.extend(mask.to_le_bytes());
            }
            FoundChunk::Inline(bytes) => {
                out.push(2);
                out.extend_from_slice(bytes);
            }
        }
        Some(out)
    }

    pub(crate) fn number(&self, position: u64) -> Option<u64> {
        self.numbers.get(usize::try_from(position).ok()?).copied()
    }

    /// What is known of the chunk at a position.
    fn find(&self, position: u64) -> Result<(u64, FoundChunk<'_>), RunError> {
        let none = || RunError::from(FormatError::Table { why: format!("there is no chunk at {position}") });
        let number = self.number(position).ok_or_else(none)?;
        Ok((number, self.lead.find(number).ok_or_else(none)?))
    }

    /// The owner of the chunk at a position.
    fn owner(&self, position: u64, layout: &Layout) -> Result<(TargetIndex, Share), RunError> {
        let (number, found) = self.find(position)?;
        let lead = match found {
            FoundChunk::At(place) => Some(place.offset..place.offset.saturating_add(place.bytes)),
            _ => None,
        };
        let beside = self.beside(number).filter_map(|(_, stored)| match stored {
            Stored::At(range, _) => Some(range),
            _ => None,
        });
        let stored = lead.into_iter().chain(beside).filter(|range| !range.is_empty());
        Ok(holder(layout, stored).unwrap_or_else(|| {
            let targets = u64::from(layout.targets().max(1));
            ((number % targets) as TargetIndex, Share { chunks: 1, ..Share::default() })
        }))
    }

    /// What each target of a file that lies so has of the chunks; `length` are the bytes of the file.
    ///
    /// # Errors
    /// A table that does not fit the file.
    pub fn shares(&self, layout: &Layout, length: u64) -> Result<Vec<Share>, RunError> {
        self.check(length)?;
        let mut shares = vec![Share::default(); layout.targets() as usize];
        for position in 0..self.len() {
            let (owner, share) = self.owner(position, layout)?;
            if let Some(all) = shares.get_mut(owner as usize) {
                all.chunks += share.chunks;
                all.bytes += share.bytes;
                all.pulled += share.pulled;
                all.pulls += share.pulls;
            }
        }
        Ok(shares)
    }

    /// Checks the tables against the bytes that there are.
    fn check(&self, length: u64) -> Result<(), RunError> {
        let mut lengths: Vec<u64> = self.files.iter().map(|file| file.length).collect();
        // The table tells how long files were; the last, or the only one, is as long as it is now.
        if let Some((last, before)) = lengths.split_last_mut() {
            *last = length.saturating_sub(before.iter().sum());
        }
        self.lead.check(&lengths)?;
        self.others.iter().try_for_each(|other| other.located.check(&lengths))
    }
}

/// Chunks and their owners in one file.
#[derive(Clone, Debug)]
pub(crate) struct Owned {
    pub chunks: Chunks,
    owners: Arc<[TargetIndex]>,
    /// Bytes of a whole record.
    pub bytes: u64,
}

impl Owned {
    /// Checks the table against the file.
    pub fn new(chunks: Chunks, file: &FileParts) -> Result<Owned, RunError> {
        chunks.check(file.length)?;
        let mut owners = Vec::with_capacity(chunks.numbers.len());
        for position in 0..chunks.len() {
            owners.push(chunks.owner(position, &file.layout)?.0);
        }
        let bytes = record_bytes(&chunks.table().array, chunks.others());
        Ok(Owned { chunks, owners: owners.into(), bytes })
    }

    fn owner(&self, position: u64) -> Option<TargetIndex> {
        self.owners.get(usize::try_from(position).ok()?).copied()
    }
}

/// The target that holds most of these bytes, of several the one that comes first; and what that makes of its share. `None`
/// of no bytes.
fn holder(layout: &Layout, ranges: impl Iterator<Item = Range<u64>>) -> Option<(TargetIndex, Share)> {
    let mut bytes = 0u64;
    // Of each target, its bytes and stretches.
    let mut held: Vec<(TargetIndex, u64, u64)> = Vec::new();
    let extents = ranges.flat_map(|range| {
        bytes = bytes.saturating_add(range.end - range.start);
        layout.extents(range)
    });
    for extent in extents {
        let bytes = extent.file.end - extent.file.start;
        match held.iter_mut().find(|(target, ..)| *target == extent.target) {
            Some((_, sum, stretches)) => (*sum, *stretches) = (*sum + bytes, *stretches + 1),
            None => held.push((extent.target, bytes, 1)),
        }
    }
    let most = held.iter().map(|(_, bytes, _)| *bytes).max()?;
    let owner = held.iter().find(|(_, bytes, _)| *bytes == most).map_or(0, |(target, ..)| *target);
    let others = held.iter().filter(|(target, ..)| *target != owner);
    let pulls = others.map(|(_, _, stretches)| stretches).sum();
    Some((owner, Share { chunks: 1, bytes, pulled: bytes - most, pulls }))
}

/// A chunk that is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted<'a> {
    pub position: u64,
    pub number: u64,
    /// Its stored bytes in the file; or they are here; or it reads as the fill value.
    pub bytes: Stored<'a>,
}

/// Where the stored bytes of a chunk are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stored<'a> {
    /// In the file; a bit for each filter that was not applied.
    At(Range<u64>, u32),
    Inline(&'a [u8]),
    Missing,
    /// This is all that is needed of it.
    Settled(Vec<u8>),
}

impl Wanted<'_> {
    /// What is to be read of the file.
    pub fn range(&self) -> Range<u64> {
        match &self.bytes {
            Stored::At(range, _) => range.clone(),
            _ => 0..0,
        }
    }
}

impl Owned {
    /// Takes chunks of a target off the beginning of `positions`, as many as have `most` stored bytes together, one at least.
    /// `settled` says what does instead of a chunk, by its position and number; `beside` how many bytes are read with one.
    pub fn take(
        &self,
        target: TargetIndex,
        positions: &mut Range<u64>,
        most: u64,
        settled: &dyn Fn(u64, u64) -> Option<Vec<u8>>,
        beside: &dyn Fn(u64) -> u64,
    ) -> Result<Vec<Wanted<'_>>, RunError> {
        let (mut taken, mut sum) = (Vec::new(), 0);
        while let Some(position) = positions.clone().next() {
            if self.owner(position) == Some(target) {
                let (number, found) = self.chunks.find(position)?;
                let bytes = match found {
                    _ if let Some(summary) = settled(position, number) => Stored::Settled(summary),
                    FoundChunk::At(place) => Stored::At(place.offset..place.offset + place.bytes, place.mask),
                    FoundChunk::Inline(bytes) => Stored::Inline(bytes),
                    FoundChunk::Missing => Stored::Missing,
                };
                let wanted = Wanted { position, number, bytes };
                sum += wanted.range().end - wanted.range().start + beside(number);
                if sum > most && !taken.is_empty() {
                    break;
                }
                taken.push(wanted);
            }
            positions.start += 1;
        }
        Ok(taken)
    }
}

/// A kernel over chunks as one over those that are asked for.
pub(crate) struct Numbered {
    pub kernel: Arc<dyn Kernel>,
    pub numbers: Arc<[u64]>,
}

struct NumberedFold {
    fold: Box<dyn Fold>,
    numbers: Arc<[u64]>,
}

impl Numbered {
    pub fn new(kernel: Arc<dyn Kernel>, chunks: &Chunks) -> Numbered {
        Numbered { kernel, numbers: chunks.numbers.clone() }
    }

    fn fold(&self, fold: Box<dyn Fold>) -> Box<dyn Fold> {
        Box::new(NumberedFold { fold, numbers: self.numbers.clone() })
    }
}

impl Kernel for Numbered {
    fn spec(&self) -> Spec {
        self.kernel.spec()
    }
    fn begin(&self, ctx: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(self.fold(self.kernel.begin(ctx)?))
    }
    fn restore(&self, ctx: &Ctx, state: &[u8]) -> Result<Box<dyn Fold>, KernelError> {
        Ok(self.fold(self.kernel.restore(ctx, state)?))
    }
    fn advance(&self, ctx: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        self.kernel.advance(ctx, whole)
    }
    fn settled(&self, position: u64, summary: &[u8]) -> bool {
        let number = usize::try_from(position).ok().and_then(|position| self.numbers.get(position));
        number.is_some_and(|number| self.kernel.settled(*number, summary))
    }
    fn summary_key(&self) -> Option<Vec<u8>> {
        self.kernel.summary_key()
    }
}

impl Fold for NumberedFold {
    fn update(&mut self, block: &Block<'_>, sink: &mut dyn Sink) -> Result<Step, KernelError> {
        // A stop between two chunks leaves nothing of a block.
        let number = usize::try_from(block.first()).ok().and_then(|position| self.numbers.get(position));
        match number {
            Some(number) if block.count() == 1 => {
                let block = Block::new(*number, 1, block.data()).with_summary(block.summary());
                self.fold.update(&block, sink)
            }
            _ => Ok(Step::Took(block.count())),
        }
    }
    fn save(&self, out: &mut Vec<u8>) {
        self.fold.save(out);
    }
    fn merge(&mut self, later: &[u8], sink: &mut dyn Sink) -> Result<(), KernelError> {
        self.fold.merge(later, sink)
    }
    fn summary(&mut self) -> Option<Vec<u8>> {
        self.fold.summary()
    }
}
