//! `lookup`: the elements that meet a condition.

use std::sync::Arc;

use multiversion::multiversion;

use super::bounds::{Bounded, Bounds};
use super::sum::require_elements;
use crate::catalog::{Accepts, Declaration};
use crate::element::with_element;
use crate::state::{StateReader, StateWriter};
use crate::{
    Block, Ctx, Fold, Input, Kernel, KernelError, Next, Numerics, Order, Output, ParamDecl, ParamKind,
    Params, RowShape, RowValue, Sink, Spec, Step, Value,
};

const NAME: &str = "lookup";

pub(crate) const DECLARATION: Declaration = Declaration {
    name: NAME,
    summary: "the values that meet a condition, with their indices",
    details: "A number in the condition is an exact integer if it is written as one, else the nearest f64. Elements \
              are compared with it exactly: integers are not rounded, f32 is widened. A NaN meets only the condition \
              !=. Rows come in the order of the file.",
    accepts: &[Accepts::Elements],
    params: &[
        ParamDecl {
            name: "where",
            kind: ParamKind::Text,
            default: None,
            required: true,
            help: "a comparison (> >= < <= == !=), two joined by ' and ', or a range 1.5..2 or 1.5..=2",
            example: "'> 3.5'",
        },
        COUNT_ONLY,
    ],
    result: &[("count", "values that meet the condition")],
    rows: Some("(index, value): element number and element"),
    numerics: Numerics::Exact,
    bind,
};

/// The parameter of kernels that can count without giving rows.
pub(crate) const COUNT_ONLY: ParamDecl = ParamDecl {
    name: "count_only",
    kind: ParamKind::Bool,
    default: Some("false"),
    required: false,
    help: "count only, and give no rows",
    example: "true",
};

fn bind(params: &Params, input: &Input) -> Result<Arc<dyn Kernel>, KernelError> {
    let (dtype, record) = require_elements(NAME, input)?;
    let rows = !params.flag("count_only");
    let per_record = input.per_record();
    with_element!(dtype, T => {
        let bounds = Bounds::<T>::parse(params.text("where")).map_err(|why| params.refuse("where", why))?;
        Ok(Arc::new(Lookup { bounds, record, per_record, rows }))
    })
}

#[derive(Clone, Copy)]
struct Lookup<T> {
    bounds: Bounds<T>,
    record: u64,
    per_record: u64,
    rows: bool,
}

impl<T: Bounded> Kernel for Lookup<T> {
    fn spec(&self) -> Spec {
        let shape = RowShape {
            position: "index",
            origin: 0,
            per_record: self.per_record,
            value: RowValue::Element(T::DTYPE),
        };
        let output = if self.rows { Output::Rows(shape) } else { Output::Value };
        let order = if self.rows { Order::File } else { Order::Any };
        Spec { order, output, ..Spec::fixed(NAME, self.record) }
    }

    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(LookupFold { kernel: *self, count: 0, cursor: 0 }))
    }

    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let (count, _) = decode(whole)?;
        Ok(Next::Done(Value::Map(vec![("count", count.into())])))
    }
}

struct LookupFold<T> {
    kernel: Lookup<T>,
    count: u64,
    /// Number of elements of the next record that were processed already.
    cursor: u64,
}

fn decode(state: &[u8]) -> Result<(u64, u64), KernelError> {
    let mut read = StateReader::new(NAME, state);
    let state = (read.u64()?, read.u64()?);
    read.end()?;
    Ok(state)
}

/// Counts elements with `low <= x <= high`.
#[multiversion(targets("x86_64+avx+avx2+bmi1+bmi2", "x86_64+sse4.2"))]
fn count_within<T: Bounded>(low: T, high: T, data: &[u8]) -> u64 {
    let mut count = 0;
    // The count of one step fits in 16 bits, which keeps the vectors narrow.
    for step in data.chunks(T::SIZE * 4096) {
        let mut within = 0u16;
        for x in step.chunks_exact(T::SIZE) {
            let x = T::read(x);
            within += u16::from((x >= low) & (x <= high));
        }
        count += u64::from(within);
    }
    count
}

/// Elements that are tested together. They are tested one by one only if one of them matches. It is a power of two.
const GROUP: usize = 256;

/// Bytes of the widest element.
const WIDEST: usize = size_of::<u64>();

/// The elements of a group that meet the condition.
struct Found {
    /// The record of each.
    records: [u64; GROUP],
    /// The number of each in its record, if records have several elements.
    parts: [u64; GROUP],
    /// Their bytes, one element after the other.
    values: [u8; GROUP * WIDEST],
}

impl Default for Found {
    fn default() -> Found {
        Found { records: [0; GROUP], parts: [0; GROUP], values: [0; GROUP * WIDEST] }
    }
}

impl Found {
    /// Replaces numbers of elements by numbers of records, from `first`, and parts.
    fn number_in_records(&mut self, count: usize, first: u64, per_record: u64) {
        for (record, part) in self.records.iter_mut().zip(&mut self.parts).take(count) {
            (*record, *part) = (first + *record / per_record, *record % per_record);
        }
    }
}

/// Finds the elements that meet the condition, and returns how many. The n-th element gets the number `first` + n. This is its
/// record if records have one element.
#[multiversion(targets("x86_64+avx+avx2+bmi1+bmi2", "x86_64+sse4.2"))]
fn select<T: Bounded>(bounds: Bounds<T>, first: u64, group: &[u8], found: &mut Found) -> usize {
    let (low, high) = bounds.within.unwrap_or((T::ALL.1, T::ALL.0));
    let mut any = false;
    for x in group.chunks_exact(T::SIZE) {
        let x = T::read(x);
        any |= ((x >= low) & (x <= high)) != bounds.negate;
    }
    if !any {
        return 0;
    }
    // This loop has no branch, because the processor could not predict it. It writes each element, and the next one in
    // its place if it does not meet the condition.
    let mut count = 0;
    for (record, x) in (first..).zip(group.chunks_exact(T::SIZE)) {
        let x = T::read(x);
        let at = count % GROUP;
        found.records[at] = record;
        found.values[at * T::SIZE..at * T::SIZE + WIDEST].copy_from_slice(&x.bits().to_le_bytes());
        count += usize::from(((x >= low) & (x <= high)) != bounds.negate);
    }
    drop_excluded(bounds, found, count)
}

/// Drops excluded values, and returns the number of the others.
fn drop_excluded<T: Bounded>(bounds: Bounds<T>, found: &mut Found, mut count: usize) -> usize {
    for value in bounds.excluded() {
        let mut kept = 0;
        for n in 0..count {
            let bytes = n * T::SIZE..(n + 1) * T::SIZE;
            let excluded = T::read(&found.values[bytes.clone()]) == value;
            found.records[kept] = found.records[n];
            found.values.copy_within(bytes, kept * T::SIZE);
            kept += usize::from(!excluded);
        }
        count = kept;
    }
    count
}

impl<T: Bounded> LookupFold<T> {
    fn count(&self, data: &[u8]) -> u64 {
        let within = self.kernel.bounds.within.map_or(0, |(low, high)| count_within(low, high, data));
        // Excluded values meet the rest of the condition.
        let excluded: u64 = self.kernel.bounds.excluded().map(|value| count_within(value, value, data)).sum();
        let meet = if self.kernel.bounds.negate { (data.len() / T::SIZE) as u64 - within } else { within };
        meet - excluded
    }
}

impl<T: Bounded> Fold for LookupFold<T> {
    fn update(&mut self, block: &Block<'_>, sink: &mut dyn Sink) -> Result<Step, KernelError> {
        let data = block.data();
        if !self.kernel.rows {
            self.count += self.count(data);
            return Ok(Step::Took(block.count()));
        }
        let per_record = self.kernel.per_record;
        let elements = data.len() / T::SIZE;
        let mut at = (std::mem::take(&mut self.cursor) as usize).min(elements);
        let mut found = Found::default();
        while at < elements {
            let end = (at + GROUP).min(elements);
            let group = &data[at * T::SIZE..end * T::SIZE];
            // Most records have one element, and a division is slow.
            let (count, parts) = if per_record == 1 {
                (select(self.kernel.bounds, block.first() + at as u64, group, &mut found), 0)
            } else {
                let count = select(self.kernel.bounds, at as u64, group, &mut found);
                found.number_in_records(count, block.first(), per_record);
                (count, count)
            };
            let (records, parts) = (&found.records[..count], &found.parts[..parts]);
            let taken = sink.put_rows(records, parts, &found.values[..count * T::SIZE]);
            self.count += taken as u64;
            if let Some(record) = records.get(taken) {
                self.cursor = parts.get(taken).copied().unwrap_or(0);
                return Ok(Step::Full(record - block.first()));
            }
            at = end;
        }
        Ok(Step::Took(block.count()))
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.count);
        out.put_u64(self.cursor);
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        let (count, cursor) = decode(later)?;
        self.count = self.count.saturating_add(count);
        self.cursor = cursor;
        Ok(())
    }
}
