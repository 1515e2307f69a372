//! [`Tree`]: merges in one canonical order, for folds whose merge is not associative in bits.
//!
//! A merge of floats rounds, so the bits of `(a + b) + c` and `a + (b + c)` differ. Here records are cut into leaves of
//! a fixed number of records (the *grain*). Leaves are counted from record 0 of the file, and not from the beginning of
//! a target, a lane or a block. Two neighbours are merged only if they are siblings in the dyadic tree over the leaves.
//! So every split leads to the same merges and the same bits.
//!
//! A state is a list of nodes (level, number, state of the wrapped kernel) and, in the middle of a leaf, that
//! leaf. Over an extent of n leaves it holds at most 2 log2 n nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::state::{StateReader, StateWriter};
use crate::{Block, Ctx, Fold, Kernel, KernelError, Next, NoRows, Numerics, Order, Sink, Spec, Step, saved};

/// A kernel of class *fixed* that wraps a kernel whose `merge` is only deterministic.
///
/// The wrapped kernel gives a value and emits no rows. Its folds see whole leaves, in order.
#[derive(Clone, Debug)]
pub struct Tree<K> {
    kernel: Arc<K>,
    grain: u64,
}

impl<K: Kernel + 'static> Tree<K> {
    /// Wraps `kernel`, with leaves of `grain` records (at least 1). The grain is part of the definition of the answer:
    /// another grain may give other bits.
    pub fn new(kernel: K, grain: u64) -> Tree<K> {
        Tree { kernel: Arc::new(kernel), grain: grain.max(1) }
    }
}

impl<K: Kernel + 'static> Kernel for Tree<K> {
    fn spec(&self) -> Spec {
        let inner = self.kernel.spec();
        let state_hint = inner.state_hint.saturating_mul(4);
        Spec { order: Order::Any, numerics: Numerics::Fixed, grain: self.grain, state_hint, ..inner }
    }

    fn begin(&self, ctx: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(TreeFold {
            kernel: self.kernel.clone(),
            spec: self.kernel.spec(),
            grain: self.grain,
            ctx: ctx.clone(),
            nodes: BTreeMap::new(),
            open: None,
        }))
    }

    fn advance(&self, ctx: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let nodes = decode(self.kernel.spec().name, whole)?;
        if nodes.1.is_some() {
            let why = "a leaf is not finished".into();
            return Err(KernelError::BadState { kernel: self.kernel.spec().name, why });
        }
        // The nodes are the maximal dyadic nodes of the whole extent, so an extent always has the same list of nodes.
        // They are merged from the right, the smallest first, as in a tree that is padded with empty leaves.
        let mut right: Option<Vec<u8>> = None;
        for (_, state) in nodes.0.into_iter().rev() {
            right = Some(match right {
                None => state,
                Some(later) => combine(&*self.kernel, ctx, &state, &later)?,
            });
        }
        match right {
            Some(whole) => self.kernel.advance(ctx, &whole),
            None => self.kernel.advance(ctx, &saved(&*self.kernel.begin(ctx)?)),
        }
    }
}

/// A map from (number of the first leaf, level) to the state of a node.
type Nodes = BTreeMap<(u64, u32), Vec<u8>>;

struct TreeFold<K> {
    kernel: Arc<K>,
    spec: Spec,
    grain: u64,
    ctx: Ctx,
    nodes: Nodes,
    open: Option<Leaf>,
}

struct Leaf {
    number: u64,
    next: u64,
    fold: Box<dyn Fold>,
}

fn combine<K: Kernel>(kernel: &K, ctx: &Ctx, left: &[u8], right: &[u8]) -> Result<Vec<u8>, KernelError> {
    let mut fold = kernel.restore(ctx, left)?;
    fold.merge(right, &mut NoRows)?;
    Ok(saved(&*fold))
}

impl<K: Kernel> TreeFold<K> {
    fn insert(&mut self, mut first: u64, mut level: u32, mut state: Vec<u8>) -> Result<(), KernelError> {
        // A node of level l covers 2^l leaves. Its sibling differs in bit l of the number of the first leaf.
        while level < 63 {
            let sibling = first ^ (1 << level);
            let Some(other) = self.nodes.remove(&(sibling, level)) else { break };
            state = if sibling < first {
                combine(&*self.kernel, &self.ctx, &other, &state)?
            } else {
                combine(&*self.kernel, &self.ctx, &state, &other)?
            };
            first = first.min(sibling);
            level += 1;
        }
        match self.nodes.insert((first, level), state) {
            None => Ok(()),
            Some(_) => Err(self.bad(format!("leaf {first} is there twice"))),
        }
    }

    fn bad(&self, why: String) -> KernelError {
        KernelError::BadState { kernel: self.spec.name, why }
    }
}

impl<K: Kernel> Fold for TreeFold<K> {
    fn update(&mut self, block: &Block<'_>, sink: &mut dyn Sink) -> Result<Step, KernelError> {
        let at = block.first();
        let number = at / self.grain;
        let leaf_end = (number + 1).saturating_mul(self.grain).min(self.ctx.extent.end);
        let mut leaf = match self.open.take() {
            Some(leaf) if leaf.next == at => leaf,
            Some(leaf) => {
                return Err(self.bad(format!("leaf {} continues at {at}, not {}", leaf.number, leaf.next)));
            }
            None if at == (number * self.grain).max(self.ctx.extent.start) => {
                Leaf { number, next: at, fold: self.kernel.begin(&self.ctx)? }
            }
            None => return Err(self.bad(format!("record {at} is inside a leaf of {} records", self.grain))),
        };
        let part = block.part(&self.spec, 0, leaf_end - at);
        let took = match leaf.fold.update(&part, sink)? {
            Step::Took(took) => took.min(part.count()),
            Step::Full(_) | Step::Enough => {
                let why = "a kernel in a tree must take every record and emit nothing".into();
                return Err(KernelError::Contract { kernel: self.spec.name, why });
            }
        };
        leaf.next += took;
        if leaf.next == leaf_end {
            self.insert(number, 0, saved(&*leaf.fold))?;
        } else {
            self.open = Some(leaf);
        }
        Ok(Step::Took(took))
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.nodes.len() as u64);
        for ((first, level), state) in &self.nodes {
            out.put_u64(*first);
            out.put_u64(u64::from(*level));
            out.put_blob(state);
        }
        out.put_flag(self.open.is_some());
        if let Some(leaf) = &self.open {
            out.put_u64(leaf.number);
            out.put_u64(leaf.next);
            out.put_blob(&saved(&*leaf.fold));
        }
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        let (nodes, open) = decode(self.spec.name, later)?;
        for ((first, level), state) in nodes {
            self.insert(first, level, state)?;
        }
        if let Some((number, next, state)) = open {
            if self.open.is_some() {
                return Err(self.bad("two leaves are unfinished".into()));
            }
            self.open = Some(Leaf { number, next, fold: self.kernel.restore(&self.ctx, &state)? });
        }
        Ok(())
    }
}

type Decoded = (Nodes, Option<(u64, u64, Vec<u8>)>);

fn decode(kernel: &'static str, state: &[u8]) -> Result<Decoded, KernelError> {
    let mut read = StateReader::new(kernel, state);
    let mut nodes = Nodes::new();
    for _ in 0..read.u64()? {
        let first = read.u64()?;
        let level = read.u64()?;
        let level = u32::try_from(level).ok().filter(|l| *l < 64 && first.trailing_zeros() >= *l);
        let level =
            level.ok_or_else(|| read.bad(format!("a node at leaf {first} has an impossible level")))?;
        nodes.insert((first, level), read.blob()?.to_vec());
    }
    let open = if read.flag()? { Some((read.u64()?, read.u64()?, read.blob()?.to_vec())) } else { None };
    read.end()?;
    Ok((nodes, open))
}
