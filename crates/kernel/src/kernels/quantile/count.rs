//! One pass of a quantile: counts of values by some bits of their keys.

use std::collections::BTreeMap;

use multiversion::multiversion;

use super::BUCKETS;
use crate::element::Element;
use crate::kernels::order::key;
use crate::nan::NanRule;
use crate::state::{StateReader, StateWriter};
use crate::{Block, Fold, KernelError, Sink, Step};

/// Elements that are counted together. A group without an element of a known prefix is passed over at once.
const GROUP: usize = 64;

/// A map from the number of a table to its pairs (bucket, count), ascending.
pub(super) type Tables = BTreeMap<u64, Vec<(u64, u64)>>;

pub(super) fn decode(kernel: &'static str, state: &[u8]) -> Result<(u64, u64, Tables), KernelError> {
    let mut read = StateReader::new(kernel, state);
    let (count, nans) = (read.u64()?, read.u64()?);
    let mut tables = Tables::new();
    while !read.rest().is_empty() {
        let (table, entries) = (read.u64()?, read.u64()?);
        let entries = (0..entries).map(|_| {
            let (bucket, count) = (read.u64()?, read.u64()?);
            if bucket >= BUCKETS as u64 {
                Err(read.bad("a bucket is beyond the table"))
            } else {
                Ok((bucket, count))
            }
        });
        let entries: Vec<_> = entries.collect::<Result<_, _>>()?;
        tables.insert(table, entries);
    }
    Ok((count, nans, tables))
}

pub(super) struct QuantileFold<T> {
    pub(super) name: &'static str,
    pub(super) per_record: u64,
    pub(super) nan: NanRule,
    /// Number of bits below the bits that this pass counts by.
    pub(super) bucket_shift: u32,
    /// Number of bits below the bits that are known.
    pub(super) prefix_shift: u32,
    pub(super) prefixes: Vec<u64>,
    /// One table for each prefix, empty until there is a value to count.
    pub(super) tables: Vec<Vec<u64>>,
    pub(super) count: u64,
    pub(super) nans: u64,
    pub(super) element: std::marker::PhantomData<T>,
}

impl<T: Element> QuantileFold<T> {
    fn table(&mut self, at: usize) -> &mut Vec<u64> {
        let table = &mut self.tables[at];
        if table.is_empty() {
            table.resize(BUCKETS, 0);
        }
        table
    }

    /// Counts elements with these keys. All tables have room.
    fn count_keys(&mut self, keys: &[u64]) {
        self.count += keys.len() as u64;
        let whole = self.prefix_shift == 8 * T::SIZE as u32;
        for (prefix, table) in self.prefixes.iter().zip(&mut self.tables) {
            let Some(table) = table.first_chunk_mut::<BUCKETS>() else { continue };
            let mut add = |key: u64| table[(key >> self.bucket_shift) as usize % BUCKETS] += 1;
            let has = |key: u64| key >> self.prefix_shift == *prefix;
            if whole {
                keys.iter().for_each(|key| add(*key));
            } else if keys.iter().fold(false, |any, key| any | has(*key)) {
                keys.iter().filter(|key| has(**key)).for_each(|key| add(*key));
            }
        }
    }
}

/// Writes the keys of elements. Returns false if one of the elements is NaN.
#[multiversion(targets("x86_64+avx+avx2+bmi1+bmi2", "x86_64+sse4.2"))]
fn write_keys<T: Element>(elements: &[u8], keys: &mut [u64; GROUP]) -> bool {
    let mut nan = false;
    for (out, x) in keys.iter_mut().zip(elements.chunks_exact(T::SIZE)) {
        let x = T::read(x);
        nan |= x.is_nan();
        *out = key(x);
    }
    !nan
}

impl<T: Element> Fold for QuantileFold<T> {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        for at in 0..self.prefixes.len() {
            self.table(at);
        }
        let mut first = block.first() * self.per_record;
        for group in block.data().chunks(GROUP * T::SIZE) {
            let count = group.len() / T::SIZE;
            let mut keys = [0; GROUP];
            let mut kept = count;
            if !write_keys::<T>(group, &mut keys) {
                kept = 0;
                for (index, x) in (first..).zip(group.chunks_exact(T::SIZE).map(T::read)) {
                    if x.is_nan() {
                        self.nan.check(Some(index))?;
                        self.nans += 1;
                    } else {
                        keys[kept] = key(x);
                        kept += 1;
                    }
                }
            }
            self.count_keys(&keys[..kept]);
            first += count as u64;
        }
        Ok(Step::Took(block.count()))
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.count);
        out.put_u64(self.nans);
        for (at, table) in (0..).zip(&self.tables) {
            let counted: Vec<(u64, u64)> = (0..).zip(table.iter().copied()).filter(|(_, n)| *n > 0).collect();
            if !counted.is_empty() {
                out.put_u64(at);
                out.put_u64(counted.len() as u64);
                for (bucket, n) in counted {
                    out.put_u64(bucket);
                    out.put_u64(n);
                }
            }
        }
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        let (count, nans, tables) = decode(self.name, later)?;
        self.count = self.count.saturating_add(count);
        self.nans = self.nans.saturating_add(nans);
        for (at, entries) in tables {
            if at >= self.prefixes.len() as u64 {
                return Err(
                    StateReader::new(self.name, later).bad("it has a table that this pass does not count")
                );
            }
            let table = self.table(at as usize);
            for (bucket, n) in entries {
                table[bucket as usize] = table[bucket as usize].saturating_add(n);
            }
        }
        Ok(())
    }
}
