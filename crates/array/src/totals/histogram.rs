//! Histograms: the number of elements in each bin.

use gristmill_kernel::KernelError;
use gristmill_kernel::state::StateReader;

use crate::reduction::Op;
use crate::statistics::ChunkStatistics;
use crate::totals::{Row, Rule, Totals, add_counts, put_counts};
use crate::values::{Number, with_type, with_values};

pub(crate) struct Histogram {
    edges: Vec<f64>,
    /// Counts of all bins of a cell, cell after cell.
    counts: Vec<u64>,
}

impl Histogram {
    pub(crate) fn new(rule: &Rule, cells: usize) -> Histogram {
        let edges = match &rule.op {
            Op::Histogram(edges) => edges.clone(),
            _ => Vec::new(),
        };
        let bins = edges.len().saturating_sub(1);
        Histogram { edges, counts: vec![0; cells * bins] }
    }

    fn bins(&self) -> usize {
        self.edges.len().saturating_sub(1)
    }

    #[inline]
    fn bin<T: Number>(&self, x: T) -> Option<usize> {
        match bin_position(&self.edges, x) {
            BinPosition::Bin(bin) => Some(bin),
            _ => None,
        }
    }
}

/// Position of an element among the bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinPosition {
    Below,
    Bin(usize),
    Above,
    /// The element is NaN, or there are no bins.
    NoBin,
}

/// Returns the position of an element. If two elements have one position, all elements between them have it too.
#[inline]
pub(crate) fn bin_position<T: Number>(edges: &[f64], x: T) -> BinPosition {
    let x = x.to_f64();
    let [first, .., last] = edges else { return BinPosition::NoBin };
    if x.is_nan() {
        BinPosition::NoBin
    } else if x < *first {
        BinPosition::Below
    } else if x > *last {
        BinPosition::Above
    } else {
        BinPosition::Bin(edges.partition_point(|edge| *edge <= x).clamp(1, edges.len() - 1) - 1)
    }
}

impl Totals for Histogram {
    fn row(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        let bins = self.bins();
        with_values!(row.values, values => {
            for (i, x) in values[row.from..row.to].iter().enumerate() {
                if let Some(bin) = self.bin(*x) {
                    let n = &mut self.counts[(at + i) * bins + bin];
                    *n = n.wrapping_add(1);
                }
            }
        });
        Ok(())
    }

    fn run(&mut self, at: usize, row: &Row<'_>) -> Result<(), KernelError> {
        let bins = self.bins();
        with_values!(row.values, values => {
            for x in &values[row.from..row.to] {
                if let Some(bin) = self.bin(*x) {
                    let n = &mut self.counts[at * bins + bin];
                    *n = n.wrapping_add(1);
                }
            }
        });
        Ok(())
    }

    fn take(&mut self, at: usize, statistics: &ChunkStatistics) -> Result<(), KernelError> {
        let Some((least, _)) = statistics.range else { return Ok(()) };
        if let Some(bin) = with_type!(statistics.dtype, T => self.bin(T::of_key(least))) {
            let at = at * self.bins() + bin;
            let n = &mut self.counts[at];
            *n = n.wrapping_add(statistics.elements - statistics.missing);
        }
        Ok(())
    }

    fn save(&self, out: &mut Vec<u8>) {
        put_counts(&self.counts, out);
    }

    fn merge(&mut self, read: &mut StateReader<'_>) -> Result<(), KernelError> {
        add_counts(&mut self.counts, read)
    }

    fn answer(&self, _: usize, at: usize, out: &mut Vec<u8>) -> Result<(), KernelError> {
        let bins = self.bins();
        put_counts(&self.counts[at * bins..(at + 1) * bins], out);
        Ok(())
    }
}
