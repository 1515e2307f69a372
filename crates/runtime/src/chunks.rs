//! Records that are the chunks of an array: where each lies, which target owns it, and its elements.
//!
//! A chunk belongs to the target that holds most of its stored bytes, of several the first in the file; those that are
//! not stored are dealt out by their numbers. The owner reads what it has, pulls the rest, and decodes. Chunks
//! that nothing is asked of are not read: positions number those that are, in ascending order.

use std::ops::Range;
use std::sync::Arc;

use gristmill_format::{ChunkTable, FormatError, Found, MAX_CHUNKS};
use gristmill_kernel::{Block, Ctx, Fold, Kernel, KernelError, Next, Sink, Spec, Step};
use gristmill_layout::TargetIndex;

use crate::{FileParts, RunError};

/// The chunks of an array that are folded. Record `i` of the request is chunk `numbers[i]` of the table; the kernel is given
/// blocks of one chunk each, at that number.
#[derive(Clone, Debug)]
pub struct Chunks {
    table: Arc<ChunkTable>,
    numbers: Arc<[u64]>,
}

impl Chunks {
    /// These chunks of the one file of the table, by their numbers in ascending order.
    ///
    /// # Errors
    /// A table of several files; more than [`MAX_CHUNKS`] numbers, or ones that are not in order or past the last.
    pub fn new(table: Arc<ChunkTable>, numbers: Vec<u64>) -> Result<Chunks, RunError> {
        let refuse = |why: String| Err(FormatError::Table { why }.into());
        if table.files.len() > 1 {
            return refuse(format!("its chunks lie in {} files", table.files.len()));
        }
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
        Ok(Chunks { table, numbers: numbers.into() })
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
        &self.table
    }

    fn number(&self, position: u64) -> Option<u64> {
        self.numbers.get(usize::try_from(position).ok()?).copied()
    }

    /// What is known of the chunk at a position.
    fn find(&self, position: u64) -> Result<(u64, Found<'_>), RunError> {
        let none = || RunError::from(FormatError::Table { why: format!("there is no chunk at {position}") });
        let number = self.number(position).ok_or_else(none)?;
        Ok((number, self.table.find(number).ok_or_else(none)?))
    }
}

/// Chunks and their owners in one file.
#[derive(Clone, Debug)]
pub(crate) struct Owned {
    pub chunks: Chunks,
    owners: Arc<[TargetIndex]>,
    /// Bytes of a whole decoded chunk.
    pub bytes: u64,
}

impl Owned {
    /// Checks the table against the file.
    pub fn new(chunks: Chunks, file: &FileParts) -> Result<Owned, RunError> {
        let lengths = vec![file.length; chunks.table.files.len()];
        chunks.table.check(&lengths)?;
        let targets = file.layout.targets().max(1);
        let mut owners = Vec::with_capacity(chunks.numbers.len());
        for position in 0..chunks.len() {
            let (number, found) = chunks.find(position)?;
            owners.push(match found {
                Found::At(place) if place.bytes > 0 => holder(file, place.offset..place.offset + place.bytes),
                _ => (number % u64::from(targets)) as TargetIndex,
            });
        }
        let bytes = chunks.table.array.chunk_bytes();
        Ok(Owned { chunks, owners: owners.into(), bytes })
    }

    fn owner(&self, position: u64) -> Option<TargetIndex> {
        self.owners.get(usize::try_from(position).ok()?).copied()
    }
}

/// The target that holds most of these bytes, of several the first in the file.
fn holder(file: &FileParts, range: Range<u64>) -> TargetIndex {
    let mut held: Vec<(TargetIndex, u64)> = Vec::new();
    for extent in file.layout.extents(range) {
        let bytes = extent.file.end - extent.file.start;
        match held.iter_mut().find(|(target, _)| *target == extent.target) {
            Some((_, sum)) => *sum += bytes,
            None => held.push((extent.target, bytes)),
        }
    }
    let most = held.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    held.into_iter().find(|(_, bytes)| *bytes == most).map_or(0, |(target, _)| target)
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
    pub fn take(
        &self,
        target: TargetIndex,
        positions: &mut Range<u64>,
        most: u64,
    ) -> Result<Vec<Wanted<'_>>, RunError> {
        let (mut taken, mut sum) = (Vec::new(), 0);
        while let Some(position) = positions.clone().next() {
            if self.owner(position) == Some(target) {
                let (number, found) = self.chunks.find(position)?;
                let bytes = match found {
                    Found::At(place) => Stored::At(place.offset..place.offset + place.bytes, place.mask),
                    Found::Inline(bytes) => Stored::Inline(bytes),
                    Found::Missing => Stored::Missing,
                };
                let wanted = Wanted { position, number, bytes };
                sum += wanted.range().end - wanted.range().start;
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
}

impl Fold for NumberedFold {
    fn update(&mut self, block: &Block<'_>, sink: &mut dyn Sink) -> Result<Step, KernelError> {
        // A stop between two chunks leaves nothing of a block.
        let number = usize::try_from(block.first()).ok().and_then(|position| self.numbers.get(position));
        match number {
            Some(number) if block.count() == 1 => {
                self.fold.update(&Block::new(*number, 1, block.data()), sink)
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
}
