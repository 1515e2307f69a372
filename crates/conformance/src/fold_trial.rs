//! Trials without the runtime: random blocks, saves, extents and merges, pass by pass.

use std::collections::BTreeMap;
use std::ops::Range;

use fastrand::Rng;
use gristmill_kernel::{
    Block, Ctx, Fold, Kernel, KernelError, MAX_FULL_WITHOUT_PROGRESS, Next, Order, Output, Position, Record,
    RowBuffer, Spec, Step, saved,
};

use crate::answer::Answer;
use crate::case::Case;

/// Parts of a trial that are random.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Variation {
    pub blocks: bool,
    pub saves: bool,
    pub extents: bool,
    pub order: bool,
    pub identities: bool,
}

/// Joins the rows of a kernel that gives bytes. The number of records that were put at once is not part of the answer.
pub(crate) fn join_bytes(spec: &Spec, rows: Vec<(Position, Vec<u8>)>) -> Vec<(Position, Vec<u8>)> {
    if spec.output != Output::Bytes {
        return rows;
    }
    let bytes: Vec<u8> = rows.into_iter().flat_map(|(_, bytes)| bytes).collect();
    if bytes.is_empty() { Vec::new() } else { vec![(Position::of_record(0), bytes)] }
}

/// Most passes of a case. After more passes, the suite gives up.
const MAX_PASSES: u32 = 1000;

/// One trial of a case. `setup` collects descriptions of how the data was cut.
pub(crate) struct Trial<'a> {
    pub case: &'a Case,
    pub kernel: &'a dyn Kernel,
    pub variation: Variation,
    pub rng: Rng,
    pub setup: Vec<String>,
    rows: BTreeMap<Position, Vec<u8>>,
    /// A fold had enough, so later rows are ignored.
    enough: bool,
}

type Result<T> = std::result::Result<T, KernelError>;

impl<'a> Trial<'a> {
    pub fn new(case: &'a Case, kernel: &'a dyn Kernel, variation: Variation, seed: u64) -> Trial<'a> {
        Trial {
            case,
            kernel,
            variation,
            rng: Rng::with_seed(seed),
            setup: Vec::new(),
            rows: BTreeMap::new(),
            enough: false,
        }
    }

    /// Runs all passes.
    pub fn run(&mut self) -> Answer {
        let value = self.passes();
        let rows = std::mem::take(&mut self.rows).into_iter().collect();
        Answer { value, rows: join_bytes(&self.kernel.spec(), rows) }
    }

    fn broken<T>(&self, why: impl Into<String>) -> Result<T> {
        Err(KernelError::Contract { kernel: self.kernel.spec().name, why: why.into() })
    }

    fn passes(&mut self) -> Result<gristmill_kernel::Value> {
        let spec = self.kernel.spec();
        let positions = match spec.record {
            Record::Fixed(bytes) => self.case.data.len() as u64 / bytes.max(1),
            _ => self.case.positions(),
        };
        let mut ctx = Ctx { side: self.case.side.clone(), ..Ctx::first(0..positions) };
        for _ in 0..MAX_PASSES {
            let whole = self.pass(&spec, &ctx)?;
            match self.kernel.advance(&ctx, &whole)? {
                Next::Done(value) => return Ok(value),
                Next::Again(_) | Next::Last(_) if ctx.last => {
                    return self.broken("continues after its last pass");
                }
                Next::Again(shared) => ctx = ctx.next(shared),
                Next::Last(shared) => ctx = ctx.last(shared),
            }
        }
        self.broken(format!("did not end within {MAX_PASSES} passes"))
    }

    fn pass(&mut self, spec: &Spec, ctx: &Ctx) -> Result<Vec<u8>> {
        let cuts =
            if self.variation.extents { self.cuts(spec, ctx.extent.end, 6) } else { vec![0, ctx.extent.end] };
        if self.variation.extents {
            self.setup.push(format!("the input is cut into extents at {cuts:?}"));
        }
        let mut states = Vec::new();
        self.enough = false;
        for pair in cuts.windows(2) {
            states.push(self.extent(spec, ctx, pair[0]..pair[1])?);
        }
        if self.variation.identities {
            let identity = saved(&*self.kernel.begin(ctx)?);
            let at = self.rng.usize(0..=states.len());
            states.insert(at, identity);
            self.setup.push(format!("a fold over nothing is merged in as partial {at} of {}", states.len()));
        }
        if self.variation.order && spec.order == Order::Any {
            self.rng.shuffle(&mut states);
            self.setup.push("partials are merged in random order".into());
        }
        self.enough = false;
        while states.len() > 1 {
            let at = self.rng.usize(0..states.len() - 1);
            let later = states.remove(at + 1);
            let mut fold = self.kernel.restore(ctx, &states[at])?;
            let mut sink = RowBuffer::new(usize::MAX);
            fold.merge(&later, &mut sink)?;
            self.take_rows(&mut sink)?;
            states[at] = saved(&*fold);
        }
        match states.pop() {
            Some(state) => Ok(state),
            None => Ok(saved(&*self.kernel.begin(ctx)?)),
        }
    }

    /// Draws sorted positions from 0 to `end` at which records, lines or grains begin.
    fn cuts(&mut self, spec: &Spec, end: u64, most: usize) -> Vec<u64> {
        let mut cuts = vec![0, end];
        for _ in 0..self.rng.usize(0..=most) {
            let at = self.rng.u64(0..=end) / spec.grain.max(1) * spec.grain.max(1);
            cuts.push(self.boundary(spec, at));
        }
        cuts.sort_unstable();
        cuts.dedup();
        if cuts.len() == 1 { vec![0, end] } else { cuts }
    }

    /// The next position at which the input may be cut.
    fn boundary(&self, spec: &Spec, at: u64) -> u64 {
        if spec.record != Record::Line || at == 0 {
            return at;
        }
        let behind = &self.case.data[at as usize - 1..];
        behind.iter().position(|byte| *byte == b'\n').map_or(self.case.data.len() as u64, |nl| at + nl as u64)
    }

    fn block(&self, spec: &Spec, range: Range<u64>) -> Block<'a> {
        let unit = spec.record.bytes();
        let count = range.end - range.start;
        let case = self.case;
        if unit == 0 {
            return Block::new(range.start, count, &[]);
        }
        let all = case.data.len() as u64 / unit;
        let low = range.start.saturating_sub(spec.halo);
        let high = (range.end + spec.halo).min(all);
        let bytes = &case.data[(low * unit) as usize..(high * unit) as usize];
        let mut block = Block::new(range.start, count, bytes)
            .with_halo(((range.start - low) * unit) as usize, ((high - range.end) * unit) as usize);
        if let (Some(second), Some(size)) = (&case.second, spec.second) {
            block = block.with_second(&second[(range.start * size) as usize..(range.end * size) as usize]);
        }
        block
    }

    fn extent(&mut self, spec: &Spec, ctx: &Ctx, extent: Range<u64>) -> Result<Vec<u8>> {
        let mut fold = self.kernel.begin(ctx)?;
        // The extent is cut into several blocks, or is one block. The sink holds few rows, or all.
        let mut sink =
            RowBuffer::new(if self.variation.blocks { self.rng.usize(1..200) } else { usize::MAX });
        let mut cuts = vec![extent.start, extent.end];
        if self.variation.blocks {
            for _ in 0..self.rng.usize(0..=8) {
                let at = self.rng.u64(extent.start..=extent.end);
                cuts.push(self.boundary(spec, at).min(extent.end));
            }
            cuts.sort_unstable();
            cuts.dedup();
            self.setup.push(format!("extent {extent:?} is cut into blocks at {cuts:?}"));
        }
        let mut blocks: Vec<Range<u64>> =
            cuts.windows(2).map(|pair| pair[0]..pair[1]).filter(|range| !range.is_empty()).collect();
        if self.variation.order && spec.order == Order::Any && spec.grain <= 1 {
            self.rng.shuffle(&mut blocks);
            self.setup.push(format!("the blocks come in the order {blocks:?}"));
        }
        for range in blocks {
            let block = self.block(spec, range);
            let mut done = 0;
            let mut stalls = 0;
            while done < block.count() {
                let rest = block.part(spec, done, block.count());
                let (took, full) = match fold.update(&rest, &mut sink)? {
                    Step::Enough => {
                        self.take_rows(&mut sink)?;
                        // Later rows are not part of the answer. States are still merged, which must change nothing.
                        self.enough = true;
                        return Ok(saved(&*fold));
                    }
                    Step::Took(took) => (took, false),
                    Step::Full(took) => (took, true),
                };
                if took > rest.count() || took == 0 && !full {
                    return self.broken(format!("took {took} of {} records", rest.count()));
                }
                stalls = if took == 0 && sink.is_empty() { stalls + 1 } else { 0 };
                if stalls > MAX_FULL_WITHOUT_PROGRESS {
                    return self.broken("reports that an empty sink is full");
                }
                done += took;
                self.take_rows(&mut sink)?;
                self.maybe_restore(spec, ctx, block.first() + done, &mut fold)?;
            }
        }
        self.take_rows(&mut sink)?;
        Ok(saved(&*fold))
    }

    /// Sometimes saves the fold and continues with a restored one.
    fn maybe_restore(&mut self, spec: &Spec, ctx: &Ctx, at: u64, fold: &mut Box<dyn Fold>) -> Result<()> {
        if !self.variation.saves || !spec.can_save || !self.rng.bool() {
            return Ok(());
        }
        let state = saved(&**fold);
        let restored = self.kernel.restore(ctx, &state)?;
        self.setup.push(format!("the fold is saved and restored before record {at}"));
        if saved(&*restored) != state {
            return self.broken("a restored fold saves different bytes than it was restored from");
        }
        *fold = restored;
        Ok(())
    }

    fn take_rows(&mut self, sink: &mut RowBuffer) -> Result<()> {
        for (at, row) in sink.take().iter().filter(|_| !self.enough) {
            if let Some(before) = self.rows.insert(at, row.to_vec())
                && before != row
            {
                return self.broken(format!("two different rows have the position {at:?}"));
            }
        }
        Ok(())
    }
}

impl Trial<'_> {
    /// State of a first pass over the whole input, if the kernel gives one.
    pub fn first_state(&mut self, ctx: &Ctx) -> Option<Vec<u8>> {
        let spec = self.kernel.spec();
        self.variation = Variation::default();
        self.extent(&spec, ctx, ctx.extent.clone()).ok()
    }
}
