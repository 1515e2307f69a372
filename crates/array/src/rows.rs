//! The rows of a piece of a chunk: they are gathered to blocks, decoded, computed, and added to cells.

use gristmill_kernel::KernelError;

use crate::measure::Measure;
use crate::plan::{BLOCK_ELEMENTS, Plan};
use crate::totals::{Row, Totals, domain};
use crate::values::Values;
use crate::walk::Piece;

/// Most elements of a row along a kept axis that are taken before the next row, so that their cells stay in the
/// first-level cache.
const SEGMENT: usize = 512;

/// Least elements of a row that is decoded without copying. Shorter rows are gathered to a block first.
const DIRECT: usize = 256;

/// Memory that is used again for each block.
#[derive(Debug)]
pub(crate) struct Scratch {
    raw: Vec<u8>,
    values: Values,
    weights: Vec<f64>,
    rows: Vec<RowAt>,
    /// The first element in each constant, for each row.
    constants: Vec<usize>,
}

impl Scratch {
    pub(crate) const fn new() -> Scratch {
        Scratch {
            raw: Vec::new(),
            values: Values::Bool(Vec::new()),
            weights: Vec::new(),
            rows: Vec::new(),
            constants: Vec::new(),
        }
    }
}

/// A row of a block: its start in the chunk, its length, and the first cell that it adds to.
#[derive(Clone, Copy, Debug)]
struct RowAt {
    offset: usize,
    length: usize,
    cell: usize,
    index: u64,
    weight: f64,
    /// The first element along the innermost axis.
    inner: usize,
}

/// The elements to reduce.
enum Computed {
    /// The decoded elements.
    Decoded,
    As(Values),
    Pairs([Values; 2]),
}

/// A walk over the rows of one piece of a chunk.
pub(crate) struct Walk<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) data: &'a [u8],
    pub(crate) piece: &'a Piece<'a>,
    pub(crate) totals: &'a mut dyn Totals,
    pub(crate) scratch: &'a mut Scratch,
    /// Statistics to which the decoded elements are added too.
    pub(crate) measure: Option<&'a mut Measure>,
}

impl Walk<'_> {
    pub(crate) fn run(mut self) -> Result<(), KernelError> {
        let piece = self.piece;
        let (inner, outer) = match piece.axes.split_last() {
            Some((inner, outer)) => (Some(inner), outer),
            None => (None, &piece.axes[..]),
        };
        let length = inner.map_or(1, |inner| inner.length);
        let segment = if inner.is_some_and(|inner| inner.is_kept()) { SEGMENT } else { BLOCK_ELEMENTS };
        let segments = length.div_ceil(segment);
        // Kept axes are the outer loops, so that rows of the same cells follow each other.
        let mut order: Vec<usize> = (0..outer.len()).filter(|axis| outer[*axis].is_kept()).collect();
        let kept = order.len();
        order.extend((0..outer.len()).filter(|axis| !outer[*axis].is_kept()));
        let counts: Vec<usize> = order[..kept]
            .iter()
            .map(|axis| outer[*axis].length)
            .chain([segments])
            .chain(order[kept..].iter().map(|axis| outer[*axis].length))
            .collect();
        let mut at = vec![0usize; counts.len()];
        self.scratch.constants.clear();
        let direct = inner.is_none_or(|inner| inner.stride == 1) && segment.min(length) >= DIRECT;
        let mut gathered = 0;
        loop {
            let begin = at[kept] * segment;
            let mut row = RowAt {
                offset: piece.offset,
                length: segment.min(length - begin),
                cell: piece.cell,
                index: piece.index,
                weight: piece.weight,
                inner: begin,
            };
            for (axis, i) in order.iter().zip(at[..kept].iter().chain(&at[kept + 1..])) {
                let axis = &outer[*axis];
                row.offset += i * axis.stride;
                row.index += *i as u64 * axis.index_stride;
                row.cell += match &axis.labels {
                    Some(labels) => labels[*i] * axis.cell_stride,
                    None => i * axis.cell_stride,
                };
                row.weight *= axis.weights.map_or(1.0, |weights| weights[*i]);
            }
            if let Some(inner) = inner {
                row.offset += begin * inner.stride;
                row.index += begin as u64 * inner.index_stride;
                row.cell += if inner.labels.is_some() { 0 } else { begin * inner.cell_stride };
            }
            for (number, first) in piece.constants.iter().enumerate() {
                let outer = order.iter().zip(at[..kept].iter().chain(&at[kept + 1..]));
                let outer = outer.map(|(axis, i)| i * self.piece.axes[*axis].constants[number]);
                let along = inner.map_or(0, |inner| begin * inner.constants[number]);
                self.scratch.constants.push(first + outer.sum::<usize>() + along);
            }
            gathered += row.length;
            self.scratch.rows.push(row);
            if direct || gathered + segment.min(length) > BLOCK_ELEMENTS {
                self.flush()?;
                gathered = 0;
            }
            let Some(dim) = (0..at.len()).rev().find(|dim| at[*dim] + 1 < counts[*dim]) else {
                return self.flush();
            };
            at[dim] += 1;
            at[dim + 1..].fill(0);
        }
    }

    /// Decodes, computes and reduces the rows that were gathered.
    fn flush(&mut self) -> Result<(), KernelError> {
        let rows = std::mem::take(&mut self.scratch.rows);
        let inner = self.piece.axes.last();
        let stride = inner.map_or(1, |inner| inner.stride);
        let size = self.plan.meaning.raw.size();
        if rows.is_empty() {
            return Ok(());
        }
        let elements = self.data.len() / self.plan.element_bytes();
        let lead = self.data.get(..elements * size).unwrap_or(&[]);
        let raw = raw_of(&rows, lead, size, stride, &mut self.scratch.raw)?;
        self.plan.meaning.decode_into(raw, &mut self.scratch.values);
        if let Some(measure) = &mut self.measure {
            measure.take(&self.scratch.values);
        }
        let (computed, mut second) = (self.computed(&rows, elements, stride)?, None);
        let values = match &computed {
            Computed::As(values) => values,
            Computed::Pairs([first, other]) => {
                second = Some(other);
                first
            }
            Computed::Decoded => &self.scratch.values,
        };
        let mut from = 0;
        for row in &rows {
            if !self.plan.weights.is_empty() {
                let along = inner.and_then(|inner| inner.weights);
                let weights =
                    (row.inner..row.inner + row.length).map(|i| along.map_or(1.0, |w| w[i]) * row.weight);
                self.scratch.weights.clear();
                self.scratch.weights.extend(weights);
            }
            let index_step = inner.map_or(0, |inner| inner.index_stride);
            let whole = Row {
                values,
                from,
                to: from + row.length,
                second,
                weights: &self.scratch.weights,
                index: row.index,
                index_step,
            };
            match inner {
                Some(inner) if inner.labels.is_some() => {
                    let labels = inner.labels.as_deref().unwrap_or(&[]);
                    for (begin, end) in equal_runs(&labels[row.inner..row.inner + row.length]) {
                        let part = Row {
                            from: from + begin,
                            to: from + end,
                            weights: whole.weights.get(begin..end).unwrap_or(&[]),
                            ..whole
                        };
                        self.totals.run(row.cell + labels[row.inner + begin] * inner.cell_stride, &part)?;
                    }
                }
                Some(inner) if inner.cell_stride == 1 => self.totals.row(row.cell, &whole)?,
                Some(inner) if inner.cell_stride > 1 => {
                    // Cells apart: groups lie inside a kept axis.
                    for i in 0..row.length {
                        let weights = whole.weights.get(i..i + 1).unwrap_or(&[]);
                        let part = Row { from: from + i, to: from + i + 1, weights, ..whole };
                        self.totals.run(row.cell + i * inner.cell_stride, &part)?;
                    }
                }
                _ => self.totals.run(row.cell, &whole)?,
            }
            from += row.length;
        }
        self.scratch.rows = rows;
        self.scratch.rows.clear();
        self.scratch.constants.clear();
        Ok(())
    }

    /// Computes the expression over the decoded rows.
    fn computed(&mut self, rows: &[RowAt], elements: usize, stride: usize) -> Result<Computed, KernelError> {
        let plan = self.plan;
        let Some(expr) = &plan.expr else { return Ok(Computed::Decoded) };
        let lead = std::mem::replace(&mut self.scratch.values, Values::Bool(Vec::new()));
        let columns = self.columns(lead, rows, elements, stride)?;
        Ok(match &plan.pair {
            Some(pair) => Computed::Pairs(pair.each_ref().map(|factor| factor.eval_borrowed(&columns))),
            None => Computed::As(expr.eval(columns)),
        })
    }

    /// Returns the inputs of the expression: the lead's values, the values of the other variables in the record, and
    /// the constants.
    fn columns(
        &mut self,
        lead: Values,
        rows: &[RowAt],
        elements: usize,
        stride: usize,
    ) -> Result<Vec<Values>, KernelError> {
        let mut columns = vec![lead];
        let mut at = elements * self.plan.meaning.raw.size();
        for meaning in &self.plan.others {
            let size = meaning.raw.size();
            let data = self.data.get(at..at + elements * size).unwrap_or(&[]);
            at += elements * size;
            let mut values = Values::empty(meaning.decoded());
            meaning.decode_into(raw_of(rows, data, size, stride, &mut self.scratch.raw)?, &mut values);
            columns.push(values);
        }
        let count = self.plan.constants.len();
        for (number, constant) in self.plan.constants.iter().enumerate() {
            let firsts = self.scratch.constants.iter().skip(number).step_by(count);
            let along = self.piece.axes.last().map_or(0, |inner| inner.constants[number]);
            columns.push(constant.column(firsts.copied().zip(rows.iter().map(|row| row.length)), along));
        }
        Ok(columns)
    }
}

/// Returns the stored elements of some rows, one after the other. A single contiguous row is not copied.
fn raw_of<'r>(
    rows: &[RowAt],
    data: &'r [u8],
    size: usize,
    stride: usize,
    gathered: &'r mut Vec<u8>,
) -> Result<&'r [u8], KernelError> {
    // The chunk was checked to be as long as its shape.
    let out_of_chunk = || domain("a row is not in its chunk");
    if let ([row], 1) = (rows, stride) {
        return data.get(row.offset * size..(row.offset + row.length) * size).ok_or_else(out_of_chunk);
    }
    gathered.clear();
    for row in rows {
        let last = row.offset + (row.length - 1) * stride + 1;
        let part = data.get(row.offset * size..last * size).ok_or_else(out_of_chunk)?;
        gather(part, size, stride, gathered);
    }
    Ok(gathered)
}

/// Copies every `stride`th element.
fn gather(part: &[u8], size: usize, stride: usize, out: &mut Vec<u8>) {
    if stride == 1 {
        return out.extend_from_slice(part);
    }
    for element in part.chunks(size * stride) {
        out.extend_from_slice(&element[..size.min(element.len())]);
    }
}

/// Returns the begin and the end of each run of equal labels.
fn equal_runs(labels: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    let mut begin = 0;
    labels.chunk_by(|a, b| a == b).map(move |run| {
        let from = begin;
        begin += run.len();
        (from, begin)
    })
}
